"""Lists what is known of modules that users have not written: which of their names only compute, and which may wait.

The lists can't be complete. A module of Python itself that is on no list counts as one that may wait. All other modules
that are on no list are unknown: the search for code that waits looks into them, if they are written in Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import Enum

__all__ = [
    "LEADS_ANYWHERE",
    "WAITING_CALLS",
    "WAITING_NAMES",
    "Verdict",
    "holds_no_code",
    "is_stormspark",
    "listed_names",
    "module_verdict",
    "runs_any_code",
    "shown",
    "verdict",
]


class Verdict(Enum):
    """What is known of a name."""

    COMPUTES = "computes"
    WAITS = "waits"
    UNKNOWN = "unknown"


#: Modules in which all names only compute. Writing a line of a log counts as computing. Modules in C have a leading underscore,
#: which this list leaves out.
_COMPUTE = frozenset(
    """
    __future__ abc array ast base64 binascii bisect blake2 calendar cmath collections collections_abc colorsys
    contextlib copy copyreg csv dataclasses datetime decimal difflib dis elementtree enum errno fnmatch
    fractions functools gc graphlib hashlib heapq hmac html ipaddress itertools json keyword locale marshal
    math md5 numbers opcode operator pickle pprint pydatetime pydecimal py_abc quopri random re reprlib
    secrets sha1 sha2 sha256 sha3 sha512 sre statistics string stringprep struct textwrap token tomllib
    traceback types typing unicodedata urllib.parse warnings weakref weakrefset zlib zoneinfo msgpack msgspec
    orjson typing_extensions
    """.split()
)

#: Modules that only compute, except for these names, which may wait.
_COMPUTE_EXCEPT = {
    "builtins": "__import__ breakpoint compile eval exec globals help input open",
    "bz2": "BZ2File open",
    "codecs": "EncodedFile StreamReaderWriter open",
    "inspect": "findsource getcomments getsource getsourcefile getsourcelines",
    "logging": "FileHandler basicConfig config handlers",
    "lzma": "LZMAFile open",
    "numpy": "DataSource distutils f2py fromfile genfromtxt load loadtxt memmap open_memmap save savetxt savez savez_compressed "
    "testing vectorize",
    "pandas": "ExcelFile ExcelWriter HDFStore read_clipboard read_csv read_excel read_feather read_fwf read_gbq read_hdf "
    "read_html read_json read_orc read_parquet read_pickle read_sas read_spss read_sql read_sql_query read_sql_table read_stata "
    "read_table read_xml testing to_pickle",
    "pyarrow": "BufferedInputStream BufferedOutputStream CompressedInputStream CompressedOutputStream MemoryMappedFile OSFile "
    "PythonFile create_memory_map csv cuda dataset feather flight fs input_stream ipc jvm memory_map orc output_stream parquet "
    "substrait",
    "time": "sleep",
    "uuid": "getnode uuid1",
    "xml.etree.ElementTree": "ElementTree iterparse parse",
}

_PYARROW_WAITS = (
    "csv cuda dataset feather flight fs ipc jvm orc parquet substrait _csv _dataset _flight _fs _orc _parquet"
).split()

#: Modules in which only these names compute. All their other names may wait.
_COMPUTE_ONLY = {
    "gzip": "compress decompress",
    "io": "BufferedIOBase BytesIO IOBase RawIOBase SEEK_CUR SEEK_END SEEK_SET StringIO TextIOBase UnsupportedOperation",
    "os": "PathLike altsep cpu_count curdir devnull environ error extsep fsdecode fsencode fspath getenv getpid getppid linesep "
    "name pardir path pathsep sep strerror urandom _Environ",
    "os.path": "altsep basename commonpath commonprefix curdir dirname extsep isabs join normcase normpath pardir pathsep sep "
    "split splitdrive splitext",
    "pathlib": "PurePath PurePosixPath PureWindowsPath",
    "shlex": "join quote split",
    "sys": "api_version argv byteorder exc_info exception executable exit flags float_info getdefaultencoding getrecursionlimit "
    "getrefcount getsizeof hash_info hexversion implementation int_info intern maxsize maxunicode path platform stderr "
    "stdout version version_info",
    # Modules in packages that are listed above. All their names may wait.
    "logging.config": "",
    "logging.handlers": "",
    **dict.fromkeys((f"pyarrow.{part}" for part in _PYARROW_WAITS), ""),
}

#: Names in modules that compute, which may run any code, or reach it.
_ANY_CODE = {
    "gc": "get_objects get_referents get_referrers",
    "pickle": "Unpickler load loads",
}

_ANY = {module: frozenset(names.split()) for module, names in _ANY_CODE.items()}
_EXCEPT = {module: frozenset(names.split()) for module, names in _COMPUTE_EXCEPT.items()}
_ONLY = {module: frozenset(names.split()) for module, names in _COMPUTE_ONLY.items()}
#: The modules that really define the functions of `os` and `os.path`.
_ALIASES = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path", "genericpath": "os.path"}

#: Instances of classes in these packages hold no functions of users. Some hold locks or files, which do not count as waiting.
_HOLD_NO_CODE = frozenset("io logging numpy os pandas pyarrow".split())

#: Attributes whose names alone show that code waits. Code that uses one of them may wait, whatever the object is.
WAITING_NAMES = frozenset(
    """
    acquire as_completed blpop brpop call_soon_threadsafe communicate create_connection executemany executescript fetchall
    fetchmany fetchone fsync get_executor_data get_nowait get_resource getresponse iterdir makefile put_nowait read_bytes
    read_text readline readlines recv recv_bytes recv_into recvfrom rglob run_coroutine_threadsafe run_in_executor
    run_until_complete send_bytes sendall sendmsg sendto serve_forever set_executor_data shared_executor task_done to_csv
    to_excel to_feather to_hdf to_parquet to_pickle to_sql tofile urlopen urlretrieve wait_for write_bytes write_text
    """.split()
)
#: Methods that wait. Only a call counts, because attributes with these names may also be plain values.
WAITING_CALLS = frozenset("commit connect poll result rollback sleep submit wait".split())

#: Attributes through which code reaches values that nobody names.
LEADS_ANYWHERE = frozenset("f_builtins f_globals f_locals __builtins__ __globals__ __subclasses__".split())

_PYTHONS_FOLDER = os.path.dirname(os.__file__) + os.sep


def is_stormspark(module: str) -> bool:
    """Return whether a module belongs to stormspark."""
    return module == "stormspark" or module.startswith("stormspark.")


def _is_pythons(top: str) -> bool:
    """Return whether a module is one of Python itself, and not a user's file of the same name."""
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or str(file).startswith(_PYTHONS_FOLDER)


