"""The parts of a bolt's task: its queue, the size of its chunks, and the runners, one for each kind of bolt."""
