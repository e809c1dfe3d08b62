"""The answers of the REST API: JSON that holds any text."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

__all__ = ["Answer"]


class Answer(JSONResponse):
    r"""An answer in JSON. Text of other encodings, such as in the error of a component, can't be UTF-8, so it is escaped.

    >>> Answer({"error": "file \udcff is gone"}).body
    b'{"error":"file \\udcff is gone"}'
    """

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