def listed_names(module: str) -> Iterator[str]:
    """Yield the names under which a module may be listed: its own name, then the names of its packages. None if the module is a
    user's, but has the name of one of Python's.

    >>> list(listed_names("_sqlite3")), list(listed_names("xml.etree"))
    (['sqlite3'], ['xml.etree', 'xml'])
    """
    top, dot, rest = module.partition(".")
    if top in sys.stdlib_module_names:
        if not _is_pythons(top):
            return
        plain = top if top == "__future__" else top.lstrip("_")
        top = _ALIASES.get(plain, plain)
    name = top + dot + rest
    while name:
        yield name
        name = name.rpartition(".")[0]


def _listed(module: str) -> str | None:
    """Return the name under which a module is listed, which is its own name or its package's name. None if it is on no list."""
    return next(
        (one for one in listed_names(module) if one in _COMPUTE or one in _EXCEPT or one in _ONLY), None
    )


def shown(module: str, name: str) -> str:
    """Return a name of a module as messages show it: as users write it.

    >>> shown("time", "sleep"), shown("io", "open"), shown("builtins", "input"), shown("pathlib._local", "Path")
    ('time.sleep', 'open', 'input', 'pathlib.Path')
    """
    if module == "builtins" or (module in {"io", "_io"} and name == "open"):
        return name
    return f"{module.partition('._')[0]}.{name}"


def verdict(module: str, name: str) -> Verdict:
    """Return what is known of a name of a module.

    >>> verdict("time", "monotonic"), verdict("time", "sleep")
    (<Verdict.COMPUTES: 'computes'>, <Verdict.WAITS: 'waits'>)
    >>> verdict("socket", "socket"), verdict("my_bolts", "Split")
    (<Verdict.WAITS: 'waits'>, <Verdict.UNKNOWN: 'unknown'>)
    """
    if is_stormspark(module):
        return Verdict.COMPUTES
    listed = _listed(module)
    if listed is None:
        return Verdict.WAITS if _is_pythons(module.partition(".")[0]) else Verdict.UNKNOWN
    if runs_any_code(module, name):
        return Verdict.UNKNOWN
    waits = name not in _ONLY[listed] if listed in _ONLY else name in _EXCEPT.get(listed, ())
    return Verdict.WAITS if waits else Verdict.COMPUTES


def runs_any_code(module: str, name: str) -> bool:
    """Return whether a name of a module that computes may run any code, as ``pickle.loads`` does, or reach it."""
    return name in _ANY.get(_listed(module) or "", ())


def module_verdict(module: str) -> Verdict:
    """Return what is known of a module as a whole. The module only computes if all its names do.

    >>> module_verdict("math"), module_verdict("time")
    (<Verdict.COMPUTES: 'computes'>, <Verdict.WAITS: 'waits'>)
    """
    listed = _listed(module)
    if is_stormspark(module) or (listed in _COMPUTE and listed not in _ANY):
        return Verdict.COMPUTES
    return verdict(module, "") if listed is None else Verdict.WAITS


def holds_no_code(module: str) -> bool:
    """Return whether instances of a module's classes hold no code of users."""
    listed = _listed(module)
    return listed is not None and listed.partition(".")[0] in _HOLD_NO_CODE
