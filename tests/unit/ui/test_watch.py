import itertools
import signal
import threading
from dataclasses import replace

import pytest

from stormspark.ui import Ending, InterruptedStartError, Interrupts, Progress, watch
from stormspark.ui.watch import Idleness
from stormspark.user_line import CodePlace
from stormspark.worker.busy import Busy
from tests.unit.scripted_topology import Moment, ScriptedTopology, snapshot

pytestmark = pytest.mark.usefixtures("hangs_up")


class Notes:
    """A display that remembers."""

    def __init__(self):
        self.shown: list[Progress] = []
        self.said: list[str] = []

    def show(self, progress):
        self.shown.append(progress)

    def say(self, text):
        self.said.append(text)


def watched(topology, **options):
    notes = Notes()
    with Interrupts(clock=itertools.count().__next__) as interrupts:
        return watch(topology, notes, interrupts, **options), notes


def test_a_topology_that_ends_by_itself_is_not_stopped():
    topology = ScriptedTopology([Moment(0)], ends_at=3.0)
    ending, notes = watched(topology)
    assert ending is Ending.BY_ITSELF
    assert topology.calls == []
    assert notes.shown[-1].seconds == 3.0


def test_a_topology_that_a_command_kills_counts_as_interrupted():
    topology = ScriptedTopology([Moment(0)], ends_at=3.0)
    topology.was_killed_by_command = True
    assert watched(topology)[0] is Ending.INTERRUPTED


def test_it_is_stopped_when_its_time_is_up():
    topology = ScriptedTopology([Moment(0, emitted=1, pending=1)])
    ending, _ = watched(topology, seconds=5.0)
    assert ending is Ending.TIME_UP
    assert topology.calls == ["stop"]
    assert topology.now == pytest.approx(5.0, abs=0.5)


def test_its_input_ends_when_it_is_idle():
    moments = [Moment(0, emitted=5, queued=5), Moment(4.0, emitted=5, acked=5)]
    topology = ScriptedTopology(moments, batch_every=0.5)
    ending, notes = watched(topology, until_idle=2.0)
    assert ending is Ending.IDLE
    assert topology.calls == ["end_input"]
    assert topology.now == pytest.approx(6.0, abs=0.6)
    assert notes.said == [
        "idle for 2 s: its input ends here; bolts flush what they hold, and it stops (press Ctrl-C to stop it now)"
    ]


def test_messages_whose_tuples_a_bolt_holds_do_not_keep_the_input_from_ending():
    topology = ScriptedTopology([Moment(0, emitted=5, acked=3, pending=2)], batch_every=0.5)
    assert watched(topology, until_idle=2.0)[0] is Ending.IDLE
    assert topology.calls == ["end_input"]


def test_after_its_input_it_waits_for_pending_messages():
    held = [Moment(0, emitted=5, acked=3, pending=2), Moment(20.0, emitted=5, acked=5)]
    topology = ScriptedTopology(held, batch_every=0.5, ends_with_input=False)
    assert watched(topology, until_idle=2.0)[0] is Ending.IDLE
    assert topology.calls == ["end_input", "stop"] and topology.now > 20.0


def test_looking_on_goes_on_while_it_stops():
    topology = ScriptedTopology([Moment(0, executed=1)], stop_takes=4.0)
    _, notes = watched(topology, seconds=1.0)
    assert notes.shown[-1].seconds > 4.0


