"""Executors with a thread of their own, for components whose code may wait (A16)."""
