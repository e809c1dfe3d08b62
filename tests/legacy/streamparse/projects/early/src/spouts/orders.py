from streamparse.spout import Spout


class Orders(Spout):
    """Sixty orders of three customers; those of 50 and more are on the stream of big ones too."""

    def initialize(self, conf, ctx):
        self.next = 0

    def next_tuple(self):
        if self.next < 60:
            order = [["ann", "bob", "cat"][self.next % 3], self.next]
            tasks = self.emit(order, tup_id=self.next)
            assert isinstance(tasks, list)
            if self.next >= 50:
                self.emit_many([[self.next]], stream="big", tup_ids=[("big", self.next)])
            self.next += 1
