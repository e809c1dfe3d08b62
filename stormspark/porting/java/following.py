"""Where the code of a project begins: from every ``main``, and from whatever else makes a builder."""

from __future__ import annotations

from typing import Final

from stormspark.porting.java.drafts import Builder
from stormspark.porting.java.evaluation import Evaluation
from stormspark.porting.java.library import Drafts
from stormspark.porting.java.source import JavaMethod, JavaSources, descendants, text_of, type_name
from stormspark.porting.java.values import Instance, Unknown, Value

__all__ = ["follow"]

_MADE: Final = {
    "TopologyBuilder",
    "TransactionalTopologyBuilder",
    "LinearDRPCTopologyBuilder",
    "TridentTopology",
    "StreamBuilder",
}


def follow(sources: JavaSources, evaluation: Evaluation, drafts: Drafts) -> None:
    """Walk through all that may build a topology: each ``main``, and then what nobody has come by."""
    for java_class in list(sources.classes()):
        for method in java_class.methods.get("main", []):
            if method.static and len(method.parameters) <= 1:
                evaluation.begin()
                evaluation.call(method, None)
    for java_class in list(sources.classes()):
        methods = [one for group in java_class.methods.values() for one in group]
        for method in methods:
            if method not in evaluation.entered and _makes_a_builder(method):
                evaluation.begin()
                evaluation.call(method, _some(evaluation, method))
        for constructor in java_class.constructors:
            if constructor not in evaluation.entered and _makes_a_builder(constructor):
                evaluation.begin()
                made = evaluation.create(
                    java_class, [Unknown(one.name) for one in constructor.parameters], java_class.place
                )
                for method in methods:
                    if method not in evaluation.entered and _adds_components(method):
                        evaluation.call(method, made)
        for method in methods:
            takes = [p for p in method.parameters if p.type.rpartition(".")[2] == "TopologyBuilder"]
            if takes and method not in evaluation.entered and _adds_components(method):
                evaluation.begin()
                builder = Builder("java", method.place)
                drafts.builders.append(builder)
                arguments: list[Value] = [
                    builder if one is takes[0] else Unknown(one.name) for one in method.parameters
                ]
                evaluation.call(method, _some(evaluation, method), arguments)


def _some(evaluation: Evaluation, method: JavaMethod) -> Instance | None:
    """An object to call a method on, made of nobody knows what."""
    if method.static:
        return None
    constructors = method.owner.constructors
    arguments: list[Value] = [Unknown(one.name) for one in constructors[0].parameters] if constructors else []
    return evaluation.create(method.owner, arguments, method.owner.place)


def _makes_a_builder(method: JavaMethod) -> bool:
    if method.body is None:
        return False
    return any(
        type_name(one.child_by_field_name("type")).rpartition(".")[2] in _MADE
        for one in descendants(method.body, "object_creation_expression")
    )


def _adds_components(method: JavaMethod) -> bool:
    if method.body is None:
        return False
    return any(
        text_of(one.child_by_field_name("name")) in ("setSpout", "setBolt", "addBolt")
        for one in descendants(method.body, "method_invocation")
    )
