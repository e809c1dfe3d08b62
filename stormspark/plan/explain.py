"""A plan in readable form: as text and as a Mermaid graph (``stormspark explain``)."""

from __future__ import annotations

from collections.abc import Iterable

from stormspark.plan.needs import executor_needs
from stormspark.plan.physical import ComponentPlan, EdgePlan, PhysicalPlan
from stormspark.plan.supersteps import forward_order, stages

__all__ = ["counted", "explain_mermaid", "explain_text", "id_ranges", "superstep_names"]


def explain_text(plan: PhysicalPlan) -> str:
    """Return the components, edges, workers, memory and supersteps of a plan as text.

    Components are listed with their tasks and streams, edges with their groupings, and workers with their tasks. If each
    executor of a component has a thread of its own, ``threads:`` says why (A16). For an async bolt, ``async:`` says how many
    calls may be under way at once.
    """
    lines = [
        f"topology {plan.topology}: {counted(len(plan.components), 'component')}, {counted(len(plan.tasks), 'task')}, "
        f"{counted(plan.workers, 'worker')}, "
        + (
            f"{counted(plan.supersteps, 'exchange')} and one more for the acks"
            if plan.supersteps
            else "one exchange, for the report"
            if plan.sources
            else "no exchange"
        ),
        "",
        "components",
    ]
    for component in plan.components.values():
        read = ", read by Spark" if component.source else ""
        lines.append(f"  {component.kind:<5} {component.id}: {_tasks(component)}{read}")
        if component.capacity:
            lines.append(f"        async: {_at_once(component)}")
        if component.threads_reason:
            lines.append(f"        threads: {component.threads_reason}")
        for stream in component.streams.values():
            direct = ", direct" if stream.direct else ""
            lines.append(f"        emits {stream.id}({', '.join(stream.fields)}){direct}")
    lines += ["", "edges"]
    lines += [f"  {_edge(edge)}" for edge in plan.edges] or ["  none"]
    lines += ["", f"workers ({plan.workers_reason})" if plan.workers_reason else "workers"]
    for worker in range(plan.workers):
        hosted = [f"{plan.tasks[t.id].component}[{t.index}]={t.id}" for t in plan.tasks_of_worker(worker)]
        lines.append(f"  worker {worker}: {', '.join(hosted) or 'nothing'}")
    needs = executor_needs(plan, plan.conf)
    lines += [
        "",
        "memory beside Spark's JVM",
        f"  a worker: {needs.worker}",
        f"  a Spark executor with {counted(needs.workers, 'worker')}: spark.executor.memoryOverhead={needs.overhead_mb}m",
    ]
    spouts = "rows of Spark's sources arrive, spouts emit" if plan.sources else "spouts emit"
    lines += ["", "a batch", f"  superstep 0: {spouts}; tuples travel on inside their worker"]
    for superstep in range(1, plan.last_superstep + 1):
        home = " (acks come home, the reports go to the driver)" if superstep == plan.last_superstep else ""
        lines.append(f"  repartitionById({plan.partitions}, worker) -> superstep {superstep}{home}")
    return "\n".join(lines)


def explain_mermaid(plan: PhysicalPlan) -> str:
    """Return the graph of components in Mermaid's language; a thick arrow is an edge that can cross workers."""
    names = {name: f"c{number}" for number, name in enumerate(plan.components)}
    lines = ["flowchart LR"]
    for component in plan.components.values():
        opened, closed = ("([", "])") if component.kind == "spout" else ("[", "]")
        tasks = counted(len(component.tasks), "task")
        lines.append(f'    {names[component.id]}{opened}"{_escaped(component.id)}<br/>{tasks}"{closed}')
    for edge in plan.edges:
        arrow = "==>" if edge.crosses else "-->"
        stream = "" if edge.stream == "default" else f"{edge.stream}: "
        label = _escaped(stream + edge.grouping.describe())
        lines.append(f'    {names[edge.source]} {arrow}|"{label}"| {names[edge.target]}')
    return "\n".join(lines)


def superstep_names(plan: PhysicalPlan) -> list[str]:
    """Return for each superstep the components that run there, such as "split -> count", for people who look at Spark's UI.

    A component runs in the superstep in which the last of its tuples arrive, even if others arrive earlier.
    """
    stage_of = stages(plan.components, plan.edges)
    order = forward_order(plan.components, plan.edges)
    subscribed = {(edge.source, edge.target) for edge in plan.edges}
    names = []
    for superstep in range(plan.last_superstep + 1):
        here = sorted((name for name, stage in stage_of.items() if stage == superstep), key=order.__getitem__)
        text = "".join(
            name if before is None else f"{' -> ' if (before, name) in subscribed else ', '}{name}"
            for before, name in zip([None, *here], here, strict=False)
        )
        acks = superstep and superstep == plan.last_superstep
        names.append(f"{text}, acks" if text and acks else text or "acks")
    return names


def _edge(edge: EdgePlan) -> str:
    stream = "" if edge.stream == "default" else f":{edge.stream}"
    crosses = "crosses workers" if edge.crosses else "stays in its worker"
    return f"{edge.source}{stream} -> {edge.target}: {edge.grouping.describe()}, {crosses}"


def _at_once(component: ComponentPlan) -> str:
    each = f" in each task, {component.calls_at_once} in all" if len(component.tasks) > 1 else ""
    return f"up to {counted(component.capacity, 'call')} at once{each}"


def _tasks(component: ComponentPlan) -> str:
    executors = (
        ""
        if component.parallelism == len(component.tasks)
        else f" in {counted(component.parallelism, 'executor')}"
    )
    return f"{counted(len(component.tasks), 'task')}{executors}, ids {id_ranges(component.tasks)}"


def id_ranges(ids: Iterable[int]) -> str:
    """Return ascending ids as text, in which consecutive ids form one range.

    >>> id_ranges([3, 4, 5, 9])
    '3-5, 9'
    """
    runs: list[list[int]] = []
    for one in ids:
        if runs and runs[-1][-1] == one - 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the singular for 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _escaped(text: str) -> str:
    return text.replace('"', "#quot;")
