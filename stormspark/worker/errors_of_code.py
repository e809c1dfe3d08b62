"""The exceptions that end only the call or the task whose user code raised them (W22)."""

from __future__ import annotations

__all__ = ["ERRORS_OF_CODE", "contained", "forget_context"]

#: Errors, and the exceptions that end a program: ``sys.exit()`` in one task must not end the worker, which has other tasks.
#: `KeyboardInterrupt` is missing, because it comes from the person at the terminal, and not from the code.
ERRORS_OF_CODE = (Exception, SystemExit, GeneratorExit)


def contained(where: str, error: BaseException) -> Exception:
    """Return an `Exception` for an error that user code has raised in ``where``. Raising it ends no thread and no event loop.

    The error is the cause of the exception, so messages still name the line that raised it.

    >>> contained("execute", KeyError("k"))
    KeyError('k')
    >>> contained("execute", SystemExit(3))
    RuntimeError('execute raised SystemExit: 3')
    """
    if isinstance(error, Exception):
        return error
    containing = RuntimeError(f"{where} raised {type(error).__name__}: {error}")
    containing.__cause__ = error
    return containing


def forget_context(error: BaseException, handled: BaseException | None) -> None:
    """Leave ``handled`` out of the traceback of ``error``: an earlier error, which was handled when user code raised ``error``.

    Contexts that user code has made itself stay.

    >>> first, second, third = KeyError("first"), ValueError("second"), OSError("third")
    >>> third.__context__, second.__context__ = second, first
    >>> forget_context(third, first)
    >>> third.__context__, second.__context__
    (ValueError('second'), None)
    """
    one: BaseException | None = error
    while one is not None and handled is not None:
        if one.__context__ is handled:
            one.__context__ = None
        one = one.__context__
