"""Makes drafts in Python 3 of files in Python 2, with fissix, which is lib2to3 as it is kept up outside of Python.

A file that mixes tabs and spaces gets spaces. A draft is for the user to check: fissix does not know the types of values.
"""

from __future__ import annotations

import difflib
import io
import logging
import re
import tokenize
import warnings
from functools import cache
from typing import Any, Final

__all__ = ["can_draft", "decoded", "diff_of", "in_python3", "lines_before", "without_keywords"]

_FIXERS: Final = "fissix.fixes"
_NEW_KEYWORDS: Final = re.compile(r"\b(?:async|await)\b")
#: Longer files are compared by lines that are not frequent in them. Otherwise a file of data takes minutes.
_MOST_LINES: Final = 2000
#: Fixers that change what is right in Python 3 too: parentheses around a set literal, white space after commas, and so on.
_NOT: Final = {"buffer", "idioms", "set_literal", "ws_comma"}


def can_draft() -> bool:
    """Return whether fissix is installed."""
    return _tool(False, False) is not None


def in_python3(
    source: bytes, name: str, *, in_package: bool = False, has_print_function: bool = False
) -> str | None:
    r"""Return a draft of a file in Python 3. None if fissix is not installed, or if the file is no Python at all.

    ``name`` is the file's path. If the file is ``in_package``, an import of a module beside it becomes a relative one. With
    ``has_print_function`` the file has no print statement.

    >>> print(in_python3(b"print 'a', 1L", "a.py") if can_draft() else "print('a', 1)\n")
    print('a', 1)
    <BLANKLINE>
    """
    tool = _tool(in_package, has_print_function)
    text = decoded(source)
    if tool is None or text is None:
        return None
    if not text.endswith("\n"):
        text += "\n"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draft = without_keywords(str(tool.refactor_string(text, name)))
            return _with_spaces(draft) if _mixes_tabs(draft) else draft
    except Exception:  # fissix raises errors of many types for a file that is no Python
        return None


def decoded(source: bytes) -> str | None:
    """Return the text of a Python file, by the encoding that it declares; a file of Python 2 may also be in Latin-1."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        try:
            return source.decode("latin-1")
        except UnicodeDecodeError:
            return None


@cache
def _tool(in_package: bool, has_print_function: bool) -> Any:
    try:
        from fissix import refactor
    except ImportError:
        return None
    for name in ("RefactoringTool", "fissix.main", "fissix"):
        logging.getLogger(name).setLevel(logging.ERROR)
    left_out = _NOT | (set() if in_package else {"import"}) | ({"print"} if has_print_function else set())
    every = refactor.get_fixers_from_package(_FIXERS)
    fixers = [one for one in every if one.rpartition("fix_")[2] not in left_out]
    options = {"print_function": True} if has_print_function else {}
    return refactor.RefactoringTool(fixers, options)


def without_keywords(text: str) -> str:
    r"""Add an underscore to the names ``async`` and ``await``, which Python 2 allows and Python 3 does not. fissix leaves them.

    >>> print(without_keywords("f(async=True)  # async=True") if can_draft() else "f(async_=True)  # async=True")
    f(async_=True)  # async=True
    """
    from fissix.pgen2 import tokenize as tokens

    if not _NEW_KEYWORDS.search(text) or _is_python3(text):
        return text
    lines = text.splitlines(keepends=True)
    found = [
        start
        for kind, name, start, _, _ in tokens.generate_tokens(io.StringIO(text).readline)
        if kind in (tokens.NAME, tokens.ASYNC, tokens.AWAIT) and name in ("async", "await")
    ]
    for row, column in reversed(found):
        line = lines[row - 1]
        end = column + len("async")
        lines[row - 1] = f"{line[:end]}_{line[end:]}"
    return "".join(lines)


def _is_python3(text: str) -> bool:
    return isinstance(_error_of(text), TabError | None)


def _mixes_tabs(text: str) -> bool:
    return isinstance(_error_of(text), TabError)


def _error_of(text: str) -> Exception | None:
    """Return why Python 3 can't compile a text; None if it can."""
    try:
        compile(text, "draft", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return error
    return None


def _with_spaces(text: str) -> str:
    """Replace tabs before code by spaces, as Python 2 counts them: up to the next multiple of eight."""
    from fissix.pgen2 import tokenize as tokens

    inside: set[int] = set()  # lines that begin within a string
    for kind, _, (first, _), (last, _), _ in tokens.generate_tokens(io.StringIO(text).readline):
        if kind == tokens.STRING:
            inside.update(range(first + 1, last + 1))
    lines = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.lstrip(" \t")
        before = line[: len(line) - len(bare)]
        lines.append(line if number in inside else before.expandtabs(8) + bare)
    return "".join(lines)


def _encoded(draft: str, source: bytes) -> bytes:
    """Return the bytes of a draft, in the encoding that `decoded` has found for the file."""
    for encoding in ("utf-8", "latin-1"):
        try:
            if source.decode(encoding) == decoded(source):
                return draft.encode(encoding)
        except (UnicodeDecodeError, UnicodeEncodeError):
            continue
    try:
        return draft.encode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])
    except (SyntaxError, LookupError, UnicodeEncodeError):
        return draft.encode()


def _escaped(source: bytes) -> str:
    return source.decode("utf-8", "surrogateescape")


def lines_before(before: str, after: str) -> list[int]:
    r"""Return, for each line of a draft, the number of the line in the file from which it was made. Both count from 1.

    >>> lines_before("import a\nprint 1\n", "import a\nimport b\nprint(1)\n")
    [1, 2, 2]
    """
    old, new = before.splitlines(), after.splitlines()
    same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        same = min(len(old), len(new))
    numbers = list(range(1, same + 1))
    matcher = difflib.SequenceMatcher(None, old[same:], new[same:], autojunk=len(new) > _MOST_LINES)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        last = max(i, i_end - 1)
        numbers += [min(i + step, last) + 1 + same for step in range(j_end - j)]
    return numbers


def diff_of(name: str, source: bytes, draft: str) -> str:
    r"""Return the unified diff between a file and its draft. ``patch -p1`` applies it.

    In a file that is not UTF-8, bytes of letters are surrogates, so that ``surrogateescape`` writes the same bytes again.

    >>> print(diff_of("a.py", b"print 1", "print(1)\n"), end="")
    --- a/a.py
    +++ b/a.py
    @@ -1 +1 @@
    -print 1
    \ No newline at end of file
    +print(1)
    """
    before, after = (_escaped(one).splitlines(keepends=True) for one in (source, _encoded(draft, source)))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
