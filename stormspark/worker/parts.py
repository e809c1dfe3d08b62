"""The parts of a worker, made and connected once, before its first task begins.

Each part is made of parts above it in this list. Only stories and refusals are told later of parts below them:

    call            the user code that runs now                                  current_call.py
    stories         which tasks have not acked a tree that failed                stories/
    ledger          which trees are done                                         acker/ledger.py
    services        contexts, timers and threads for tasks                       services.py
    refusals        tuples that can't reach their receiver                       refusals.py
    departures      lanes and frames for other workers                           departures.py
    loads           how many tuples wait, for choosers that follow load          loads.py
    local choices   choosers that stay local under max spout pending             local_choices.py
    wiring          the tasks, and where their streams lead                      wiring.py
    states          the state of tasks, batch by batch                           state/batch_state.py
    round clock     how the time of a round is divided                           round_clock.py
    waiting trees   which trees are kept from timing out                         waiting_trees.py
    outside         waiting for tuples that are processed outside of the worker  outside.py
    executors       the executors that have threads of their own                 executors/
    turns           the order of work: bursts, passes, chunks, timers            turns.py
    spare time      calls of spouts after superstep 0                            spare_time.py
    flushing        the end of the input                                         flushing.py
    transaction     how a batch is prepared, or rolled back                      transactions.py
    doors           when answers, notes and calls of threads may come in         doors.py
    arrivals        the entry for frames of other workers                        arrivals.py
    reporter        the report to the driver at the end of a round               reporting.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from random import Random

from stormspark.acker import Ledger
from stormspark.checkpoint.recorded_inputs import InputFiles
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.arrivals import Arrivals
from stormspark.worker.backlog import Backlog
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.doors import Doors
from stormspark.worker.event_log import EventLog
from stormspark.worker.executors.executors import Executors
from stormspark.worker.flushing import Flushing
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.loads import Loads
from stormspark.worker.local_choices import LocalChoices
from stormspark.worker.outside import OutsideWork
from stormspark.worker.random_ids import edge_ids
from stormspark.worker.refusals import Refusals
from stormspark.worker.replays.recording_inputs import InputRecording
from stormspark.worker.reporting import Reporter
from stormspark.worker.round_clock import RoundClock
from stormspark.worker.services import TaskServices
from stormspark.worker.sources.letters import LetterLog
from stormspark.worker.spare_time import SpareTime
from stormspark.worker.state.batch_state import BatchState, StateAccess
from stormspark.worker.stories.stories import Stories
from stormspark.worker.transactions import WorkerTransaction
from stormspark.worker.turns import Turns
from stormspark.worker.waiting_trees import WaitingTrees
from stormspark.worker.wiring import Wiring, connect, make_tasks

__all__ = ["Parts", "make_parts"]


@dataclass(frozen=True)
class Parts:
    """Everything that one worker consists of."""

    call: CurrentCall
    stories: Stories
    ledger: Ledger
    services: TaskServices
    refusals: Refusals
    departures: Departures
    loads: Loads
    local_choices: LocalChoices
    wiring: Wiring
    states: BatchState
    round_clock: RoundClock
    waiting_trees: WaitingTrees
    outside: OutsideWork
    executors: Executors
    turns: Turns
    spare_time: SpareTime
    flushing: Flushing
    transaction: WorkerTransaction
    doors: Doors
    arrivals: Arrivals
    reporter: Reporter
    event_log: EventLog


def make_parts(
    plan: PhysicalPlan,
    index: int,
    *,
    incarnation: int,
    clock: Callable[[], float],
    epoch: float,
    random: Random,
    logs: TaskLogs | None,
    storm_id: str,
    state: StateAccess | None,
    side_by_side: bool,
    shares_thread: bool,
    reports_letters: bool,
) -> Parts:
    """Make the parts of worker ``index``; the arguments are those of `stormspark.worker.core.Worker`."""
    settings = plan.settings
    sheds = settings.backpressure_strategy != "slow"

    # The surroundings of the tasks.
    call = CurrentCall(clock, logs)
    folder = logs.directory if logs is not None else None
    stories = Stories(plan, index, incarnation, clock, epoch, lambda: call.at, folder)
    ledger = Ledger(
        index, partial(edge_ids, random), settings.timeout_secs, stories.part, settings.timeout_buckets
    )
    services = TaskServices(
        plan, index, clock=clock, epoch=epoch, storm_id=storm_id, call=call, ledger=ledger, stories=stories
    )
    refusals = Refusals(ledger)
    departures = Departures(plan, index, ledger, stories, refusals.unsent)
    loads = Loads(plan, index)
    local_choices = LocalChoices()

    # The tasks.
    wiring = make_tasks(plan, index, services, refusals, side_by_side=side_by_side)
    refusals.follow(wiring.tasks, wiring.bolts)
    states = BatchState(plan, wiring.tasks.values(), wiring.spouts, state, enter=call.enter)
    if state is not None and settings.record_inputs:
        files = InputFiles(state.location, state.storage_options)
        states.recording = recording = InputRecording(files, state.generation, index, wiring.bolts)
        for bolt in wiring.bolts:
            bolt.inputs = bolt.follower = recording.tasks[bolt.id]
    for bolt in wiring.bolts:
        bolt.in_transactions = plan.exactly_once
    if reports_letters:
        for spout in wiring.spouts:
            if not spout.component.settings.dead_letter_dir:
                spout.source.letters = LetterLog(spout.component.id, spout.id)
    stories.connect(ledger, wiring.spouts, wiring.bolts, departures.all_lanes)
    connect(wiring, plan, index, departures, loads, local_choices, stories, random)

    event_log = EventLog(
        wiring.tasks.values(),
        plan.conf,
        settings,
        services.worker_context,
        folder,
        lambda: epoch + clock(),
        random,
    )
    services.at_end.append(event_log.close)

    # The parts that run the tasks.
    round_clock = RoundClock(plan, sheds=sheds)
    backlog = Backlog(settings, wiring, departures, sheds=sheds)
    outside = OutsideWork(clock, call, departures, shares_thread=shares_thread)
    executors = Executors(clock, call)
    executors.add(wiring.tasks.values(), departures)
    turns = Turns(
        wiring,
        services,
        call,
        departures,
        backlog,
        outside,
        executors,
        refusals,
        sheds=sheds,
        most_leaving=inf if sheds else settings.worker_byte_marks[0],
    )
    transaction = WorkerTransaction(plan, index, wiring, states, ledger, call, departures, refusals, turns)
    return Parts(
        call=call,
        stories=stories,
        ledger=ledger,
        services=services,
        refusals=refusals,
        departures=departures,
        loads=loads,
        local_choices=local_choices,
        wiring=wiring,
        states=states,
        round_clock=round_clock,
        waiting_trees=WaitingTrees(plan, ledger, wiring, round_clock),
        outside=outside,
        executors=executors,
        turns=turns,
        spare_time=SpareTime(
            plan, clock, wiring, services, stories, call, round_clock, executors, outside, turns
        ),
        flushing=Flushing(plan, services, call, departures, wiring),
        transaction=transaction,
        doors=Doors(plan, turns, transaction),
        arrivals=Arrivals(plan, wiring, ledger, stories, call, refusals, departures, loads, transaction),
        reporter=Reporter(
            index,
            incarnation,
            services,
            wiring,
            turns,
            departures,
            outside,
            executors,
            ledger,
            round_clock,
            transaction if plan.exactly_once else None,
            random,
        ),
        event_log=event_log,
    )
