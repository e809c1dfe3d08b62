"""Asks the driver of a topology: by its Unix socket, or at the URL of its REST API."""

from __future__ import annotations

from typing import Any, NoReturn

import httpx

from stormspark.errors import StatusError, TopologyNotAliveError
from stormspark.likely_names import nearest
from stormspark.operations.access import TOKEN
from stormspark.operations.registry import Entry

__all__ = ["Client", "Driver", "UrlClient"]

#: A driver that is busy answers late, because its calls share the interpreter with its batches.
_TIMEOUT_SECS = 10.0


class Driver:
    """The REST API of one driver, by whatever way. A subclass has `send`.

    Each method raises `TopologyNotAliveError` if the driver does not answer or has no such topology, and `StatusError` if it
    refuses.
    """

    #: The topology's name and id. Both are empty until the driver has said them.
    name = id = ""

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Send a request about a path below ``api/v1``, with a body as JSON. Return the status of HTTP, and the answer."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """Return what ``topology/summary`` says of the topology."""
        found: dict[str, Any] = self.ask("GET", "topology/summary")["topologies"][0]
        return found

    def do(self, action: str, body: object = None) -> dict[str, Any]:
        """Ask for an action, such as ``kill/30``, and return the answer."""
        return self.ask("POST", f"topology/{self.id}/{action}", body)

    def about(self, what: str) -> dict[str, Any]:
        """Return what a call below ``topology/:id`` says, such as ``errors``."""
        return self.ask("GET", f"topology/{self.id}/{what}")

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a request, and return the answer."""
        status, answer = self.send(method, path, body)
        if status >= 400:
            message = str(answer.get("errorMessage") or answer)
            raise (TopologyNotAliveError if status == httpx.codes.NOT_FOUND else StatusError)(message)
        return answer


class Client(Driver):
    """The driver of an entry of the registry, by its Unix socket."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.name, self.id = entry.topology, entry.id

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """See `Driver`."""
        entry = self._entry
        driver = f"the driver of topology {entry.topology!r}, process {entry.pid},"
        if not entry.lives:
            msg = f"topology {entry.topology!r} does not run any more: its driver, process {entry.pid}, has ended"
            raise TopologyNotAliveError(msg)
        try:
            with httpx.Client(
                transport=httpx.HTTPTransport(uds=entry.socket), timeout=_TIMEOUT_SECS
            ) as client:
                answer = client.request(method, f"http://driver/api/v1/{path}", json=body)
        except httpx.ConnectError as error:
            msg = f"{driver} takes no commands: {error}"
            raise TopologyNotAliveError(msg) from error
        except httpx.TimeoutException as error:
            msg = f"{driver} has not answered within {_TIMEOUT_SECS:g} s ({error})"
            raise TopologyNotAliveError(msg) from error
        except httpx.HTTPError as error:
            msg = f"{driver} has ended in the middle of the call, or is about to: {error}"
            raise TopologyNotAliveError(msg) from error
        return answer.status_code, _object_of(answer, driver)


class UrlClient(Driver):
    """The topology ``name``, by name or id, at the URL of a REST API. Without a name, the only one that is there.

    Raises `TopologyNotAliveError` if there is no such topology, or if nobody answers, and `StatusError` for a wrong token.
    """

    def __init__(self, url: str, token: str | None, name: str | None) -> None:
        self._url, self._token = _base(url), token
        there = self.ask("GET", "topology/summary").get("topologies")
        if not isinstance(there, list) or not all(isinstance(one, dict) for one in there):
            self._is_no_api("has no list of topologies")
        found = [one for one in there if name is None or name in (one.get("name"), one.get("id"))]
        if len(found) != 1:
            names = [str(one.get("name")) for one in there]
            what = "say which topology" if name is None else f"there is no topology {name!r}"
            there_are = f": there are {', '.join(names) or 'none'}"
            msg = f"{what} at {self._url}{nearest(name or '', names) or there_are}"
            raise TopologyNotAliveError(msg)
        self.name, self.id = str(found[0].get("name")), str(found[0].get("id"))

    def summary(self) -> dict[str, Any]:
        """See `Driver`."""
        there = self.ask("GET", "topology/summary")["topologies"]
        return next((one for one in there if one.get("id") == self.id), {})

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """See `Driver`."""
        # Whoever gets the request sees the token: so it follows no redirection to another place.
        auth = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        try:
            answer = httpx.request(
                method, f"{self._url}/{path}", json=body, headers=auth, timeout=_TIMEOUT_SECS
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            msg = f"nobody answers at {self._url}: {str(error) or type(error).__name__}"
            raise TopologyNotAliveError(msg) from error
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            was = "takes another token" if self._token else "wants a token"
            msg = (
                f"{self._url} {was}: set {TOKEN} to that of the driver. If the driver has a random one, it is in the file with "
                f"the ending .json beside its socket, in the driver's user's folder stormspark-UID in /tmp"
            )
            raise StatusError(msg)
        if answer.is_redirect:
            self._is_no_api(f"leads to {answer.headers.get('location', 'another place')}: give that one")
        return answer.status_code, _object_of(answer, self._url)

    def _is_no_api(self, reason: str) -> NoReturn:
        msg = f"{self._url} is no REST API of a topology: it {reason}"
        raise TopologyNotAliveError(msg)


def _base(url: str) -> str:
    """Return the URL below which the calls are.

    >>> _base("http://host:8080"), _base("https://host/proxy/api/v1/")
    ('http://host:8080/api/v1', 'https://host/proxy/api/v1')
    """
    if not url.startswith(("http://", "https://")):
        msg = f"{url!r} is no URL of a driver: expected one such as http://host:8080, as `stormspark list` prints it"
        raise TopologyNotAliveError(msg)
    return f"{url.rstrip('/').removesuffix('/api/v1')}/api/v1"


def _object_of(answer: httpx.Response, who: str) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        msg = f"{who} answers no JSON object, but with the status {answer.status_code}: {answer.text[:80]!r}"
        raise TopologyNotAliveError(msg)
    return found
