"""The state of a worker's tasks, from batch to batch."""
