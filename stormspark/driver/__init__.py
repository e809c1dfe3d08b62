"""The driver's side of a topology's batches, for both engines. The driver knows the workers only by their reports."""
