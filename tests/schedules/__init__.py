"""A search of schedules: the protocol of a batch under everything that can happen to it.

A **schedule** decides all that may come this way or that: the shape of a small topology, how many rows each partition has in each
batch, how many tuples make a chunk and a frame, at which look at the clock a superstep's time is up, which tuples fail and how,
when Spark asks again, in which order requests come, what a limit lets spouts emit, when a worker, the driver or a round is lost,
also at each step inside of prepare and commit (`stormspark.checkpoint.barriers`), when a table or a destination refuses, and
when somebody stops the topology. A seed draws a schedule; a seed takes some of these kinds of trouble, and leaves the others
alone. Small runs are enumerated (`enumerated`): each single thing that can happen in them, at each place.

What it drives is real: `Worker`, `Desk`, `Ledger`, `Transaction`, `FailedRows`, `BatchCommits`, `Outbox`, the transactional
builder. What stands in for Spark is `engine`, which does call by call what `stormspark.spark.query_run`,
`stormspark.spark.layout` and `stormspark.worker.host.process` do. What stands in for Delta is `memory_table`.
Time is a clock that the schedule drives.

What comes out is held against a plain sequential run of a few lines:

- each row's effects are in the state, and in every sink, exactly once, and all sinks agree on the number that was drawn for
  it, so nothing is left of an attempt that was taken back; those of a row whose tuple a bolt kept over the end of its batch
  (the family ``kept``) are there at least once;
- a destination never sees two contents of one delivery, and nothing before its batch is committed;
- a message is acked at most once, after its commit; `post_save` comes once, after the commit;
- a batch with a failed tree is not committed; a row is given up after as many attempts as were asked for, not before;
- a repeated request gets the first one's reply; ledgers keep their invariants, and are empty in the end; and there is an end.

One that breaks a promise is made simple (`search.simplest`) and printed with its seed, what it takes, and the line that
repeats it.
`planted` puts defects back, and the search has to find each one: it is measured by that.

    python -m tests.schedules --seconds 60          # search with new seeds; make soak-schedules does it for an hour
    python -m tests.schedules exactly-once --schedule '{...}'    # a line that was printed
"""
