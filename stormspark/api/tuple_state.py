"""The states of a bolt's input tuple. They tell the engine whether the bolt still has to ack the tuple.

Compiled modules use the C constants of tuple_state.pxd instead. This module itself is never compiled.
"""

from __future__ import annotations

from typing import Final

__all__ = ["HELD", "OPEN", "SETTLED"]

#: The bolt executes the tuple now, and has neither acked nor failed it.
OPEN: Final = 0
#: The tuple was acked or failed, so nobody may ack it again or anchor to it.
SETTLED: Final = 1
#: ``execute`` has returned, and the bolt still has to ack or fail the tuple.
HELD: Final = 2
