from notes import Notes
from streamparse import BatchingBolt, Bolt, ReliableSpout, Spout, Stream, TicklessBatchingBolt


class Numbers(Notes, ReliableSpout):
    outputs = ["n"]
    count = 30

    def initialize(self, conf, ctx):
        self.next = 0

    def next_tuple(self):
        if self.next < self.count:
            self.emit([self.next], tup_id=self.next)
            self.next += 1

    def ack(self, tup_id):
        self.note("ack", tup_id)
        super().ack(tup_id)

    def fail(self, tup_id):
        self.note("fail", tup_id)
        super().fail(tup_id)


class Picky(Notes, Bolt):
    """Fails every third number once, by an exception."""

    exit_on_exception = False
    outputs = ["n"]

    def initialize(self, conf, ctx):
        self.seen = set()

    def process(self, tup):
        n = tup.values.n
        if n % 3 == 0 and n not in self.seen:
            self.seen.add(n)
            raise ValueError(n)
        self.emit([n])


class Collect(Notes, Bolt):
    def process(self, tup):
        self.note(*tup.values)


class Pairs(Notes, BatchingBolt):
    outputs = ["rest", "numbers"]
    config = {"topology.tick.tuple.freq.secs": 1}

    def group_key(self, tup):
        return tup.values.n % 2

    def process_batch(self, key, tups):
        self.emit([key, [tup.values.n for tup in tups]])


class Timed(Notes, TicklessBatchingBolt):
    secs_between_batches = 0.5

    def process_batch(self, key, tups):
        self.note([tup.values.n for tup in tups])


class Sorter(Spout):
    """Even and odd numbers on streams of their own; each odd one to a task that is named."""

    outputs = [Stream(fields=["n"], name="even"), Stream(fields=["n"], name="odd", direct=True)]

    def initialize(self, conf, ctx):
        self.todo = list(range(20))
        targets = ctx["stream->target->grouping"]["odd"]
        assert targets == {"odd_bolt": {"type": "DIRECT"}}, targets
        self.tasks = sorted(int(t) for t, name in ctx["task->component"].items() if name == "odd_bolt")

    def next_tuple(self):
        if not self.todo:
            return
        n = self.todo.pop()
        if n % 2:
            self.emit([n], tup_id=n, stream="odd", direct_task=self.tasks[n // 2 % len(self.tasks)])
        else:
            self.emit([n], tup_id=n, stream="even")


class WithTask(Notes, Bolt):
    def process(self, tup):
        self.note(self.task_id, tup.values.n, tup.stream)


class Ticker(Notes, Bolt):
    config = {"topology.tick.tuple.freq.secs": 1}

    def process_tick(self, tup):
        self.note("tick")

    def process(self, tup):
        self.note("tuple")
