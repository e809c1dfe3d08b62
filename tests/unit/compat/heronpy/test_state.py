"""The state of a task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormspark.compat.heronpy.state import HashMapState, SavedState

KEYS = st.one_of(st.text(max_size=2), st.integers(0, 3))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.lists(st.integers(), max_size=2)),
        st.tuples(st.just("append"), KEYS, st.integers()),
        st.tuples(st.just("delete"), KEYS, st.none()),
        st.tuples(st.just("save"), st.none(), st.none()),
        st.tuples(st.just("clear"), st.none(), st.none()),
    ),
    max_size=15,
)


def change(state: HashMapState, what: str, key: object, value: object) -> None:
    match what:
        case "put":
            state.put(key, list(value))  # type: ignore[call-overload]
        case "append" if key in state:
            state[key].append(value)
        case "delete" if key in state:
            del state[key]
        case "clear":
            state.clear()
        case "save" if isinstance(state, SavedState):
            state.save()


@given(CHANGES)
def test_a_store_has_what_was_saved_last(changes: list[tuple[str, object, object]]) -> None:
    """C42: also what was changed in place, which Heron pickles with the rest."""
    store: dict[object, object] = {}
    state, plain = SavedState(store), HashMapState()
    for one in changes:
        change(state, *one)
        change(plain, *one)
    state.save()
    assert store == {key: plain[key] for key in plain} == {key: state[key] for _, key in state.enumerate()}
    assert {key: SavedState(store).get(key) for key in plain} == store


def test_what_is_taken_back_is_what_was_saved() -> None:
    """C42, C44: a value that a component goes on changing is not changed in the store."""
    store: dict[object, object] = {}
    state = SavedState(store)
    counts: list[int] = []
    state.put("counts", counts)
    state.save()
    counts.append(1)
    assert SavedState(store).get("counts") == []
    SavedState(store).get("counts").append(2)
    assert store == {"counts": []}


def test_only_what_differs_is_written() -> None:
    """C42: a state of many keys costs what changed in it, in the store."""

    class Store(dict[str, object]):
        writes = 0

        def __setitem__(self, key: str, value: object) -> None:
            self.writes += 1
            super().__setitem__(key, value)

    store = Store()
    state = SavedState(store)
    for number in range(10):
        state.put(str(number), [number])
    state.save()
    state["3"].append(1)
    state.save()
    state.save()
    assert store.writes == 11


def test_it_reads_like_herons() -> None:
    """C42: put, get, enumerate, clear, and its text."""
    state = HashMapState()
    assert state.get("a") is None and state
    state.put("a", 1)
    assert (list(state.enumerate()), str(state), len(state)) == ([(0, "a")], "{'a': 1}", 1)
    state.clear()
    assert "a" not in state
