"""A request runs once in an attempt, and all who send it get that run's reply."""

from __future__ import annotations

import pytest

from stormspark.worker.host.desk import Desk, RefusedError
from stormspark.worker.host.messages import Request


def request(batch=0, superstep=0, partition=0, attempt=0, incarnation=0, generation=0):
    return Request(generation, incarnation, batch, attempt, superstep, partition)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(
        generation=0, incarnation=0, attempt=0, folder=tmp_path, replies_memory_bytes=100, supersteps=3
    )
    yield desk
    desk.validate()


def run(desk, *messages):
    errand = desk.next()
    assert errand is not None
    desk.finish(errand, list(messages))
    return errand


def reply(desk, errand):
    count, messages = desk.reply(errand)
    given = [bytes(message) for message in messages]
    assert len(given) == count
    return given


def test_a_repeated_request_gets_the_remembered_reply(desk):
    first, new = desk.take(request(), 3, [b"in"])
    assert new
    again, new = desk.take(request(), 3, [b"in"])
    assert again is first
    assert not new
    run(desk, b"out", b"more")
    assert desk.next() is None, "it runs once"
    late, new = desk.take(request(), 3, [b"in"])
    assert not new
    assert reply(desk, first) == reply(desk, late) == [b"out", b"more"]


def test_large_replies_go_to_disk_and_leave_it(desk, tmp_path):
    errands = []
    for partition in range(3):
        desk.take(request(partition=partition), 0, [])
        errands.append(run(desk, b"x" * 60, b"y"))
    assert (desk.statistics().in_memory, desk.statistics().on_disk) == (1, 2)
    assert len(list(tmp_path.iterdir())) == 2
    desk.validate()
    assert [reply(desk, errand) for errand in errands] == [[b"x" * 60, b"y"]] * 3
    desk.take(request(batch=1), 0, [])
    assert list(tmp_path.iterdir()) == []


def test_a_reply_that_is_being_read_from_disk_survives_its_end(desk):
    desk.take(request(), 0, [])
    _, messages = desk.reply(run(desk, b"x" * 200, b"y" * 200))
    desk.take(request(batch=1), 0, [])
    assert list(messages) == [b"x" * 200, b"y" * 200]


def test_a_later_batch_ends_the_memory_of_the_one_before(desk):
    desk.take(request(batch=4), 0, [])
    errand = run(desk, b"out")
    desk.take(request(batch=5), 0, [])
    with pytest.raises(RefusedError, match="a later round has begun"):
        desk.reply(errand)
    with pytest.raises(RefusedError, match="batch 4 is committed, 5 runs"):
        desk.take(request(batch=4), 0, [])


def test_a_later_round_ends_the_memory_of_the_one_before(desk):
    """F10: with three supersteps a round, superstep 3 begins the second one; so a batch prolonged for hours keeps little."""
    desk.take(request(batch=4, superstep=2), 0, [])
    errand = run(desk, b"out")
    desk.take(request(batch=4, superstep=3), 0, [])
    with pytest.raises(RefusedError):
        desk.reply(errand)
    with pytest.raises(RefusedError, match="round 0 of batch 4 has ended, round 1 runs"):
        desk.take(request(batch=4, superstep=1), 0, [])
    assert reply(desk, run(desk, b"more")) == [b"more"]
    desk.take(request(batch=5), 0, [])
    with pytest.raises(RefusedError, match="batch 4 is committed, 5 runs"):
        desk.take(request(batch=4, superstep=4), 0, [])


def test_a_new_attempt_drops_what_waits_and_refuses_the_old_one(desk):
    waiting, _ = desk.take(request(batch=4, superstep=1), 0, [])
    desk.take(request(batch=4, attempt=1), 0, [])
    assert waiting.done.is_set()
    with pytest.raises(RefusedError, match="attempt 1 has begun"):
        desk.reply(waiting)
    with pytest.raises(RefusedError, match="attempt 0 has ended, 1 runs"):
        desk.take(request(batch=9, attempt=0), 0, [])
    errand = desk.next()
    assert errand is not None
    assert errand.request.attempt == 1


def test_an_errand_that_ends_after_its_attempt_is_not_remembered(desk):
    desk.take(request(batch=4), 0, [])
    running = desk.next()
    desk.take(request(batch=4, attempt=1), 0, [])
    desk.finish(running, [b"too late"])
    assert desk.statistics().in_memory == 0
    with pytest.raises(RefusedError):
        desk.reply(running)


def test_a_batch_may_run_again_in_the_next_attempt(desk):
    desk.take(request(batch=4), 0, [])
    run(desk, b"first")
    desk.take(request(batch=4, attempt=1), 0, [])
    assert reply(desk, run(desk, b"second")) == [b"second"]


def test_the_same_request_with_other_rows_is_refused(desk):
    desk.take(request(), 3, [])
    with pytest.raises(RefusedError, match="3 rows before and comes with 4"):
        desk.take(request(), 4, [])


@pytest.mark.parametrize("other", [request(generation=1), request(incarnation=1)])
def test_a_request_for_another_life_is_refused(desk, other):
    with pytest.raises(RefusedError, match="this is incarnation 0 in generation 0"):
        desk.take(other, 0, [])


def test_a_failure_reaches_all_waiting_threads(desk):
    errand, _ = desk.take(request(), 0, [])
    assert desk.next() is errand
    desk.fail(errand, "Traceback ...")
    assert errand.done.is_set()
    again, new = desk.take(request(), 0, [])
    assert not new
    with pytest.raises(RefusedError, match="Traceback"):
        desk.reply(again)
