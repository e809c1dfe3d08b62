"""Packages that only some topologies need, and the extra of stormspark that brings each of them.

``pip install stormspark`` brings the local engine. A module that also works without, say, pyarrow imports it from here:

    from stormspark.extras import pyarrow as pa

If pyarrow is installed, this is pyarrow itself. If not, it is a `Missing`, and the first use of it raises an error that says what
to install. So the local engine starts without pyarrow, and no module has a sentence of its own about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stormspark.errors import UnsupportedEnvironmentError

if TYPE_CHECKING:
    import deltalake
    import pyarrow
    from deltalake import fs as deltalake_fs
    from deltalake import transaction as deltalake_transaction
    from pyarrow import compute as pyarrow_compute
    from pyarrow import fs as pyarrow_fs
    from pyarrow import parquet as pyarrow_parquet

__all__ = [
    "EXTRAS",
    "Missing",
    "deltalake",
    "deltalake_fs",
    "deltalake_transaction",
    "explained",
    "first_missing",
    "missing",
    "or_missing",
    "pyarrow",
    "pyarrow_compute",
    "pyarrow_fs",
    "pyarrow_parquet",
    "require",
    "version_of",
]

#: For each module of another project, the extra that brings it. ``pyproject.toml`` has the extras.
EXTRAS = {
    "basilisp": "clojure",
    "confluent_kafka": "kafka",
    "cryptography": "tls",
    "delta": "spark",
    "deltalake": "delta",
    "fissix": "port",
    "msgpack": "msgpack",
    "opentelemetry": "opentelemetry",
    "pandas": "pandas",
    "py4j": "spark",
    "pyarrow": "arrow",
    "pyspark": "spark",
    "redis": "redis",
    "sqlalchemy": "sql",
    "statsd": "statsd",
    "tree_sitter": "port",
    "tree_sitter_java": "port",
}
#: The names of projects on the package index, where they differ from the modules' names.
_PROJECTS = {
    "confluent_kafka": "confluent-kafka",
    "delta": "delta-spark",
    "opentelemetry": "opentelemetry-exporter-otlp-proto-http",
    "tree_sitter": "tree-sitter",
    "tree_sitter_java": "tree-sitter-java",
}
#: What other modules import from here, by the name that it has here.
_MODULES = {
    "deltalake": "deltalake",
    "deltalake_fs": "deltalake.fs",
    "deltalake_transaction": "deltalake.transaction",
    "pyarrow": "pyarrow",
    "pyarrow_compute": "pyarrow.compute",
    "pyarrow_fs": "pyarrow.fs",
    "pyarrow_parquet": "pyarrow.parquet",
}
_T = TypeVar("_T")


class Missing:
    """Stands for a module that can't be imported, or for something made with it. Any use of it raises the ``error``."""

    def __init__(self, error: UnsupportedEnvironmentError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("__") or name == "_error"
        ):  # whoever inspects or copies objects asks for such names
            raise AttributeError(name)
        raise self._error

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise the error."""
        raise self._error


def missing(
    module: str, what: str | None = None, error: ImportError | None = None
) -> UnsupportedEnvironmentError:
    """Return the error for a module that can't be imported. ``what`` needs it, in words.

    >>> missing("deltalake", "DeltaBolt")
    UnsupportedEnvironmentError("DeltaBolt needs deltalake: pip install 'stormspark[delta]'")
    >>> missing("pyarrow.compute", error=ImportError("libarrow.so: cannot open shared object file"))
    ... # doctest: +ELLIPSIS
    UnsupportedEnvironmentError("this needs pyarrow, which is installed but can't be imported (libarrow.so: ...): pip ...")
    """
    top = module.partition(".")[0]
    extra, project = EXTRAS.get(top), _PROJECTS.get(top, top)
    is_broken = error is not None and not (isinstance(error, ModuleNotFoundError) and error.name == top)
    state = f", which is installed but can't be imported ({error})" if is_broken and _is_there(top) else ""
    to_install = f"'stormspark[{extra}]'" if extra else project
    return UnsupportedEnvironmentError(f"{what or 'this'} needs {project}{state}: pip install {to_install}")


def require(module: str, what: str) -> Any:
    """Return a module. Raises `UnsupportedEnvironmentError` if it can't be imported: ``what`` needs it, in words.

    >>> require("json", "the summary").dumps([])
    '[]'
    >>> require("no_such_module", "the summary")
    Traceback (most recent call last):
    stormspark.errors.UnsupportedEnvironmentError: the summary needs no_such_module: pip install no_such_module
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(module, what, error) from error


def first_missing(modules: Iterable[str]) -> str | None:
    """Return the first of these modules that is not installed, without importing any; None if all are installed.

    >>> first_missing(["json", "no_such_module"])
    'no_such_module'
    """
    return next((module for module in modules if not _is_there(module)), None)


def explained(error: ImportError, what: str) -> ImportError | UnsupportedEnvironmentError:
    """Return the error to raise for an ``error`` of an import: what to install if an extra brings the module, or itself.

    >>> explained(ModuleNotFoundError("No module named 'py4j'", name="py4j"), "the Spark engine")
    UnsupportedEnvironmentError("the Spark engine needs py4j: pip install 'stormspark[spark]'")
    """
    top = (error.name or "").partition(".")[0]
    return missing(top, what, error) if top in EXTRAS and isinstance(error, ModuleNotFoundError) else error


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed, or nobody knows the version."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError):
        return None


def or_missing(make: Callable[[], _T]) -> _T:
    """Return what ``make`` makes with a module of this module, or a `Missing` if that is missing. For constants of modules."""
    try:
        return make()
    except UnsupportedEnvironmentError as error:
        return cast(_T, Missing(error))


def __getattr__(name: str) -> Any:
    """Import one of the modules that this module offers. Its first user waits for it, and no other program does."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        found: Any = import_module(_MODULES[name])
    except ImportError as error:
        found = Missing(missing(_MODULES[name], None, error))
    globals()[name] = found
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # so it is if tests hide it
        return False
