"""The driver's side of a topology's batches, the same for both engines: it knows the workers by their reports only."""
