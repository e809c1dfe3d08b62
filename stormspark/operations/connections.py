"""A connection to the REST API. There is a limit to how many there are, and to how long one waits for its request.

Whoever reaches the port can connect without a token, and each connection takes one of the files that the driver may open: without
limits, somebody could take them all, and the topology would fail.
"""

from __future__ import annotations

import asyncio
import logging

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["limited_server"]

#: The server accepts so many connections before it looks at one. Each may be one too many.
_ACCEPTED_AT_ONCE = 50

#: The most connections at once. Pages and commands need a few.
_MOST = 100
#: A connection that has begun no request for so long, and has none under way, is closed. In seconds.
_IDLE_SECS = 20.0
#: So many looks, `_IDLE_SECS` apart, may find the same request under way. It is either one that does not come to its end, or one
#: whose answer nobody reads. Calls take seconds.
_MOST_LOOKS = 15


class _LimitedConnection(H11Protocol):
    """A connection as uvicorn has them, with these limits. One too many is closed at once."""

    _look: asyncio.TimerHandle | None = None
    #: The request of the last look.
    _seen: object = None
    _looks = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        if len(self.connections) > _MOST:
            transport.abort()
        else:
            self._look = self.loop.call_later(_IDLE_SECS, self._end_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _end_if_idle(self) -> None:
        seen, self._seen = self._seen, self.cycle
        self._looks = self._looks + 1 if self.cycle is seen else 0
        if self.cycle is seen and (seen is None or self.cycle.response_complete) and not self._writes():
            self.transport.close()
        elif self._looks >= _MOST_LOOKS:
            self.transport.abort()
        else:
            self._look = self.loop.call_later(_IDLE_SECS, self._end_if_idle)

    def _writes(self) -> bool:
        """Whether the other side has not read all of the answers yet."""
        return self.transport.get_write_buffer_size() > 0


def limited_server(application: ASGIApp, *, shutdown_secs: int | None = None) -> uvicorn.Server:
    """Return a server with these limits. ``shutdown_secs`` is how long its end waits for answers; None is without limit."""
    logging.getLogger("uvicorn.error").addFilter(_is_trouble)
    return uvicorn.Server(
        uvicorn.Config(
            application,
            loop="asyncio",
            http=_LimitedConnection,
            backlog=_ACCEPTED_AT_ONCE,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=shutdown_secs,
        )
    )


def _is_trouble(record: logging.LogRecord) -> bool:
    """Whether uvicorn says something that matters. That somebody has not read an answer until the end does not."""
    return not str(record.msg).startswith("Cancel %s running task")
