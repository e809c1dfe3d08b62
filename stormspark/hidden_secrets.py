"""Hides secrets in commands and configurations that are shown, because others may read them: in logs of CI, and on screens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["hidden_in", "without_secrets"]

#: What the names of secrets have in common.
_NAME = (
    r"secret|passw|passphrase|pwd\b|token|credential|auth[._]payload|(?:access|account|api|private|encryption|shared|signing)[._-]?key|jaas|"
    r"signature|bearer|authorization|cookie|(?<![^\W_])(?:sas(?![^\W_])|pass(?!\w))"
)
#: The headers that a reporter or a client sends are mostly there because one of them is a secret, whatever its name.
_TELLS = re.compile(rf"{_NAME}|headers$", re.IGNORECASE)
#: The name of a secret, and the sign between it and its value: in assignments, properties of Java, JSON, and the query of a URL.
_ASSIGNED = re.compile(rf"(?:{_NAME})[^\s=:]*\s*[=:]|[?&]sig=", re.IGNORECASE)
#: A URL with a user's password. Oracle's URLs have them with a slash. In URLs of HTTP, the user may be a token; in those of
#: storage, it may be a container.
_URL = re.compile(r"://[^\s@/]*:[^\s@]*@|https?://[^\s@/]+@|:thin:[^\s@/]+/[^\s@]+@", re.IGNORECASE)
#: The value of a header with a token or a password.
_SCHEME = re.compile(r"\s*(?:bearer|basic)\s+\S+\s*\Z", re.IGNORECASE)
_HIDDEN = "***"


def without_secrets(parts: Sequence[str]) -> list[str]:
    """Return a command without the values of settings that look like secrets by their key or by their value.

    >>> without_secrets(["--conf", "spark.hadoop.fs.s3a.secret.key=x", "run", "-c", 'my.password="y"', "-c", "n=1"])
    ['--conf', 'spark.hadoop.fs.s3a.secret.key=***', 'run', '-c', 'my.password=***', '-c', 'n=1']
    >>> without_secrets(["--repositories", "https://me:x@host/maven", "--arg", "--token", "--arg", "x", "--name", "flow"])
    ['--repositories', '***', '--arg', '--token', '--arg', '***', '--name', 'flow']
    >>> without_secrets(["--archives", "a.zip#a,https://ghp_x@host/env.tar.gz", "--jars", "abfss://container@account/a.jar"])
    ['--archives', '***', '--jars', 'abfss://container@account/a.jar']
    """
    found: list[str] = []
    for at, part in enumerate(parts):
        option = parts[at - 1] if at else ""
        key, given, value = part.partition("=")
        # What follows an option with such a name, also if both are values of another option.
        names = [
            one
            for one in (option, parts[at - 2] if at > 1 and option.startswith("-") else "")
            if one[:1] == "-"
        ]
        if given and option in ("--conf", "-c"):
            hide = _TELLS.search(key) or _TELLS.search(value) or _ASSIGNED.search(value) or _URL.search(value)
            found.append(f"{key}={_HIDDEN}" if hide else part)
        elif (
            _ASSIGNED.search(part)
            or _URL.search(part)
            or (not part.startswith("-") and any(_TELLS.search(one) and "=" not in one for one in names))
        ):
            found.append(_HIDDEN)
        else:
            found.append(part)
    return found


def hidden_in(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the values that look like secrets by their keys, or by themselves.

    Numbers, booleans and None are no secrets.

    >>> hidden_in({"my.password": "x", "max.tokens": 5, "db": {"url": "jdbc:x://me:x@host", "api_key": ["x"]}, "name": "a"})
    {'my.password': '***', 'max.tokens': 5, 'db': {'url': '***', 'api_key': '***'}, 'name': 'a'}
    >>> hidden_in({"otlp.headers": {"x-team": "x"}, "argument": "Bearer abcdef", "shell": ["run", "--token", "x", "-v"]})
    {'otlp.headers': '***', 'argument': '***', 'shell': ['run', '--token', '***', '-v']}
    """
    return {key: _hidden(value, tells=bool(_TELLS.search(str(key)))) for key, value in conf.items()}


def _hidden(value: Any, *, tells: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if tells:
        return _HIDDEN
    if isinstance(value, Mapping):
        return hidden_in(value)
    if isinstance(value, list | tuple):
        # The list may be a command, in which a value follows the name of its option.
        return [
            _hidden(one, tells=_is_option(before) and bool(_TELLS.search(before)))
            for before, one in zip(["", *value], value, strict=False)
        ]
    text = str(value)
    return _HIDDEN if _ASSIGNED.search(text) or _URL.search(text) or _SCHEME.match(text) else value


def _is_option(part: Any) -> bool:
    return isinstance(part, str) and part.startswith("-") and "=" not in part
