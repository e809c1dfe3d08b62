"""Who has not acked: what is recorded of trees, and what becomes of it when they fail."""
