"""The driver's side of a topology's batches, the same for both engines. It knows the workers only by their reports."""
