from datetime import timedelta

import pytest

from stormspark.errors import InvalidTopologyError
from tests.unit.flux.parts import Color

THING = "className: tests.unit.flux.parts.Thing\n"


@pytest.fixture
def wrong(made):
    def refused(text, before=""):
        with pytest.raises(InvalidTopologyError) as caught:
            made(text, before)
        return str(caught.value)

    return refused


def test_a_constructor_is_found_by_the_number_of_its_arguments(made):
    """K14: constructorArgs, fewer of them too; whole numbers are floats where these are wanted, and stay ints elsewhere."""
    assert made(THING).made_of == ("", 0.0, False)
    thing = made(THING + "constructorArgs: [a, 2, true, 3]")
    assert thing.made_of == ("a", 2.0, True, 3)
    assert [type(value) for value in thing.made_of] == [str, float, bool, int]


def test_java_s_variable_arguments_are_a_list(made):
    """K14: a list is spread where Java has variable arguments."""
    assert made(THING + "constructorArgs: [a, 1, true, [1, 2]]").made_of == ("a", 1.0, True, 1, 2)
    assert made(THING + "configMethods: [{name: withSeveral, args: [[1, 2]]}]").called == [(1, 2)]


def test_a_factory_is_a_static_method(made):
    """K14: factory and factoryArgs; enum constants by name."""
    assert made(THING + "factory: ofColor\nfactoryArgs: [BLUE]").made_of[0] == "BLUE"
    assert made(THING + "factory: newNumber\nfactoryArgs: [7]").made_of[0] == "7"


def test_a_factory_may_be_in_a_module(made):
    """K14, K23: a dotted path may lead to a module, with a function of it as factory."""
    assert made("className: tests.unit.flux.parts\nfactory: Thing\nfactoryArgs: [x]").made_of[0] == "x"


def test_properties_are_setters_or_public_attributes(made):
    """K14: a setter with one argument, else an attribute, in Java's spelling or Python's."""
    thing = made(
        THING
        + """
properties:
- {name: size, value: 5}
- {name: public, value: RED}
- {name: camelCase, value: x}
"""
    )
    assert (thing.called, thing.public, thing.camelCase) == ([5.0], Color.RED, "x")


def test_config_methods_are_called_in_their_order(made):
    """K14: configMethods with and without args; what they return is not looked at."""
    thing = made(
        THING
        + """
configMethods:
- {name: withColor, args: [RED]}
- {name: withNone}
- {name: withBoth, args: [a, 1]}
- {name: with_none}
"""
    )
    assert thing.called == [Color.RED, "none", ("a", 1), "none"]


def test_references_are_the_objects_themselves(made):
    """K14: ref and reflist, in arguments of constructors, factories and methods, and in properties."""
    one, several, by_property = made(
        """
className: builtins.list
constructorArgs:
- reflist: [first, second, second]
""",
        """
- {id: first, className: tests.unit.flux.parts.Thing}
- {id: second, className: tests.unit.flux.parts.Thing, configMethods: [{name: withSeveral, args: [{ref: first}, 1]}],
   properties: [{name: public, value: RED}, {name: camelCase, ref: first}]}
""",
    )
    assert several is by_property
    assert several.called == [(one, 1)] and several.camelCase is one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "constructorArgs: [a, 1, maybe]",
            "Thing takes (name='', share=0.0, on=False, *rest): on must be true or false, got 'maybe'",
        ),
        ("constructorArgs: [1]", "name must be a string, got 1"),
        ("constructorArgs: [a, true]", "share must be a number, got True"),
        (
            "factory: ofColor\nfactoryArgs: [GREEN]",
            "factory ofColor takes (color): color must be one of RED, BLUE, got 'GREEN'",
        ),
        ("factory: ofColor", "factory ofColor takes (color), got no arguments"),
        (
            "factory: newNumber\nfactoryArgs: [x]",
            "factory newNumber takes (number): number must be a whole number, got 'x'",
        ),
        ("factory: newNumbr", "has no factory newNumbr: did you mean"),
        (
            "properties: [{name: siz, value: 1}]",
            "has neither a method set_siz nor an attribute siz: did you mean 'size'?",
        ),
        (
            "properties: [{name: size, value: x}]",
            "property size takes (size): size must be a number, got 'x'",
        ),
        (
            "properties: [{name: public, value: PINK}]",
            "property public can't be 'PINK': must be one of RED, BLUE",
        ),
        (
            "properties: [{name: called, ref: nope}]",
            "there is no component 'nope' to refer to: there are 'made'",
        ),
        (
            "configMethods: [{name: withColour, args: [RED]}]",
            "has no config method withColour: did you mean 'with_color'",
        ),
        (
            "configMethods: [{name: withBoth, args: [a]}]",
            "config method withBoth takes (one, other), got 'a'",
        ),
        ("configMethods: [{name: withBoth, args: [a, b, c]}]", "got 'a', 'b', 'c'"),
        ("configMethods: [{name: fails}]", "config method fails raised LookupError: it is not there\n  at "),
        ("constructorArgs: [ref: made]", "ref 'made' is declared at"),
        (
            "constructorArgs: [ref: mad]",
            "there is no component 'mad' to refer to: did you mean 'made'?",
        ),
    ],
)
def test_what_does_not_fit_is_refused(wrong, text, told):
    """K14: the component, its class, the line, what it takes and what came."""
    message = wrong(THING + text)
    assert told in message
    assert "topology.yaml:" in message


