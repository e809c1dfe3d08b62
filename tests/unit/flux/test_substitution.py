import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.errors import InvalidTopologyError
from stormspark.flux.substitution import parsed_properties, read_properties, substituted

PROPERTIES = {"name": "words", "list": '["a", "b b", c]', "a.b-c": "x", "odd[1]": "y"}


def replaced(text, **environment):
    return substituted(text, "t.yaml", PROPERTIES, environment or None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: ${name}", "name: words"),
        ("${a.b-c}", "x"),
        ("${name}/${a.b-c}/${name}", "words/x/words"),
        ("l: ${list}", 'l: ["a", "b b", c]'),
        ("${list[0]} ${list[1]} ${list[2]}", "a b b c"),
        ("${odd[1]}", "y"),
        ("name: '${name}'\n# ${name}\n", "name: 'words'\n# words\n"),
        ("$name ${} {name}", "$name ${} {name}"),
    ],
)
def test_properties_are_put_in_as_text(text, expected):
    """K18: ${key} is a property, ${key[i]} an element of a list; all of a line are replaced."""
    assert replaced(text) == expected


def test_the_environment_is_looked_at_if_asked_for(caplog):
    """K18: ${ENV-NAME} is an environment variable, with --env-filter only."""
    assert replaced("to: ${ENV-HOST}", HOST="a:1") == "to: a:1"
    assert replaced("to: ${ENV-HOST}") == "to: ${ENV-HOST}"
    assert "--env-filter" in caplog.text


@pytest.mark.parametrize("variable", ["${nme}", "${list[3]}", "${nme[0]}", "${ENV-NOPE}"])
def test_what_has_no_value_stays_with_a_warning(variable, caplog):
    """K18: a variable without a value is left as it is, and told with its line."""
    with caplog.at_level(logging.WARNING):
        assert replaced(f"a: 1\nb: {variable}\n", HOST="a") == f"a: 1\nb: {variable}\n"
    assert f"t.yaml:2: nothing to replace {variable} with" in caplog.text


def test_nobody_is_warned_of_a_comment(caplog):
    """K18: what a comment mentions needs no value."""
    replaced("  # such as ${nope}\n")
    assert not caplog.text


def test_a_value_is_not_replaced_again():
    """K18: a value that looks like a variable is none."""
    assert substituted("${a}", "t.yaml", {"a": "${b}", "b": "c"}) == "${b}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\nd = 4 \n", {"a": "1", "b": "2", "c": "3", "d": "4 "}),
        ("# a=1\n! b=2\n\n   c=3", {"c": "3"}),
        ("key\\ with\\:signs\\== v", {"key with:signs=": "v"}),
        ("a=1,\\\n   2,\\\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=ends with \\\\\nb=4", {"a": "ends with \\", "b": "4"}),
        ("a=\\u0041\\n\\t\\q", {"a": "A\n\tq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("url: http://host:80/a=b", {"url": "http://host:80/a=b"}),
        ("a=\\", {"a": ""}),
        ("only", {"only": ""}),
    ],
)
def test_properties_are_read_as_java_does(text, expected):
    """K18: the format of java.util.Properties."""
    assert parsed_properties(text) == expected


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
)
def test_properties_that_were_written_are_read(properties):
    """K18: whatever is escaped comes back."""

    def escaped(text):
        return "".join(
            one if one.isalnum() and one.isascii() else "".join(f"\\u{unit:04x}" for unit in _utf16(one))
            for one in text
        )

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items())
    assert parsed_properties(text) == properties


def _utf16(one):
    data = one.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i : i + 2]) for i in range(0, len(data), 2)]


def test_a_file_may_be_in_javas_old_encoding(tmp_path):
    """K18: UTF-8, else Latin-1."""
    file = tmp_path / "a.properties"
    file.write_bytes("a=ü".encode("latin-1"))
    assert read_properties(file) == {"a": "ü"}
    file.write_bytes("a=ü".encode())
    assert read_properties(file) == {"a": "ü"}


def test_a_missing_properties_file_is_named(tmp_path):
    """K18, K19: --filter names a file that is not there."""
    with pytest.raises(InvalidTopologyError, match=r"nope\.properties can't be read: No such file"):
        read_properties(tmp_path / "nope.properties")
