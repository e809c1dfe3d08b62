"""A physical plan for people who look at it: in one line, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stormspark.drawing import Box, Link, details, graph_svg, page, paragraph, table

if TYPE_CHECKING:
    from stormspark.plan.physical import ComponentPlan, EdgePlan, PhysicalPlan

__all__ = ["plan_graph", "plan_html", "plan_line"]


def plan_line(plan: PhysicalPlan) -> str:
    """Return the line for a plan's ``repr``."""
    return f"<PhysicalPlan {plan.topology!r}: {_counts(plan)}>"


def plan_html(plan: PhysicalPlan) -> str:
    """Return the graph of a plan, its workers with their tasks, and the supersteps of a round."""
    picture = plan_graph(plan)
    workers = [
        (
            f"{worker}",
            ", ".join(f"{task.component}[{task.index}]={task.id}" for task in plan.tasks_of_worker(worker))
            or "-",
        )
        for worker in range(plan.workers)
    ]
    why = f" ({plan.workers_reason})" if plan.workers_reason else ""
    edges = [
        (
            edge.source,
            edge.stream,
            edge.target,
            edge.grouping.describe(),
            "crosses workers" if edge.crosses else "stays in its worker",
        )
        for edge in plan.edges
    ]
    return page(
        f"plan of {plan.topology}: {_counts(plan)}",
        picture or paragraph("too large for a picture" if plan.components else "no components"),
        paragraph("a thick arrow: its tuples may go to another worker") if picture and _thick(plan) else "",
        details(
            f"workers{why}",
            table(("worker", "tasks"), workers, ("number", "wide")),
            opened=plan.workers <= 16,
        ),
        details(
            f"a round: supersteps 0 to {plan.last_superstep}",
            table(("superstep", "what happens"), _supersteps(plan), ("number", "wide")),
            opened=True,
        ),
        details(
            "subscriptions", table(("from", "stream", "to", "grouping", "tuples"), edges), opened=not picture
        ),
    )


def plan_graph(
    plan: PhysicalPlan,
    lines: Callable[[ComponentPlan], tuple[str, ...]] | None = None,
    mark: Callable[[str], str] | None = None,
) -> str:
    """Return a picture of the plan's components. ``lines`` says what stands in a box, and ``mark`` how it is marked."""
    boxes = [
        Box(
            one.id,
            one.id,
            (_tasks(one),) if lines is None else lines(one),
            one.kind,
            "" if mark is None else mark(one.id),
            f"{one.kind}, {_tasks(one)}, declared at {one.declared_at}",
        )
        for one in plan.components.values()
    ]
    links = [Link(edge.source, edge.target, _label(edge), edge.crosses, _tip(edge)) for edge in plan.edges]
    return graph_svg(boxes, links, f"the graph of topology {plan.topology}")


def _counts(plan: PhysicalPlan) -> str:
    counts = (
        (len(plan.components), "component"),
        (len(plan.tasks), "task"),
        (plan.workers, "worker"),
        (plan.last_superstep + 1, "superstep"),
    )
    return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)


def _thick(plan: PhysicalPlan) -> bool:
    return any(edge.crosses for edge in plan.edges)


def _supersteps(plan: PhysicalPlan) -> list[tuple[str, str]]:
    spouts = "rows of Spark's sources arrive, spouts emit" if plan.sources else "spouts emit"
    steps = [("0", f"{spouts}; tuples travel on inside their worker")]
    last = plan.last_superstep
    if last > 1:
        numbers = "1" if last == 2 else f"1 to {last - 1}"
        steps.append((numbers, "an exchange of Spark, then bolts execute the tuples that came"))
    if last:
        steps.append((f"{last}", "an exchange of Spark; acks come home, and the reports go to the driver"))
    return steps


def _tasks(one: ComponentPlan) -> str:
    count = len(one.tasks)
    executors = (
        "" if one.parallelism == count else f" in {one.parallelism} executor{'s' * (one.parallelism != 1)}"
    )
    return f"{count} task{'s' * (count != 1)}{executors}"


def _label(edge: EdgePlan) -> str:
    return ("" if edge.stream == "default" else f"{edge.stream}: ") + edge.grouping.describe()


def _tip(edge: EdgePlan) -> str:
    crosses = "crosses workers" if edge.crosses else "stays in its worker"
    return f"{edge.source} -> {edge.target}: {_label(edge)}, {crosses}"