def test_a_cycle_of_references_is_refused(wrong):
    """K14: a ref must be declared further up, so there are no cycles."""
    message = wrong(
        THING + "constructorArgs: [{ref: other}]",
        "- {id: other, className: tests.unit.flux.parts.Thing, properties: [{name: camelCase, ref: made}]}\n",
    )
    assert "topology.yaml:3: ref 'made' is declared at" in message
    assert "topology.yaml:4, after the component that refers to it: move it further up" in message


def test_a_module_is_no_component(wrong):
    """K23: the class in the module is missing."""
    assert "tests.unit.flux.parts is a module: name a class" in wrong("className: tests.unit.flux.parts")


def test_an_int_is_no_index_of_a_list(made):
    """K14: values of YAML are handed on as they are where nothing says what is wanted."""
    thing = made(THING + "configMethods: [{name: withSeveral, args: [1, 1.5, yes, ~, {a: [b]}]}]")
    assert thing.called == [(1, 1.5, True, None, {"a": ["b"]})]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "className: java.util.Properties\nconfigMethods: [{name: put, args: [a, 1]}, {name: setProperty, args: [b, c]}]",
            {"a": 1, "b": "c"},
        ),
        (
            "className: java.util.HashMap\nconstructorArgs: [{a: 1}]\nconfigMethods: [{name: putAll, args: [{b: 2}]}]",
            {"a": 1, "b": 2},
        ),
        (
            "className: java.util.ArrayList\nconfigMethods: [{name: add, args: [1]}, {name: addAll, args: [[2, 3]]}]",
            [1, 2, 3],
        ),
        ("className: java.util.HashSet\nconstructorArgs: [[a, a]]", {"a"}),
        ("className: java.util.Arrays\nfactory: asList\nfactoryArgs: [[a, b]]", ["a", "b"]),
        ("className: java.lang.Integer\nconstructorArgs: [7]", 7),
        ("className: java.lang.Long\nfactory: valueOf\nfactoryArgs: ['7']", 7),
        ("className: java.lang.String\nconstructorArgs: [a]", "a"),
        ("className: java.lang.Boolean\nfactory: valueOf\nfactoryArgs: ['True']", True),
        ("className: java.lang.Double\nfactory: valueOf\nfactoryArgs: [2]", 2.0),
        ("className: java.time.Duration\nfactory: ofHours\nfactoryArgs: [10]", timedelta(hours=10)),
        ("className: java.time.Duration\nfactory: parse\nfactoryArgs: [P1DT2H]", timedelta(hours=26)),
    ],
)
def test_java_s_values_are_python_s(made, text, value):
    """K23: the classes of java.util, java.lang and java.time that files use."""
    assert made(text) == value


def test_fields_take_a_list(made, wrong):
    """K14, K23: as Java's constructor, Fields takes a list of names, and not one text."""
    assert list(made("className: org.apache.storm.tuple.Fields\nconstructorArgs: [[a, b]]")) == ["a", "b"]
    message = wrong("className: backtype.storm.tuple.Fields\nconstructorArgs: [count]")
    assert "backtype.storm.tuple.Fields takes (names): names must be a list, got 'count'" in message


def test_lengths_of_windows(made):
    """C23, K23: Count and Duration, by constructor with a unit or by a static method."""
    count = "className: org.apache.storm.topology.base.BaseWindowedBolt$Count\nconstructorArgs: [5]"
    assert made(count).value == 5
    duration = "className: org.apache.heron.api.bolt.BaseWindowedBolt$Duration\n"
    assert made(duration + "constructorArgs: [5, MINUTES]").value == 300_000
    assert made(duration + "factory: seconds\nfactoryArgs: [2]").value == 2000
