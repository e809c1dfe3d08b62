"""What user code may raise without ending more than its own call, or its own task (W22)."""

from __future__ import annotations

__all__ = ["ERRORS_OF_CODE"]

#: An error, or a wish to end the program: a worker has other tasks, so ``sys.exit()`` in one of them must not end it.
#: `KeyboardInterrupt` is not here, because on the main thread it is the user who interrupts, and not the code.
ERRORS_OF_CODE = (Exception, SystemExit, GeneratorExit)
