"""Walks through a project's Java code without running it: from each ``main``, then from other code that builds topologies."""

from __future__ import annotations

from typing import Final

from stormspark.porting.java.drafts import Builder
from stormspark.porting.java.evaluation import Evaluation
from stormspark.porting.java.library import Drafts
from stormspark.porting.java.source import JavaClass, JavaMethod, JavaSources, descendants, text_of, type_name
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
    """Walk through all code that may build a topology: first each ``main``, then code that no walk has reached so far."""
    walk = _Walk(evaluation, drafts)
    classes = list(sources.classes())
    for java_class in classes:
        for method in java_class.methods.get("main", []):
            if method.static and len(method.parameters) <= 1:
                walk.through(method)
    for java_class in classes:
        methods = [one for group in java_class.methods.values() for one in group]
        for method in methods:
            if method not in evaluation.entered and _makes_a_builder(method):
                walk.through(method)
        for constructor in java_class.constructors:
            if constructor not in evaluation.entered and _makes_a_builder(constructor):
                walk.through_object(java_class, methods)
        for method in methods:
            if method not in evaluation.entered and _adds_components(method):
                walk.with_a_builder(method)


class _Walk:
    def __init__(self, evaluation: Evaluation, drafts: Drafts) -> None:
        self._evaluation = evaluation
        self._drafts = drafts

    def through(self, method: JavaMethod, arguments: list[Value] | None = None) -> None:
        """Walk through a method. If the walk gives up, mark the builders that it has made as not followed to the end."""
        before = len(self._drafts.builders)
        self._evaluation.begin()
        self._evaluation.call(method, _some(self._evaluation, method), arguments)
        self._mark(before)

    def through_object(self, java_class: JavaClass, methods: list[JavaMethod]) -> None:
        """Make an object. Call its methods that add components, unless a walk has reached them already."""
        before = len(self._drafts.builders)
        self._evaluation.begin()
        made = _made(self._evaluation, java_class)
        for method in methods:
            if method not in self._evaluation.entered and _adds_components(method):
                self._evaluation.call(method, made)
        self._mark(before)

    def with_a_builder(self, method: JavaMethod) -> None:
        """If a method takes a ``TopologyBuilder``, walk through it with a new builder, because no walk has reached a caller."""
        arguments: list[Value] = [Unknown(one.name, one.type) for one in method.parameters]
        for position, one in enumerate(method.parameters):
            if one.type.rpartition(".")[2] == "TopologyBuilder":
                arguments[position] = builder = Builder("java", method.place)
                self._drafts.builders.append(builder)
                self.through(method, arguments)
                return

    def _mark(self, before: int) -> None:
        if self._evaluation.gave_up:
            for builder in self._drafts.builders[before:]:
                builder.followed = False


def _made(evaluation: Evaluation, java_class: JavaClass) -> Instance:
    """Return an object of the class, made with unknown arguments."""
    parameters = java_class.constructors[0].parameters if java_class.constructors else ()
    return evaluation.create(
        java_class, [Unknown(one.name, one.type) for one in parameters], java_class.place
    )


def _some(evaluation: Evaluation, method: JavaMethod) -> Instance | None:
    """Return an object on which the method can be called; None for a static method."""
    return None if method.static else _made(evaluation, method.owner)


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
