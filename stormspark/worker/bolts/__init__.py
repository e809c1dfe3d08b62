"""What the task of a bolt consists of: its queue, the size of its chunks, and a runner for each kind of bolt."""
