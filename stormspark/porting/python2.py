"""Reports what of a project's Python only works in Python 2, and drafts the files in Python 3.

Two kinds of files are reported. Python 3 can't parse those of the first kind. It can parse those of the second kind, but they use
names that it lacks, or import a module beside them as if that were on the module path.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from stormspark.porting.drafts_in_python3 import can_draft, decoded, diff_of, in_python3
from stormspark.porting.findings import Findings, Place
from stormspark.porting.python_source import PythonFile, PythonProject

__all__ = ["GONE_MODULES", "old_spellings", "report_python2"]

#: Modules of Python 2 that Python 3 has under another name, or not at all.
GONE_MODULES: Final = {
    "ConfigParser": "configparser",
    "Queue": "queue",
    "cPickle": "pickle",
    "copy_reg": "copyreg",
    "cStringIO": "io",
    "StringIO": "io",
    "httplib": "http.client",
    "urlparse": "urllib.parse",
    "urllib2": "urllib.request",
    "HTMLParser": "html.parser",
    "Cookie": "http.cookies",
    "cookielib": "http.cookiejar",
    "xmlrpclib": "xmlrpc.client",
    "SocketServer": "socketserver",
    "BaseHTTPServer": "http.server",
    "SimpleHTTPServer": "http.server",
    "thread": "_thread",
    "commands": "subprocess",
    "md5": "hashlib",
    "sha": "hashlib",
    "__builtin__": "builtins",
    "Tkinter": "tkinter",
    "htmlentitydefs": "html.entities",
    "robotparser": "urllib.robotparser",
    "dummy_thread": "_dummy_thread",
    "UserDict": "collections",
    "anydbm": "dbm",
    "sets": "set",
}
_GONE_NAMES: Final = {
    *(
        "unicode",
        "basestring",
        "long",
        "xrange",
        "raw_input",
        "unichr",
        "reduce",
        "reload",
        "execfile",
        "cmp",
        "intern",
    ),
    *("file", "apply", "buffer", "coerce"),
}
#: Names that a draft has because those before became keywords.
_RENAMED: Final = re.compile(r"\b(async|await)_(?!\w)")
_GONE_METHODS: Final = {
    "iteritems",
    "itervalues",
    "iterkeys",
    "has_key",
    "viewitems",
    "viewkeys",
    "viewvalues",
}
_GONE_ATTRIBUTES: Final = {
    *(
        "sys.setdefaultencoding",
        "sys.maxint",
        "itertools.izip",
        "itertools.imap",
        "itertools.ifilter",
        "os.getcwdu",
    ),
    *("string.letters", "string.maketrans", "string.join", "string.upper", "string.lower", "urllib.urlopen"),
    *("urllib.urlencode", "urllib.quote", "urllib.unquote"),
}


def report_python2(
    project: PythonProject,
    files: Sequence[PythonFile],
    findings: Findings,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Report each file that is not Python 3, with its lines, and keep a diff of its draft in ``findings.python3``."""
    for number, file in enumerate(files, 1):
        progress(f"looking for Python 2 in file {number:,} of {len(files):,}: {file.shown}")
        source = file.path.read_bytes()
        if file.path in project.old:
            place, error = project.old[file.path]
            draft = project.drafts[file.path]
            what = f"is Python 2: Python 3 says {error!r}"
        else:
            spellings = sorted(old_spellings(project, file))
            if not spellings:
                continue
            place = Place(file.shown, spellings[0][0])
            has_statement = any(map(_prints_to_file, ast.walk(file.tree)))
            found = in_python3(
                source,
                str(file.path),
                in_package=project.is_in_package(file.path),
                has_print_function=not has_statement,
            )
            draft = found if found is not None else decoded(source) or ""
            listed = ", ".join(f"{what} (line {line})" for line, what in spellings[:8])
            more = f" and {len(spellings) - 8} more" if len(spellings) > 8 else ""
            what = f"only works in Python 2: {listed}{more}"
        diff = diff_of(file.shown, source, draft)
        if file.path in project.old and any(line.startswith("+from .") for line in diff.splitlines()):
            what += ", and it imports modules beside it as if they were on the module path"
        if any(line.startswith("+") and _RENAMED.search(line) for line in diff.splitlines()):
            what += (
                ", and async and await are keywords since Python 3.7: the draft adds an underscore to names, "
                "but libraries have other new names (tweepy's async is is_async)"
            )
        changed = sum(line.startswith("-") for line in diff.splitlines()[2:])
        if diff:
            findings.python3[file.shown] = diff
            todo = f"python3.diff, which --out writes, is a draft in Python 3: {_lines(changed)} change; check it, and try it"
        elif not can_draft():
            todo = "for a draft in Python 3: pip install 'stormspark[port]'"
        else:
            todo = "write it for Python 3"
        findings.report("change", f"{file.shown} {what}", place, todo)
    if findings.python3:
        findings.report(
            "note",
            f"drafts in Python 3: {len(findings.python3)}, one for each file that is reported as Python 2",
            todo="write it with --out DIR, and apply it to a copy of the project: patch -p1 -d COPY < DIR/python3.diff",
        )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def old_spellings(project: PythonProject, file: PythonFile) -> Iterator[tuple[int, str]]:
    """Yield what Python 3 lacks, each with its line. What is tried, or only runs in Python 2, is left out."""
    for one in file.modules:
        top = one.module.partition(".")[0]
        if one.optional or not top:
            continue
        if top in GONE_MODULES and not project.has_module(top, file):
            yield one.line, f"import {one.module}, now {GONE_MODULES[top]}"
        elif project.imports_implicitly(top, file):
            package = file.path.parent.name
            yield (
                one.line,
                f"import {one.module} from beside it: write {package}.{one.module}, or .{one.module}",
            )
    given = {
        *file.classes,
        *file.values,
        *file.imports,
        *(one.name for one in ast.walk(file.tree) if isinstance(one, ast.FunctionDef)),
        *(
            one.id
            for one in ast.walk(file.tree)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        ),
        *(one.arg for one in ast.walk(file.tree) if isinstance(one, ast.arg)),
    }
    if not file.stars:
        yield from _in_code(project, file, file.tree, given)


def _prints_to_file(node: ast.AST) -> bool:
    """Return whether ``node`` is Python 2's ``print >>sys.stderr``, which Python 3 parses as a shift, and raises a TypeError."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.RShift)
        and isinstance(node.left, ast.Name)
        and node.left.id == "print"
    )


def _in_code(
    project: PythonProject, file: PythonFile, node: ast.AST, given: set[str]
) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Try) or (
            isinstance(child, ast.If | ast.IfExp) and "PY" in ast.unparse(child.test)
        ):
            continue
        if isinstance(child, ast.BinOp) and _prints_to_file(child):
            yield child.lineno, "print >>"
        elif (
            isinstance(child, ast.Name)
            and child.id in _GONE_NAMES - given
            and not hasattr(builtins, child.id)
        ):
            yield child.lineno, child.id
        elif isinstance(child, ast.Attribute):
            dotted = project.dotted(child, file)
            if dotted in _GONE_ATTRIBUTES:
                yield child.lineno, dotted
            elif child.attr in _GONE_METHODS and not dotted.startswith("six."):
                yield child.lineno, f".{child.attr}"
        yield from _in_code(project, file, child, given)