@pytest.mark.parametrize(
    ("number", "again"),
    [
        (signal.SIGINT, "press Ctrl-C again"),
        (signal.SIGTERM, "send SIGTERM again"),
        (signal.SIGHUP, "send SIGTERM"),
    ],
)
def test_the_first_interrupt_stops_it_and_says_so(number, again):
    topology = ScriptedTopology([Moment(0)])
    topology.events[1.0] = lambda: signal.raise_signal(number)
    ending, notes = watched(topology)
    assert ending is Ending.INTERRUPTED
    assert topology.calls == ["stop"]
    assert notes.said == [
        "stopping; what is under way gets 10 s (a call on a worker's thread 60 s), and then close and cleanup get 10 s "
        f"({again} to end at once)"
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [({"seconds": 2.5}, "2.5 s are over: "), ({"until_idle": 1.0}, "idle for 1 s: ")],
    ids=["time", "idle"],
)
def test_a_stop_without_an_interrupt_says_why_it_stops(options, why):
    """During the stop, the progress shows 0 tuples/s for up to ten seconds."""
    topology = ScriptedTopology([Moment(0)], batch_every=0.5, stop_takes=4.0, ends_with_input=False)
    _, notes = watched(topology, **options)
    assert notes.said[-1:] == [
        f"{why}stopping; what is under way gets 10 s (a call on a worker's thread 60 s), and then "
        "close and cleanup get 10 s (press Ctrl-C twice to end at once)"
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_interrupt_kills_it(number):
    topology = ScriptedTopology([Moment(0)], stop_takes=60.0)
    topology.events = {at: lambda: signal.raise_signal(number) for at in (1.0, 2.0)}
    ending, notes = watched(topology)
    assert ending is Ending.KILLED
    assert topology.calls == ["stop", "kill"]
    assert topology.now < 5.0
    assert notes.said[1:] == ["ending at once, without close and cleanup"]


def test_a_kill_names_the_calls_that_it_cuts_off():
    topology = ScriptedTopology([Moment(0)], stop_takes=60.0)
    topology.busy = [Busy("split[0]", 2.04, place=CodePlace("cleanup", "split.py:7"))]
    topology.busy += [Busy("ask[0]", 1.5, others=19), Busy("ask[1]", 1.2, others=1)]
    topology.busy += [Busy(f"count[{n}]", 1.0, others=n) for n in range(4)]
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 2.0)}
    _, notes = watched(topology)
    assert notes.said[1].startswith(
        "ending at once, without close and cleanup; this cuts off cleanup of split[0] (split.py:7), after 2.0 s; the code of "
        "ask[0], after 1.5 s (and 19 other calls of this task); the code of ask[1], after 1.2 s (and 1 other call of this task); "
    )
    assert notes.said[1].endswith(
        "; the code of count[1], after 1.0 s (and 1 other call of this task); more calls: 7"
    )


def test_a_kill_counts_the_tuples_that_children_have():
    topology = ScriptedTopology([Moment(0)], stop_takes=60.0)
    topology.busy = [Busy("slow[0]", 2.04, tuples=64)] + [Busy("ask[0]", 1.5)] * 4
    topology.busy += [Busy("slow[1]", 1.0, tuples=7)]
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 2.0)}
    _, notes = watched(topology)
    assert "cuts off the child of slow[0], with 64 tuples left; the code of ask[0], after" in notes.said[1]
    assert notes.said[1].endswith("; more calls: 7")


def test_a_third_interrupt_does_not_wait_for_a_kill_that_hangs():
    topology = ScriptedTopology([Moment(0)], stop_takes=60.0)
    forever = threading.Event()

    def kill():
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        forever.wait()

    topology.kill = kill
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 2.0)}
    assert watched(topology)[0] is Ending.KILLED
    forever.set()


def test_two_interrupts_between_two_looks_kill_it_too():
    topology = ScriptedTopology([Moment(0)], stop_takes=60.0)
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 1.01)}
    assert watched(topology)[0] is Ending.KILLED


def test_a_kill_does_not_wait_for_a_stop_that_hangs():
    topology = ScriptedTopology([Moment(0)])
    forever = threading.Event()

    def hang():
        forever.wait()

    topology.stop = hang
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 2.0)}
    assert watched(topology)[0] is Ending.KILLED
    forever.set()


def test_what_stop_raises_is_raised():
    topology = ScriptedTopology([Moment(0)])

    def stop():
        topology.kill()
        raise OSError("the driver is gone")

    topology.stop = stop
    with pytest.raises(OSError, match="the driver is gone"):
        watched(topology, seconds=1.0)


def test_handlers_are_as_before_afterwards():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_signal_that_comes_to_the_process_and_to_its_group_counts_once():
    """``timeout`` sends both."""
    now = [5.0]
    with Interrupts(clock=lambda: now[0]) as interrupts:
        signal.raise_signal(signal.SIGTERM)
        now[0] += 0.1
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.count == 1
        now[0] += 0.5
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.count == 2


def test_a_terminal_that_closes_stops_a_topology_and_kills_it_not():
    """SIGHUP comes from the terminal, from the shell, and once more when the shell has ended."""
    now = [5.0]
    with Interrupts(clock=lambda: now[0]) as interrupts:
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
            now[0] += 2.0
        assert interrupts.count == 1
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.count == 2


