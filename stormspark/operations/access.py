"""Who may use the REST API on a port: whoever knows the token. On the Unix socket, the file system has decided that already."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from stormspark.operations.answers import Answer
from stormspark.operations.health import OPEN_PATHS
from stormspark.operations.storm_api import error

__all__ = ["TOKEN", "TokenRequired", "given_token", "new_token"]

#: The environment variable with a token of the user's own. It is no setting, because settings are shown.
TOKEN = "STORMSPARK_UI_TOKEN"


def new_token() -> str:
    """Return the token of `TOKEN`, or else a random one."""
    return os.environ.get(TOKEN) or secrets.token_urlsafe(24)


def given_token(authorization: str) -> str | None:
    """Return the token of an ``Authorization`` header: a bearer's, or the password of any user. None if there is none.

    >>> given_token("Bearer abc"), given_token("Basic " + base64.b64encode(b"me:abc").decode()), given_token("Digest x")
    ('abc', 'abc', None)
    """
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(rest, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None


class TokenRequired:
    """An ASGI application in front of another one, which answers 401 to whoever does not know the token.

    A browser sends a password that it knows with requests of other sites, too. These say where they come from, and get a 403.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with the token, and one about health."""
        if scope.get("path") in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = given_token(headers.get("authorization", ""))
        origin = headers.get("origin")
        refusal = None
        if given is None or not hmac.compare_digest(given.encode(), self._token):
            said = f"give the token as a bearer's, or as a password: it is what {TOKEN} was for the driver, or else a random one"
            refusal = Answer(
                error(HTTPStatus.UNAUTHORIZED, said), 401, {"WWW-Authenticate": 'Basic realm="stormspark"'}
            )
        elif origin is not None and urlsplit(origin).netloc != headers.get("host"):
            refusal = Answer(
                error(HTTPStatus.FORBIDDEN, f"the request comes from another site, {origin}"), 403
            )
        await (self._app if refusal is None else refusal)(scope, receive, send)
