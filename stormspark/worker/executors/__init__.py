"""Executors that have threads of their own, for components whose code may wait (A16)."""
