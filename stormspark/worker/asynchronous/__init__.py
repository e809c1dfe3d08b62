"""Async components in a worker. They run on an event loop, inside an ordinary bolt or spout."""
