"""One ledger by itself: local trees, timeouts, fails, lost workers."""

import pickle
from random import Random

import pytest

from stormspark.acker import ACKED, Branch, Ledger, Outcome, Parts, SpoutAccount, Tree, Verdict


@pytest.fixture
def account() -> SpoutAccount:
    return SpoutAccount(task=7)


@pytest.fixture
def ledger() -> Ledger:
    random = Random(1)
    return Ledger(0, lambda n: [random.getrandbits(64) for _ in range(n)], timeout=30)


def opened(ledger: Ledger, account: SpoutAccount, copies: int, message_id: object = "m") -> Tree:
    tree = Tree(account, message_id, 0.0)  # type: ignore[arg-type]
    tree.count = copies
    ledger.begin(tree)
    return tree


def close(ledger: Ledger, tree: Branch) -> None:
    tree.count -= 1
    if not tree.count:
        ledger.drained(tree)


def test_a_tree_inside_one_worker_needs_no_random_bits(account: SpoutAccount) -> None:
    def no_bits(n: int) -> list[int]:
        raise AssertionError

    ledger = Ledger(0, no_bits, timeout=30)
    tree = opened(ledger, account, 2)
    close(ledger, tree)
    assert account.pending == 1
    close(ledger, tree)
    assert (account.pending, account.ended, tree.verdict) == (0, [tree], ACKED)


def test_a_fail_ends_the_tree_once_and_later_acks_are_ignored(ledger: Ledger, account: SpoutAccount) -> None:
    """The first fail decides the verdict of a tree, and nothing later changes it (E11, E24)."""
    tree = opened(ledger, account, 2)
    failed = Verdict(Outcome.FAILED, "no", "parse", 3)
    ledger.fail(tree, failed)
    ledger.fail(tree, Verdict(Outcome.FAILED, "again"))
    close(ledger, tree)
    close(ledger, tree)
    assert (account.ended, tree.verdict, account.pending) == ([tree], failed, 0)


def test_timeouts_come_between_one_and_two_timeouts(ledger: Ledger, account: SpoutAccount) -> None:
    """E10, E28: two buckets."""
    early = opened(ledger, account, 1, "early")
    assert ledger.rotate(29.9) == 0
    assert ledger.rotate(30.0) == 0  # the first rotation makes it old
    late = opened(ledger, account, 1, "late")
    assert ledger.rotate(59.9) == 0
    assert ledger.rotate(60.0) == 1
    assert early.verdict is not None and early.verdict.outcome is Outcome.TIMED_OUT
    assert late.verdict is None and account.pending == 1
    assert ledger.rotate(90.0) == 1


def test_reset_timeout_gives_a_whole_timeout_again(ledger: Ledger, account: SpoutAccount) -> None:
    """After `reset_timeout` a tree has the whole timeout again (C11)."""
    tree = opened(ledger, account, 1)
    ledger.rotate(30.0)
    ledger.reset_timeout(tree)
    assert ledger.rotate(60.0) == 0
    assert ledger.rotate(90.0) == 1


def test_a_reset_in_another_worker_travels_home_with_the_parts(ledger: Ledger, account: SpoutAccount) -> None:
    """C11, E6: many resets of one tree go home as one."""
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    tree = opened(ledger, account, 1)
    (part,) = far.receive(ledger.send({tree: 1}))
    ledger.rotate(30.0)
    for _ in range(3):
        far.reset_timeout(part)
    parts = pickle.loads(pickle.dumps(far.parts_to_send.pop(0)))
    assert len(parts) == 1
    ledger.take_parts(parts)
    assert ledger.rotate(60.0) == 0
    assert ledger.rotate(90.0) == 1


