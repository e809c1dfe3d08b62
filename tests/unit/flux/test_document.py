from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.errors import InvalidTopologyError
from stormspark.flux.document import Located, parsed


def refused(text, ask=lambda root: root.value()):
    with pytest.raises(InvalidTopologyError) as caught:
        ask(parsed(text, "t.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (
            "a: 1\nb: !!python/object/apply:os.system [ls]",
            2,
            "the tag !!python/object/apply:os.system is not allowed",
        ),
        ("a: !com.acme.Bolt {}", 1, "the tag !com.acme.Bolt is not allowed"),
        ("a: 1\nb:\n  - !!javax.script.ScriptEngineManager []", 3, "is not allowed"),
        ("a: 1\nb: 2\na: 3", 3, "line 1 has the key 'a' already"),
        ("a:\n  b: {c: 1, c: 2}", 2, "line 2 has the key 'c' already"),
        ("a: [1", 1, "this is not YAML"),
        ("a: 1\n b: 2", 2, "this is not YAML: mapping values are not allowed here"),
        ("a: 1\n\tb: 2", 2, "this is not YAML"),
        ("a: 1\n---\nb: 2", 2, "this is not YAML: but found another document"),
        ("a: *nope", 1, "found undefined alias 'nope'"),
        ("a: &x [1, *x]", 1, "an alias is inside the value that it stands for"),
        ("a: &x {b: *x}", 1, "an alias is inside the value that it stands for"),
        ("a: 2001-99-99", 1, "is no value"),
        ("? [1, 2]\n: a\n{}", None, ""),
        ("? {a: 1}\n: b", 1, "unhashable key"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(text, line, told):
    """K13: no tags, no key twice, no second document; each with file and line."""
    message = refused(text)
    assert message.startswith(f"t.yaml:{line}:" if line else "t.yaml")
    assert told in message


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_file_is_reported(text):
    """K13: a file without anything."""
    assert "t.yaml: the file is empty" in refused(text)


def test_a_character_that_yaml_lacks_is_reported():
    """K13: a character that YAML does not have."""
    assert refused("a: \x01").startswith("t.yaml: this is not YAML")


@pytest.mark.slow
def test_deep_nesting_ends_with_a_message():
    """K13: whatever is handed in, an error says what is wrong."""
    assert "nested too deeply" in refused("[" * 20_000)


def test_anchors_and_merge_keys_are_plain_yaml():
    """K13: what stands twice may be an alias; a key of its own wins over a merged one."""
    root = parsed("base: &b {a: 1, c: 2}\none: {<<: *b, a: 3}\ntwo: *b\n", "t.yaml")
    assert root.value() == {"base": {"a": 1, "c": 2}, "one": {"a": 3, "c": 2}, "two": {"a": 1, "c": 2}}
    one = root.mapping("it", ["base", "one", "two"])["one"].mapping("one", ["a", "c"])
    assert (one["a"].whole("a"), one["c"].whole("c")) == (3, 2)


def test_many_aliases_cost_nothing():
    """K13: a document that would be huge if its aliases were copied."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 60)]
    assert len(parsed("\n".join(lines), "t.yaml").value()) == 60


def test_scalars_are_what_is_asked_for():
    """K14: as in Storm, 7 is a text where a text is wanted, and '7' a number where a number is."""
    keys = parsed("{n: 7, q: '7', f: 1.50, b: yes, t: 'true', v: 1.10, o: 0x10}", "t.yaml").mapping(
        "it", list("nqfbtvo")
    )
    assert [keys[k].text(k) for k in "nfvb"] == ["7", "1.50", "1.10", "yes"]
    assert [keys[k].whole(k) for k in "nqo"] == [7, 7, 16]
    assert [keys[k].number(k) for k in "nqf"] == [7, 7, 1.5]
    assert [keys[k].flag(k) for k in "bt"] == [True, True]
    assert type(keys["q"].value()) is str and type(keys["n"].value()) is int


@pytest.mark.parametrize(
    ("ask", "value", "told"),
    [
        (lambda n: n.whole("n"), "1.5", "n must be a whole number, got '1.5'"),
        (lambda n: n.whole("n"), "true", "n must be a whole number, got 'true'"),
        (lambda n: n.whole("n"), "[1]", "n must be a whole number, got a list"),
        (lambda n: n.number("n"), "x", "n must be a number, got 'x'"),
        (lambda n: n.flag("n"), "1", "n must be true or false, got '1'"),
        (lambda n: n.text("n"), "{a: 1}", "n must be a string, got a mapping"),
        (lambda n: n.text("n"), "''", "n must be a string, got ''"),
        (lambda n: n.text("n"), "~", "n must be a string, got nothing"),
        (lambda n: n.items("n"), "x", "n must be a list, got 'x'"),
        (lambda n: n.mapping("n", []), "[]", "n must be a mapping, got a list"),
        (lambda n: n.mapping("n", ["abc"]), "{abd: 1}", "n has no key 'abd': did you mean 'abc'?"),
        (lambda n: n.mapping("n", ["abc"]), "{[1]: 1}", "a key of n must be a string"),
    ],
)
def test_another_type_is_refused(ask, value, told):
    """K13-K17: what was expected, what came, and where."""
    assert refused(f"a:\n  {value}", lambda root: ask(root.entries("it")["a"][0])) == f"t.yaml:2: {told}"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("ab#:-[]{}&*! \n", max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_plain_data_comes_through(data):
    """K13: what YAML can write is read as it was."""
    import yaml

    assert parsed(yaml.safe_dump(data), "t.yaml").value() == data


@given(st.text("ab:-[]{}&*!|>'\"#,?%@ \n\t<", max_size=40))
def test_whatever_text_is_read_or_refused(text):
    """K13: no text ends in another error than ours."""
    with suppress(InvalidTopologyError):
        root = parsed(text, "t.yaml")
        assert isinstance(root, Located)
        root.value()
