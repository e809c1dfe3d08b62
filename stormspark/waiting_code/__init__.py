"""Finds out whether the code of a component may wait, so that its executors need threads of their own (A16)."""

from stormspark.waiting_code.search import why_it_may_wait

__all__ = ["why_it_may_wait"]
