"""Follows Java code to find what it builds, without running it.

A *walk* begins at a method, and follows the code from there. It takes statements in their order. It follows both branches of an
``if``, unless the condition is known. It follows the body of a loop once. If the code calls a method of the project, the walk
enters the method with the arguments of the call.

In a walk, a value is a constant, an object with its known parts, or unknown. If a branch may change a constant, the constant
keeps its first value, and its attribute ``unless`` has the condition. If a value is unknown, the module that needs the value
decides what to do. A walk guesses little. For example, it assumes that an unknown method returns its own object, as methods of
builders do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from stormspark.porting.findings import Place
from stormspark.porting.java.arithmetic import Char, are_same, calculated, text_of_block, unescaped
from stormspark.porting.java.overloads import fitting
from stormspark.porting.java.source import (
    JavaClass,
    JavaMethod,
    JavaSources,
    arguments_of,
    descendants,
    line_of,
    read_body,
    text_of,
    type_name,
)
from stormspark.porting.java.values import (
    Call,
    Const,
    Function,
    Instance,
    Items,
    Name,
    Unknown,
    Value,
    integer,
)

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Condition", "Evaluation", "Library"]

#: The limits of a walk: how deep calls of methods may be nested, and how many statements it takes. Without these limits, a walk
#: through recursive code would not end.
_DEEPEST: Final = 16
_MOST_STATEMENTS: Final = 50_000


class Condition(NamedTuple):
    """A branch or a loop around the current statement."""

    loop: bool
    text: str
    place: Place


class Library(Protocol):
    """The behaviour of library classes. Each method returns None if it does not know the Java class or the Java method."""

    def create(self, evaluation: Evaluation, made: Instance) -> Value | None:
        """Return the value of ``new X(...)``, for a class that is not in the project."""

    def call(
        self, evaluation: Evaluation, on: Value, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        """Return the value of a method call on the object ``on``."""

    def call_static(
        self, evaluation: Evaluation, owner: str, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        """Return the value of a call of a static method. ``owner`` is a class or ``super``; empty if the code names neither."""

    def constant(self, owner: str, name: str) -> Value | None:
        """Return the value of a constant such as ``Config.TOPOLOGY_WORKERS``."""

    def inherited_field(self, evaluation: Evaluation, this: Instance, name: str) -> Value | None:
        """Return the value of a field that a class of the project inherits from a library."""

    def escaped(self, value: Value, name: str, place: Place) -> None:
        """Record that ``value`` was passed to the method ``name``, which can't be followed."""


@dataclass
class _Scope:
    owner: JavaClass
    this: Instance | None
    variables: dict[str, Value] = field(default_factory=dict)
    #: The branches and loops around the call of the method.
    conditions: tuple[Condition, ...] = ()
    #: For each variable, the branches and loops around its declaration.
    declared: dict[str, tuple[Condition, ...]] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)


