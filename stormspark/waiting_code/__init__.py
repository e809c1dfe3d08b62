"""Finds out whether a component's code may wait, which means block: in a sleep, on a network, a file or a lock (A16).

Executors of such a component need threads of their own.
"""

from stormspark.waiting_code.declared import WaitsValueError, declared_waits
from stormspark.waiting_code.search import Findings, look_through, why_it_may_wait

__all__ = ["Findings", "WaitsValueError", "declared_waits", "look_through", "why_it_may_wait"]
