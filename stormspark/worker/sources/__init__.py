"""Rows of sources: how they become tuples, how they are emitted again, and how the durable acker learns of them."""