class Evaluation:
    """Walks through Java code. ``conditions`` are the branches and loops around the current statement."""

    def __init__(self, sources: JavaSources, library: Library) -> None:
        self.sources = sources
        self.conditions: list[Condition] = []
        self._library = library
        self._stack: list[JavaMethod] = []
        self._statements = 0
        self._constants: dict[tuple[JavaClass, str], Value] = {}
        self.entered: set[JavaMethod] = set()
        #: Whether the current walk has ended early, because the code is too long or nested too deeply.
        self.gave_up = False

    def since(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """Return the current branches and loops that are inside of ``conditions``, or all if the walk has left ``conditions``."""
        now = tuple(self.conditions)
        return now[len(conditions) :] if now[: len(conditions)] == conditions else now

    # -- methods and objects ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a new walk, and count its statements from 0."""
        self._statements = 0
        self.gave_up = False

    def call(self, method: JavaMethod, this: Instance | None, arguments: list[Value] | None = None) -> Value:
        """Enter a method of the project, and return the method's value. If ``arguments`` is None, its parameters are unknown."""
        if method.body is None:
            return Unknown(method.name)
        if method in self._stack or len(self._stack) >= _DEEPEST or self._statements > _MOST_STATEMENTS:
            return Unknown(f"{method.name}(...)")
        scope = _Scope(method.owner, this, self._bound(method, arguments), tuple(self.conditions))
        self.entered.add(method)
        self._stack.append(method)
        try:
            self._block(method.body, scope)
        except RecursionError:
            if len(self._stack) > 1:
                raise
            self.gave_up = True
        finally:
            self._stack.pop()
        return _one_of(scope.returned, method.name)

    def create(
        self, java_class: JavaClass, arguments: list[Value] | None, place: Place, type_: str = ""
    ) -> Instance:
        """Make an object of a class of the project: give its fields their initial values, and enter its constructor."""
        made = Instance(
            type_ or java_class.name,
            tuple(arguments or ()),
            place,
            java_class,
            conditions=tuple(self.conditions),
        )
        self._construct(made, java_class, arguments)
        return made

    def method_of(
        self, java_class: JavaClass, name: str, arguments: list[Value] | int | None
    ) -> JavaMethod | None:
        """Return the method called ``name`` that fits the arguments. It may be inherited from another class of the project."""
        for one in self.sources.ancestors(java_class):
            if found := fitting(one.methods.get(name, []), arguments):
                return found
        return None

    def _bound(self, method: JavaMethod, arguments: list[Value] | None) -> dict[str, Value]:
        if arguments is None:
            return {one.name: Unknown(one.name, one.type) for one in method.parameters}
        bound: dict[str, Value] = {}
        for position, parameter in enumerate(method.parameters):
            if parameter.rest:
                rest = arguments[position:]
                alone = rest[0] if len(rest) == 1 and isinstance(rest[0], Items) else None
                bound[parameter.name] = alone or Items(rest, conditions=tuple(self.conditions))
            elif position < len(arguments):
                bound[parameter.name] = arguments[position]
            else:
                bound[parameter.name] = Unknown(parameter.name)
        return bound

    def _construct(self, made: Instance, java_class: JavaClass, arguments: list[Value] | None) -> None:
        constructor = fitting(java_class.constructors, arguments)
        if constructor is None and java_class.constructors:
            self._construct_by_any(made, java_class)
            return
        first = _explicit_call(constructor)
        if constructor is None or first is None:
            parent = self.sources.find(java_class.superclass, java_class)
            if parent is not None and parent is not java_class:
                self._construct(made, parent, [])
            self._initial_values(made, java_class)
        if constructor is None or constructor.body is None or constructor in self._stack:
            return
        if len(self._stack) >= _DEEPEST:
            return
        scope = _Scope(java_class, made, self._bound(constructor, arguments), tuple(self.conditions))
        self._stack.append(constructor)
        self.entered.add(constructor)
        try:
            self._block(constructor.body, scope)
        finally:
            self._stack.pop()

    def _construct_by_any(self, made: Instance, java_class: JavaClass) -> None:
        """Set the fields of an object whose constructor is not known. A field is unknown if any constructor assigns it."""
        self._initial_values(made, java_class)
        made.base_arguments = (Unknown("..."),)
        for constructor in java_class.constructors:
            for name in _assigned_in(constructor.body):
                made.fields[name] = Unknown(name)

    def _initial_values(self, made: Instance, java_class: JavaClass) -> None:
        scope = _Scope(java_class, made, conditions=tuple(self.conditions))
        for one in java_class.fields.values():
            if not one.static and one.value is not None:
                made.fields[one.name] = self._value(one.value, scope, one.type)
        body = java_class.node.child_by_field_name("body")
        for block in body.named_children if body else ():
            if block.type == "block":
                self._block(block, scope)

    # -- statements ------------------------------------------------------------------------------------------

    def _block(self, node: Node, scope: _Scope) -> None:
        for one in node.named_children:
            self._statement(one, scope)

    def _statement(self, node: Node, scope: _Scope) -> None:
        self._statements += 1
        if self._statements > _MOST_STATEMENTS:
            self.gave_up = True
            return
        if handler := _STATEMENTS.get(node.type):
            handler(self, node, scope)

    def _on_expression(self, node: Node, scope: _Scope) -> None:
        for one in node.named_children:
            self._value(one, scope)

    def _on_declaration(self, node: Node, scope: _Scope) -> None:
        kind = type_name(node.child_by_field_name("type"))
        for one in node.children_by_field_name("declarator"):
            name = text_of(one.child_by_field_name("name"))
            value = one.child_by_field_name("value")
            given = Unknown(name, kind) if value is None else self._value(value, scope, kind)
            scope.declared[name] = tuple(self.conditions)
            untyped = isinstance(given, Unknown) and not given.type and kind != "var"
            scope.variables[name] = replace(given, type=kind) if untyped else given  # type: ignore[type-var]

    def _on_return(self, node: Node, scope: _Scope) -> None:
        if node.named_children:
            scope.returned.append(self._value(node.named_children[0], scope))

    def _on_if(self, node: Node, scope: _Scope) -> None:
        condition = node.child_by_field_name("condition")
        text = text_of(condition).strip().removeprefix("(").removesuffix(")")
        known = self._value(condition, scope) if condition is not None else None
        if isinstance(known, Const) and isinstance(known.value, bool) and not known.unless:
            self._optional(node.child_by_field_name("consequence" if known.value else "alternative"), scope)
            return
        with self._under(False, text, node, scope):
            self._optional(node.child_by_field_name("consequence"), scope)
        with self._under(False, f"not ({text})", node, scope):
            self._optional(node.child_by_field_name("alternative"), scope)

    def _on_loop(self, node: Node, scope: _Scope) -> None:
        head = " ".join(text_of(node).partition("{")[0].split())
        if initial := node.child_by_field_name("init"):
            self._statement(initial, scope) if initial.type.endswith("declaration") else self._value(
                initial, scope
            )
        body = node.child_by_field_name("body")
        for name in _assigned_in(body) | _assigned_in(node.child_by_field_name("update")):
            if name in scope.variables:
                scope.variables[name] = Unknown(f"{name}, which a loop changes")
        if node.type == "enhanced_for_statement":
            over = node.child_by_field_name("value")
            if over is not None:
                self._value(over, scope)
            name = text_of(node.child_by_field_name("name"))
            scope.variables[name] = Unknown(f"{name}, which a loop changes")
        with self._under(True, head, node, scope):
            self._optional(body, scope)

    def _on_try(self, node: Node, scope: _Scope) -> None:
        if resources := node.child_by_field_name("resources"):
            for one in resources.named_children:
                value = one.child_by_field_name("value")
                name = one.child_by_field_name("name")
                if value is not None and name is not None:
                    scope.variables[text_of(name)] = self._value(value, scope)
        self._optional(node.child_by_field_name("body"), scope)
        for one in node.named_children:
            if one.type == "catch_clause":
                with self._under(False, "an exception is caught", one, scope):
                    self._optional(one.child_by_field_name("body"), scope)
            elif one.type == "finally_clause":
                self._block(one.named_children[-1], scope)

    def _on_switch(self, node: Node, scope: _Scope) -> None:
        condition = " ".join(text_of(node.child_by_field_name("condition")).split())
        body = node.child_by_field_name("body")
        for group in body.named_children if body else ():
            with self._under(False, f"switch {condition}", group, scope):
                for one in group.named_children:
                    if one.type != "switch_label":
                        self._statement(one, scope)

    def _on_inner_block(self, node: Node, scope: _Scope) -> None:
        body = node.child_by_field_name("body")
        self._block(node if body is None else body, scope)

    def _on_constructor_call(self, node: Node, scope: _Scope) -> None:
        if scope.this is None:
            return
        arguments = [self._value(one, scope) for one in arguments_of(node)]
        if text_of(node.child_by_field_name("constructor")) == "this":
            self._construct(scope.this, scope.owner, arguments)
            return
        parent = self.sources.find(scope.owner.superclass, scope.owner)
        if parent is None:
            scope.this.base_arguments = tuple(arguments)
        else:
            self._construct(scope.this, parent, arguments)
        self._initial_values(scope.this, scope.owner)

    def _optional(self, node: Node | None, scope: _Scope) -> None:
        if node is None:
            return
        if node.type == "block":
            self._block(node, scope)
        else:
            self._statement(node, scope)

    @contextmanager
    def _under(self, loop: bool, text: str, node: Node, scope: _Scope) -> Iterator[None]:
        """Add a branch or a loop to `conditions` while the statements inside of it are evaluated."""
        self.conditions.append(Condition(loop, text, scope.owner.file.place(node)))
        try:
            yield
        finally:
            self.conditions.pop()

    # -- expressions -----------------------------------------------------------------------------------------

    def _value(self, node: Node, scope: _Scope, wanted: str = "") -> Value:
        """Return the value of an expression. ``wanted`` is the declared type of the variable or field that receives it."""
        if handler := _EXPRESSIONS.get(node.type):
            return handler(self, node, scope)
        if node.type == "array_initializer":
            items = [self._value(one, scope) for one in node.named_children if "comment" not in one.type]
            return Items(items, conditions=tuple(self.conditions))
        for one in node.named_children:  # the parts are evaluated for their effects
            if one.type not in ("block", "class_body"):
                self._value(one, scope)
        return _unknown(node)

    def _on_identifier(self, node: Node, scope: _Scope) -> Value:
        name = text_of(node)
        if name in scope.variables:
            return scope.variables[name]
        return self._field(name, scope) or _unknown(node)

    def _field(self, name: str, scope: _Scope) -> Value | None:
        """Return the value of a field by its simple name. The field may be in this object or an enclosing class, or imported."""
        if scope.this is not None and name in scope.this.fields:
            return scope.this.fields[name]
        around: JavaClass | None = scope.owner
        while around is not None:
            if (found := self.constant_of(around, name)) is not None:
                return found
            around = around.outer
        if (
            scope.this is not None
            and (found := self._library.inherited_field(self, scope.this, name)) is not None
        ):
            return found
        file = scope.owner.file
        if full := file.static_imports.get(name):
            owner = full.rpartition(".")[0]
            own = self.sources.find(owner, file)
            return self.constant_of(own, name) if own else self._library.constant(owner, name)
        for owner in file.static_classes:
            own = self.sources.find(owner, file)
            if (
                found := self.constant_of(own, name) if own else self._library.constant(owner, name)
            ) is not None:
                return found
        return None

    def constant_of(self, java_class: JavaClass, name: str) -> Value | None:
        """Return the value of a static field of the class, or of a class or interface that it extends or implements."""
        seen: set[JavaClass] = set()
        waiting = [java_class]
        while waiting:
            one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            if name in one.constants:
                return Name(f"{one.name}.{name}")
            declared = one.fields.get(name)
            if declared is not None and declared.static:
                if (one, name) not in self._constants:
                    self._constants[one, name] = Unknown(name)  # in case its value refers to itself
                    if declared.value is not None:
                        held, self.conditions = self.conditions, []
                        try:
                            value = self._value(declared.value, _Scope(one, None), declared.type)
                        finally:
                            self.conditions = held
                        self._constants[one, name] = value
                return self._constants[one, name]
            parents = (one.superclass, *one.interfaces)
            waiting.extend(found for parent in parents if (found := self.sources.find(parent, one)))
        return None

    def _on_field_access(self, node: Node, scope: _Scope) -> Value:
        on = node.child_by_field_name("object")
        name = text_of(node.child_by_field_name("field"))
        if on is None:
            return _unknown(node)
        if on.type == "this":
            return self._field(name, scope) or _unknown(node)
        if on.type in ("identifier", "field_access", "scoped_identifier") and not self._is_variable(
            on, scope
        ):
            owner = text_of(on)
            if own := self.sources.find(owner, scope.owner):
                return self.constant_of(own, name) or _unknown(node)
            if owner[:1].isupper() or owner.rpartition(".")[2][:1].isupper():
                full = self.sources.full_name(owner, scope.owner)
                return self._library.constant(full, name) or Name(f"{owner}.{name}")
        value = self._value(on, scope)
        if isinstance(value, Instance) and name in value.fields:
            return value.fields[name]
        if isinstance(value, Items) and name == "length":
            return Const(len(value.items))
        return _unknown(node)

    def _is_variable(self, node: Node, scope: _Scope) -> bool:
        first = node
        while first.type == "field_access":
            inner = first.child_by_field_name("object")
            if inner is None:
                break
            first = inner
        if first.type != "identifier":
            return True
        name = text_of(first)
        return name in scope.variables or (scope.this is not None and name in scope.this.fields)

    def _on_call(self, node: Node, scope: _Scope) -> Value:
        on = node.child_by_field_name("object")
        name = text_of(node.child_by_field_name("name"))
        place = scope.owner.file.place(node.child_by_field_name("name") or node)
        if on is None:
            arguments = [self._value(one, scope) for one in arguments_of(node)]
            return self._call_own(name, arguments, place, scope) or self._not_followed(
                node, name, arguments, place
            )
        if on.type == "super":
            arguments = [self._value(one, scope) for one in arguments_of(node)]
            parent = self.sources.find(scope.owner.superclass, scope.owner)
            if parent and (method := self.method_of(parent, name, arguments)):
                return self.call(method, scope.this, arguments)
            found = self._library.call_static(self, "super", name, arguments, place)
            return found or self._not_followed(node, name, arguments, place)
        static = on.type in ("identifier", "field_access", "scoped_identifier") and not self._is_variable(
            on, scope
        )
        if static and self._field_of_scope(on, scope) is None:
            owner = text_of(on)
            arguments = [self._value(one, scope) for one in arguments_of(node)]
            if (own := self.sources.find(owner, scope.owner)) and (
                method := self.method_of(own, name, arguments)
            ):
                return self.call(method, None, arguments)
            full = self.sources.full_name(owner, scope.owner)
            found = self._library.call_static(self, full, name, arguments, place)
            if found is not None:
                return found
            if owner.rpartition(".")[2][:1].isupper():
                self._report_escaped(name, arguments, place)
                return Instance(f"{owner}.{name}", tuple(arguments), place, conditions=tuple(self.conditions))
            return self._not_followed(node, name, arguments, place)
        value = self._value(on, scope)
        arguments = [self._value(one, scope) for one in arguments_of(node)]
        return self._call_on(value, name, arguments, place, node)

    def _field_of_scope(self, on: Node, scope: _Scope) -> Value | None:
        return self._field(text_of(on), scope) if on.type == "identifier" else None

    def _call_own(self, name: str, arguments: list[Value], place: Place, scope: _Scope) -> Value | None:
        """Call a method by its simple name. The method may be in this class, a base class or an enclosing class, or imported."""
        around: JavaClass | None = scope.owner
        start = scope.this.java_class if scope.this is not None and scope.this.java_class else scope.owner
        while around is not None:
            if method := self.method_of(start, name, arguments) or self.method_of(around, name, arguments):
                this = None if method.static else scope.this
                return self.call(method, this, arguments)
            around = start = around.outer  # type: ignore[assignment]
        file = scope.owner.file
        for owner in [full.rpartition(".")[0] for key, full in file.static_imports.items() if key == name]:
            own = self.sources.find(owner, file)
            if own and (method := self.method_of(own, name, arguments)):
                return self.call(method, None, arguments)
            if (found := self._library.call_static(self, owner, name, arguments, place)) is not None:
                return found
        if scope.this is not None and (found := self._library.call(self, scope.this, name, arguments, place)):
            return found
        return self._library.call_static(self, "", name, arguments, place)

    def _call_on(self, value: Value, name: str, arguments: list[Value], place: Place, node: Node) -> Value:
        own = value.java_class if isinstance(value, Instance) else None
        method = self.method_of(own, name, arguments) if own is not None else None
        if method is not None and isinstance(value, Instance):
            given = self.call(method, value, arguments)
            return value if isinstance(given, Unknown) and _is_fluent(value, method) else given
        found = self._library.call(self, value, name, arguments, place)
        if found is not None:
            return found
        if isinstance(value, Instance):
            value.calls.append(Call(name, tuple(arguments), place, self.since(value.conditions)))
            self._report_escaped(name, arguments, place)
            return value  # assume that this method returns its own object, as methods of builders do
        return self._not_followed(node, name, arguments, place)

    def _not_followed(self, node: Node, name: str, arguments: list[Value], place: Place) -> Value:
        self._report_escaped(name, arguments, place)
        return _unknown(node)

    def _report_escaped(self, name: str, arguments: list[Value], place: Place) -> None:
        for one in arguments:
            self._library.escaped(one, name, place)

    def _on_creation(self, node: Node, scope: _Scope) -> Value:
        kind = type_name(node.child_by_field_name("type"))
        arguments = [self._value(one, scope) for one in arguments_of(node)]
        place = scope.owner.file.place(node)
        body = next((one for one in node.named_children if one.type == "class_body"), None)
        own = self.sources.find(kind, scope.owner)
        if body is not None:
            anonymous = JavaClass(
                f"{kind.rpartition('.')[2]}At{line_of(node)}",
                scope.owner.file,
                node,
                scope.owner,
                kind,
                (kind,),
            )
            read_body(anonymous, body)
            made = Instance(
                anonymous.name, tuple(arguments), place, anonymous, base_arguments=tuple(arguments)
            )
            if own:
                self._construct(made, own, arguments)
            self._initial_values(made, anonymous)
            return made
        if own:
            return self.create(own, arguments, place, kind)
        full = self.sources.full_name(kind, scope.owner)
        made = Instance(full, tuple(arguments), place, conditions=tuple(self.conditions))
        return self._library.create(self, made) or made

    def _on_array(self, node: Node, scope: _Scope) -> Value:
        value = node.child_by_field_name("value")
        return _unknown(node) if value is None else self._value(value, scope)

    def _on_index(self, node: Node, scope: _Scope) -> Value:
        array, index = node.child_by_field_name("array"), node.child_by_field_name("index")
        if array is None or index is None:
            return _unknown(node)
        items, at = self._value(array, scope), self._value(index, scope)
        position = integer(at)
        if isinstance(items, Items) and position is not None and 0 <= position < len(items.items):
            return items.items[position]
        return _unknown(node)

    def _on_assignment(self, node: Node, scope: _Scope) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return _unknown(node)
        value = self._value(right, scope)
        if text_of(node.child_by_field_name("operator")) not in ("=", ""):
            value = _unknown(node)
        self._assign(left, value, scope)
        return value

    def _assign(self, left: Node, value: Value, scope: _Scope) -> None:
        name = text_of(left.child_by_field_name("field") if left.type == "field_access" else left)
        on = left.child_by_field_name("object") if left.type == "field_access" else None
        if left.type == "array_access":
            array = left.child_by_field_name("array")
            items = self._value(array, scope) if array is not None else None
            if isinstance(items, Items):
                items.incomplete = True
        if left.type not in ("identifier", "field_access"):
            return
        if name not in scope.variables or on is not None:
            owner = self._static_owner(on, name, scope)
            if owner is not None:
                self._constants[owner, name] = self._either(self.constant_of(owner, name), value, ())
                return
        held: dict[str, Value]
        since: tuple[Condition, ...] = scope.conditions
        if on is not None and on.type != "this":
            target = self._value(on, scope) if self._is_variable(on, scope) else None
            if not isinstance(target, Instance):
                return
            held, since = target.fields, target.conditions
        elif on is None and name in scope.variables:
            held, since = scope.variables, scope.declared.get(name, scope.conditions)
        elif scope.this is not None:
            held, since = scope.this.fields, scope.this.conditions
        else:
            # A static method assigns to an unknown field. The new value counts only inside of this method.
            held = scope.variables
        held[name] = self._either(held.get(name), value, since)

    def _static_owner(self, on: Node | None, name: str, scope: _Scope) -> JavaClass | None:
        """Return the class of the static field ``name``; None if ``name`` is no static field."""
        if on is not None and on.type != "this":
            around = None if self._is_variable(on, scope) else self.sources.find(text_of(on), scope.owner)
        else:
            around = scope.owner
        while around is not None:
            for one in self.sources.ancestors(around):
                if name in one.fields:
                    return one if one.fields[name].static else None
            around = around.outer
        return None

    def _either(self, old: Value | None, new: Value, since: tuple[Condition, ...]) -> Value:
        """Return a variable's value after an assignment. An assignment in a branch or loop inside of ``since`` may not happen."""
        conditions = self.since(since)
        if not conditions:
            return new
        where = conditions[-1]
        if isinstance(old, Const) and old.value is not None and old != new:
            return replace(old, unless=f"{where.text} ({where.place})")
        if isinstance(old, Instance) and isinstance(new, Instance) and old is not new:
            old.unless = f"{where.text} ({where.place})"
            return old
        if isinstance(new, Instance) and (old is None or isinstance(old, Unknown | Const)):
            new.unless = f"not {where.text} ({where.place})"
            return new
        if isinstance(new, Const):
            return (
                replace(new, unless=f"not {where.text} ({where.place})")
                if not where.loop
                else Unknown("in a loop")
            )
        if old is None or isinstance(old, Unknown | Const):
            return new
        return old

    def _on_update(self, node: Node, scope: _Scope) -> Value:
        if node.named_children:
            self._assign(node.named_children[0], _unknown(node), scope)
        return _unknown(node)

    def _on_binary(self, node: Node, scope: _Scope) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return _unknown(node)
        a, b = self._value(left, scope), self._value(right, scope)
        operator = text_of(node.child_by_field_name("operator"))
        if operator in ("==", "!="):
            same = are_same(a, b)
            return _unknown(node) if same is None else Const(same == (operator == "=="))
        if not isinstance(a, Const) or not isinstance(b, Const):
            return _unknown(node)
        result = calculated(operator, a.value, b.value)
        return _unknown(node) if result is None else Const(result, a.unless or b.unless)

    def _on_unary(self, node: Node, scope: _Scope) -> Value:
        operand = node.child_by_field_name("operand")
        value = self._value(operand, scope) if operand is not None else None
        if isinstance(value, Const):
            sign = text_of(node.child_by_field_name("operator"))
            if sign == "-" and isinstance(value.value, int | float):
                return replace(value, value=-value.value)
            if sign == "!" and isinstance(value.value, bool):
                return replace(value, value=not value.value)
        return _unknown(node)

    def _on_ternary(self, node: Node, scope: _Scope) -> Value:
        condition = node.child_by_field_name("condition")
        yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if condition is None or yes is None or no is None:
            return _unknown(node)
        where = f"{text_of(condition)} ({scope.owner.file.place(node)})"
        a, b = self._value(yes, scope), self._value(no, scope)
        if isinstance(a, Const) and a == b:
            return a
        if isinstance(b, Const):
            return replace(b, unless=where)
        if isinstance(a, Const):
            return replace(a, unless=f"not {where}")
        return a if isinstance(b, Unknown) else b

    def _on_cast(self, node: Node, scope: _Scope) -> Value:
        value = node.child_by_field_name("value")
        return _unknown(node) if value is None else self._value(value, scope)

    def _on_parentheses(self, node: Node, scope: _Scope) -> Value:
        inner = [one for one in node.named_children if "comment" not in one.type]
        return self._value(inner[0], scope) if inner else _unknown(node)

    def _on_function(self, node: Node, scope: _Scope) -> Value:
        parameters = node.child_by_field_name("parameters")
        if parameters is None:
            count = -1  # a method reference fits any number of parameters
        elif parameters.type == "identifier":
            count = 1
        else:
            count = len([one for one in parameters.named_children if "comment" not in one.type])
        return Function(count, scope.owner.file.place(node), node)

    def _on_this(self, node: Node, scope: _Scope) -> Value:
        return scope.this or _unknown(node)

    def _on_integer(self, node: Node, scope: _Scope) -> Value:
        digits = text_of(node).replace("_", "").rstrip("lL")
        try:
            octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
            return Const(int(digits, 8 if octal else 0))
        except ValueError:
            return _unknown(node)

    def _on_float(self, node: Node, scope: _Scope) -> Value:
        try:
            return Const(float(text_of(node).replace("_", "").rstrip("fFdD")))
        except ValueError:
            return _unknown(node)

    def _on_string(self, node: Node, scope: _Scope) -> Value:
        literal = text_of(node)
        if literal.startswith('"""'):
            return Const(text_of_block(literal[3:-3]))
        return Const(unescaped(literal[1:-1]))


def _unknown(node: Node) -> Unknown:
    return Unknown(" ".join(text_of(node).split())[:80])


def _one_of(returned: list[Value], name: str) -> Value:
    """Return the value of a method that may return several values: the first known value, preferably not null."""
    known = [one for one in returned if not isinstance(one, Unknown)]
    objects = [one for one in known if not (isinstance(one, Const) and one.value is None)]
    if not known:
        return returned[0] if returned else Unknown(f"{name}(...)")
    first = (objects or known)[0]
    if isinstance(first, Const) and any(one != first for one in returned):
        return replace(first, unless=first.unless or f"{name}() returns something else")
    return first


def _explicit_call(constructor: JavaMethod | None) -> Node | None:
    """Return the call of ``this(...)`` or ``super(...)`` at the beginning of a constructor."""
    if constructor is None or constructor.body is None:
        return None
    return next(
        (one for one in constructor.body.named_children if one.type == "explicit_constructor_invocation"),
        None,
    )


def _is_fluent(value: Instance, method: JavaMethod) -> bool:
    if value.java_class is None:
        return False
    return method.returns in (method.owner.name, value.java_class.name)


def _assigned_in(node: Node | None) -> set[str]:
    """Return the names of the variables and fields that the code assigns to."""
    if node is None:
        return set()
    found = set()
    for one in descendants(node, "assignment_expression", "update_expression"):
        target = one.child_by_field_name("left") or (one.named_children[0] if one.named_children else None)
        if target is not None and target.type in ("identifier", "field_access"):
            found.add(text_of(target).removeprefix("this."))
    return found


_STATEMENTS: Final[dict[str, Callable[[Evaluation, Node, _Scope], None]]] = {
    "expression_statement": Evaluation._on_expression,
    "local_variable_declaration": Evaluation._on_declaration,
    "return_statement": Evaluation._on_return,
    "if_statement": Evaluation._on_if,
    "for_statement": Evaluation._on_loop,
    "enhanced_for_statement": Evaluation._on_loop,
    "while_statement": Evaluation._on_loop,
    "do_statement": Evaluation._on_loop,
    "try_statement": Evaluation._on_try,
    "try_with_resources_statement": Evaluation._on_try,
    "switch_expression": Evaluation._on_switch,
    "block": Evaluation._on_inner_block,
    "synchronized_statement": Evaluation._on_inner_block,
    "labeled_statement": Evaluation._on_inner_block,
    "explicit_constructor_invocation": Evaluation._on_constructor_call,
    "throw_statement": lambda self, node, scope: None,
    # The parser makes this node for a switch with arrows, and for code with syntax errors.
    "ERROR": Evaluation._on_inner_block,
}

_EXPRESSIONS: Final[dict[str, Callable[[Evaluation, Node, _Scope], Value]]] = {
    "identifier": Evaluation._on_identifier,
    "field_access": Evaluation._on_field_access,
    "method_invocation": Evaluation._on_call,
    "object_creation_expression": Evaluation._on_creation,
    "array_creation_expression": Evaluation._on_array,
    "array_access": Evaluation._on_index,
    "assignment_expression": Evaluation._on_assignment,
    "update_expression": Evaluation._on_update,
    "binary_expression": Evaluation._on_binary,
    "unary_expression": Evaluation._on_unary,
    "ternary_expression": Evaluation._on_ternary,
    "cast_expression": Evaluation._on_cast,
    "parenthesized_expression": Evaluation._on_parentheses,
    "lambda_expression": Evaluation._on_function,
    "method_reference": Evaluation._on_function,
    "this": Evaluation._on_this,
    "decimal_integer_literal": Evaluation._on_integer,
    "hex_integer_literal": Evaluation._on_integer,
    "octal_integer_literal": Evaluation._on_integer,
    "binary_integer_literal": Evaluation._on_integer,
    "decimal_floating_point_literal": Evaluation._on_float,
    "string_literal": Evaluation._on_string,
    "character_literal": lambda self, node, scope: Const(Char(unescaped(text_of(node)[1:-1]))),
    "true": lambda self, node, scope: Const(True),
    "false": lambda self, node, scope: Const(False),
    "null_literal": lambda self, node, scope: Const(None),
    "class_literal": lambda self, node, scope: Name(text_of(node)),
}
