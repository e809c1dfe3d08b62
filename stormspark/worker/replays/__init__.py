"""One batch of one task, recorded and run again."""
