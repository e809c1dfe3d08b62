"""Async components in a worker: the event loop, and the ordinary bolt and spout around an async one."""
