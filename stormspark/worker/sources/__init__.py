"""Rows of sources. This package turns rows into tuples, emits failed rows again, and tells the durable acker about open rows."""