def test_neither_acks_nor_parts_extend_a_timeout(ledger: Ledger, account: SpoutAccount) -> None:
    """Acks and messages from other workers do not delay the timeout of a tree (E9)."""
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    tree = opened(ledger, account, 3)
    (part,) = far.receive(ledger.send({tree: 1}))
    ledger.rotate(30.0)
    close(ledger, tree)
    close(far, part)
    ledger.take_parts(far.parts_to_send.pop(0))
    assert ledger.rotate(60.0) == 1


def test_a_reset_after_the_end_changes_nothing(ledger: Ledger, account: SpoutAccount) -> None:
    """C11, E8, E21: it may come late, from a bolt here or from another worker."""
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    tree = opened(ledger, account, 1)
    (part,) = far.receive(ledger.send({tree: 1}))
    ledger.fail(tree, Verdict(Outcome.FAILED))
    ledger.reset_timeout(tree)
    far.reset_timeout(part)
    ledger.take_parts(far.parts_to_send.pop(0))
    assert account.ended == [tree] and ledger.statistics().open == 0
    (stray,) = ledger.receive(far.send({part: 1}))
    ledger.reset_timeout(stray)
    assert ledger.statistics().outgoing == 0


def test_tuples_dropped_in_another_worker_leave_nothing_behind(ledger: Ledger, account: SpoutAccount) -> None:
    """E8: a bolt that forgets its tuples fills no table; one that acks after all is heard, or ignored."""
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    tree = opened(ledger, account, 2)
    (part,) = far.receive(ledger.send({tree: 1}))
    far.rotate(30.0)
    assert far.statistics().parts == 1
    (same,) = far.receive(ledger.send({tree: 1}))
    assert same is part
    far.rotate(60.0)
    assert far.statistics().parts == 0
    close(far, part)
    close(far, part)  # kept for all that time: its home has reset its timeout
    ledger.take_parts(far.parts_to_send.pop(0))
    assert tree.verdict is ACKED


def test_a_part_that_was_forgotten_and_a_new_one_of_the_same_tree_add_up(
    ledger: Ledger, account: SpoutAccount
) -> None:
    """E20, E21: in either order."""
    ids = iter(range(1, 9))
    ledger = Ledger(0, lambda n: [next(ids) for _ in range(n)], timeout=30)
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    for first in (0, 1):
        tree = opened(ledger, account, 2)
        (kept,) = far.receive(ledger.send({tree: 1}))
        far.rotate(60.0 + 600 * first)
        far.rotate(120.0 + 600 * first)
        (new,) = far.receive(ledger.send({tree: 1}))
        assert new is not kept
        for part in (kept, new) if first else (new, kept):
            assert tree.verdict is None
            close(far, part)
            far.validate()
            ledger.take_parts(far.parts_to_send.pop(0))
        assert tree.verdict is ACKED


def test_no_timeouts_where_they_are_switched_off(account: SpoutAccount) -> None:
    ledger = Ledger(0, lambda n: [1] * n, timeout=None)
    opened(ledger, account, 1)
    assert ledger.rotate(1e9) == 0


def test_parts_that_come_home_end_nothing_while_something_is_open_there(
    ledger: Ledger, account: SpoutAccount
) -> None:
    """E20, E3: count and value, both."""
    far = Ledger(1, lambda n: [9] * n, timeout=30)
    tree = opened(ledger, account, 2)
    (part,) = far.receive(ledger.send({tree: 1}))
    close(far, part)
    ledger.take_parts(far.parts_to_send.pop(0))
    assert (tree.value, tree.count, tree.verdict) == (0, 1, None)
    close(ledger, tree)
    assert tree.verdict is ACKED


def test_parts_of_trees_that_ended_are_ignored(ledger: Ledger, account: SpoutAccount) -> None:
    """E8, E33: late acks settle nothing, and leave nothing behind."""
    tree = opened(ledger, account, 1)
    edges = ledger.send({tree: 1})
    ledger.fail(tree, Verdict(Outcome.FAILED))
    late = Parts()
    late.roots.append(edges.roots[0])
    late.values.append(edges.edges[0])
    ledger.take_parts(late)
    assert account.ended == [tree]
    assert ledger.statistics().known_outside == 0


