"""A worker finds each module where the driver finds it, whatever their paths look like."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stormspark.worker.host.module_path import module_path

_LIBRARIES = ["/lib", "/lib/dynamic", "/packages"]
_FOLDERS = ["/project", "/helpers", "/data", "/here"]
_SHIPPED = ["/shipped/one.zip", "/shipped/two.zip"]
_ALL = [*_LIBRARIES, *_FOLDERS, *_SHIPPED]
_NAMES = "abc"


def _finds(path: Sequence[str], name: str, modules: dict[str, set[str]]) -> str | None:
    return next((folder for folder in path if name in modules.get(folder, ())), None)


@st.composite
def _paths(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return a worker's own path and the driver's, both of the same Python."""
    at = draw(st.integers(0, len(_FOLDERS)))
    folders = draw(st.permutations(_FOLDERS))[: draw(st.integers(0, len(_FOLDERS)))]
    drivers = [*folders[:at], *_LIBRARIES, *folders[at:]]
    own = draw(
        st.permutations([*_SHIPPED, *draw(st.sets(st.sampled_from(folders)) if folders else st.just(set()))])
    )
    return [*dict.fromkeys(["/here", *own]), *_LIBRARIES], drivers


@given(
    _paths(),
    st.fixed_dictionaries({folder: st.sets(st.sampled_from(_NAMES)) for folder in _ALL}),
)
def test_a_worker_finds_each_module_where_the_driver_does(
    paths: tuple[list[str], list[str]], modules: dict[str, set[str]]
) -> None:
    """A shipped file comes first, and the driver's folders come as the driver searches them."""
    own, drivers = paths
    path = module_path(own, drivers, "/lib", "/here")
    assert len(path) == len(set(path)) and set(path) == {*own, *drivers}
    shipped = [folder for folder in own if folder in _SHIPPED]
    for name in _NAMES:
        expected = _finds(shipped, name, modules) or _finds(drivers, name, modules)
        found = _finds(path, name, modules)
        assert found == expected or (expected is None and found == "/here")
