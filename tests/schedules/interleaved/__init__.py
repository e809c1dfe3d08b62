"""A search of schedules of threads: executors with a thread of their own, interleaved with the worker's thread.

Everything runs on real threads, but only the one that holds a token runs, and a seed decides at each *switch point* who goes on
(`scheduler`). Switch points are all lines of `stormspark.worker.executors`, and each place where user code waits. What these
modules wait with is replaced by what the scheduler has, so nothing depends on luck: the same seed makes the same run. Time is
simulated. If nobody can run, or there is no end, that is a finding.

A run (`run`) is a small topology with one or two workers, of which most executors have a thread: spouts, with and without a
state, bolts of each kind, also with ticks, timers and hooks. Some batches run. User code raises in all places, a grouping raises
on the worker's thread, batches are lost in the middle, spouts are deactivated, limits come, workers are closed during calls. In
the end all trouble is over, and the topology has to come to rest. What comes out is held against what the components have noted
(`world`):

- the calls of one executor never overlap, and all are on one thread, which is not the worker's;
- each tuple that was sent is executed once; between two tasks in the order in which it was sent;
- an emit gets one verdict, and an ack only if all its tuples were acked; each message is acked in the end;
- nothing of an ended instance is carried out or told;
- max spout pending and limits are kept; no next_tuple comes before activate, or after deactivate;
- a batch is prepared only if no call of it is under way, and all that its calls did is carried out;
- in transactions the states have counted each message once;
- nobody waits for ever: all threads end, no call counts as under way when none is;
- no error is reported that nobody has planned, and the workers keep their invariants.

`planted` has races, and the search has to find each.

    python -m tests.schedules.interleaved --seconds 60            # search with new seeds
    python -m tests.schedules.interleaved --planted               # how many runs it takes to find each planted race
"""
