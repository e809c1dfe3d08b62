"""The parts of a bolt's task: its queue, the size of its chunks, and a runner for each kind of bolt."""
