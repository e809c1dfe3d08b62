"""Rows of sources: how they become tuples, how they come back, and what the durable acker hears of them."""