def test_what_nohup_has_made_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_an_interrupt_ends_a_start():
    with Interrupts() as interrupts:
        with pytest.raises(InterruptedStartError) as raised, interrupts.while_starting():
            signal.raise_signal(signal.SIGTERM)
        assert raised.value.number == signal.SIGTERM
        with pytest.raises(InterruptedStartError), interrupts.while_starting():
            pytest.fail("it was interrupted before this began")


def test_an_interrupted_start_may_raise_anything():
    def half_of_an_answer():
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            raise ValueError("half of an answer") from None

    def start(interrupts):
        with interrupts.while_starting():
            half_of_an_answer()

    with Interrupts() as interrupts, pytest.raises(InterruptedStartError):
        start(interrupts)


def test_signals_count_where_sigint_was_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            assert interrupts.count == 1
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupts_do_nothing_in_another_thread():
    counted = []

    def work():
        with Interrupts() as interrupts:
            counted.append(interrupts.count)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert counted == [0]


def idle_at(*moments: Moment, seconds: float = 2.0) -> list[float]:
    idleness = Idleness(seconds)
    return [moment.at for moment in moments if idleness.reached(snapshot(moment))]


def test_silence_counts_from_its_first_moment():
    assert idle_at(*(Moment(at, emitted=3, batches=at + 1) for at in range(6))) == [2, 3, 4, 5]


@pytest.mark.parametrize("waiting", [{"queued": 1}, {"down": 1}])
def test_what_waits_is_not_silence(waiting):
    assert idle_at(*(Moment(at, emitted=3, batches=at + 1, **waiting) for at in range(6))) == []


def test_what_a_bolt_holds_is_silent_unless_something_is_acked():
    assert idle_at(*(Moment(at, emitted=3, pending=1, batches=at + 1) for at in range(4))) == [2, 3]
    assert idle_at(*(Moment(at, emitted=9, acked=at, pending=1, batches=at + 1) for at in range(4))) == []


def test_a_restart_is_not_silence():
    """A spout whose child has died may emit once the child runs again (W22)."""
    moments = [Moment(at, emitted=3, batches=at + 1, restarts=at >= 2, down=at in (1, 2)) for at in range(7)]
    assert idle_at(*moments) == [4, 5, 6]


def test_bolts_that_flush_one_after_another_are_not_silence():
    """The first of them may have nothing to emit, and a topology that was stopped then did not flush the others."""
    assert idle_at(*(Moment(at, emitted=3, batches=at + 1, flushes=min(at, 3)) for at in range(7))) == [5, 6]


def test_a_call_under_way_is_not_silence():
    """Its tuple does not wait any more, and need not be in a tree."""
    idleness = Idleness(2.0)
    for at in range(6):
        now = snapshot(Moment(at, emitted=3, batches=at + 1))
        busy = replace(now.components["bolt"], calls_under_way=0.5)
        assert not idleness.reached(replace(now, components={**now.components, "bolt": busy}))


def test_calls_that_wait_for_the_end_of_the_input_are_silence():
    """Of async bolts: without that end, they would wait for ever."""
    idleness = Idleness(2.0)
    found = []
    for at in range(4):
        now = snapshot(Moment(at, emitted=3, batches=at + 1))
        waits = replace(now.components["bolt"], calls_under_way=2.0, waiting_calls=2)
        found.append(idleness.reached(replace(now, components={**now.components, "bolt": waits})))
    assert found == [False, False, True, True]


def test_the_end_of_the_batch_in_which_something_moved_is_not_silence():
    """The next batch may bring rows, and the one that was running or about to begin when the last rows moved could not."""
    at_once = [Moment(at, emitted=3, batches=1 + (at >= 3)) for at in range(6)]
    assert idle_at(*at_once) == []
    assert idle_at(*at_once, *(Moment(at, emitted=3, batches=3) for at in (6, 7))) == [6, 7]


def test_a_long_batch_is_not_silence():
    # One batch of ten seconds: the counters cannot move before it ends.
    assert (
        idle_at(*(Moment(at, emitted=3, batches=4) for at in range(10)), Moment(10, emitted=9, batches=5))
        == []
    )


def test_nothing_counts_before_the_first_batch():
    assert idle_at(*(Moment(at, batches=0) for at in range(6))) == []


def test_one_more_tuple_begins_the_silence_anew():
    moments = [Moment(at, emitted=3 if at < 2 else 4, batches=at + 1) for at in range(5)]
    assert idle_at(*moments) == [4]
