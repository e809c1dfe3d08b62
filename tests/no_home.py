"""A user without a home, as in a container that runs as any number (``docker run --user 12345``)."""

from __future__ import annotations

import pytest


def without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this user have neither HOME nor a name."""

    def unknown(uid: int) -> None:
        msg = f"getpwuid(): uid not found: {uid}"
        raise KeyError(msg)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
