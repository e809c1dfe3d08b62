"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Result", "Status"]


class Status(StrEnum):
    """How it is: fine; fine, with something to know; something will be slow or may go wrong; a topology can't run."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Result:
    """What the check ``check`` has found, in words. ``advice`` says what to do, and is empty if there is nothing to do.

    >>> print(Result("Java", Status.FAILED, "Spark needs Java 17 or later, but there is none on the PATH", "install one"))
    Spark needs Java 17 or later, but there is none on the PATH: install one
    """

    check: str
    status: Status
    found: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.found}: {self.advice}" if self.advice else self.found

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"check": self.check, "status": self.status.value, "found": self.found, "advice": self.advice}