def test_tuples_that_come_back_to_an_ended_tree_run_on_without_a_trace(
    ledger: Ledger, account: SpoutAccount
) -> None:
    """E11: failing keeps the other branches running."""
    tree = opened(ledger, account, 1)
    edges = ledger.send({tree: 1})
    ledger.fail(tree, Verdict(Outcome.FAILED))
    (stray,) = ledger.receive(edges)
    stray.count += 1
    ledger.send({stray: 1})  # emits on, to a third worker
    close(ledger, stray)
    ledger.fail(stray, Verdict(Outcome.FAILED))
    assert ledger.statistics().outgoing == 0
    ledger.validate()


def test_a_lost_worker_fails_the_trees_with_something_outside_and_no_others(
    ledger: Ledger, account: SpoutAccount
) -> None:
    outside, back, local = (opened(ledger, account, 1, name) for name in ("outside", "back", "local"))
    ledger.send({outside: 1})
    (returned,) = ledger.receive(ledger.send({back: 1}))
    assert returned is back and back.value == 0
    assert ledger.abandon("worker 1 lost") == 1
    assert outside.verdict == Verdict(Outcome.WORKER_LOST, "worker 1 lost")
    assert back.verdict is None and local.verdict is None


def test_a_restarted_spout_hears_nothing_of_its_old_trees(ledger: Ledger, account: SpoutAccount) -> None:
    """Forgetting a spout drops its open trees without a verdict, and leaves those of other spouts (B10, E35)."""
    other = SpoutAccount(task=8)
    opened(ledger, account, 1)
    theirs = opened(ledger, other, 1)
    assert ledger.forget(account) == 1
    assert (account.ended, account.pending, other.pending) == ([], 0, 1)
    assert list(ledger.open_trees()) == [theirs]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_parts_may_arrive_before_the_home_knows_of_their_edges(
    ledger: Ledger, account: SpoutAccount, order: tuple[int, int]
) -> None:
    """E7: a worker sends edges to a third one, whose part is home first; only all of them together end the tree."""
    random = Random(2)
    far, further = (
        Ledger(n, lambda n: [random.getrandbits(64) for _ in range(n)], timeout=30) for n in (1, 2)
    )
    tree = opened(ledger, account, 1)
    (part,) = far.receive(ledger.send({tree: 1}))
    part.count += 1  # its bolt emits on
    (grandchild,) = further.receive(far.send({part: 1}))
    close(further, grandchild)
    close(far, part)
    parts = [further.parts_to_send.pop(0), far.parts_to_send.pop(0)]
    ledger.take_parts(parts[order[0]])
    assert tree.verdict is None and tree.value
    ledger.validate()
    ledger.take_parts(parts[order[1]])
    assert tree.verdict is ACKED and account.ended == [tree]


def test_a_fail_may_arrive_before_the_home_knows_of_the_edge_that_it_failed(
    ledger: Ledger, account: SpoutAccount
) -> None:
    """E7, E21: the tree fails at once; the part that tells of the edge comes late and is ignored."""
    random = Random(2)
    far, further = (
        Ledger(n, lambda n: [random.getrandbits(64) for _ in range(n)], timeout=30) for n in (1, 2)
    )
    tree = opened(ledger, account, 1)
    (part,) = far.receive(ledger.send({tree: 1}))
    part.count += 1
    (grandchild,) = further.receive(far.send({part: 1}))
    further.fail(grandchild, Verdict(Outcome.FAILED, "no"))
    close(further, grandchild)
    ledger.take_parts(further.parts_to_send.pop(0))
    assert tree.verdict == Verdict(Outcome.FAILED, "no")
    close(far, part)
    ledger.take_parts(far.parts_to_send.pop(0))
    assert account.ended == [tree] and ledger.statistics().open == 0
