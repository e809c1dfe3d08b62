"""The exceptions that end only the call or the task whose user code raised them (W22)."""

from __future__ import annotations

__all__ = ["ERRORS_OF_CODE"]

#: Errors, and the exceptions that end a program: ``sys.exit()`` in one task must not end the worker, which has other tasks.
#: `KeyboardInterrupt` is missing, because it comes from the person at the terminal, and not from the code.
ERRORS_OF_CODE = (Exception, SystemExit, GeneratorExit)
