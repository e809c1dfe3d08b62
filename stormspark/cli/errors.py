"""Prints the last errors of a topology's components, each with its time, its task and the user's line."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.text import Text

from stormspark.cli.reach import Reach
from stormspark.ui.log_lines import one_line_of
from stormspark.ui.printable import printable

__all__ = ["print_errors"]


def print_errors(reach: Reach, component: str | None, *, in_full: bool, as_json: bool) -> int:
    """Print the last errors, the newest last, and return the exit code. ``in_full`` prints tracebacks, too.

    Raises `TopologyNotAliveError` if there is no such topology or component.
    """
    asked = "" if component is None else f"?component={quote(component, safe='')}"
    answer = reach.driver().about(f"errors{asked}")
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
        return 0
    console = Console(highlight=False)
    errors: list[dict[str, Any]] = answer["errors"]
    if not errors:
        of = f"{component} of {answer['id']}" if component else answer["id"]
        console.print(Text(f"{of} has reported no errors"), soft_wrap=True)
    for one in reversed(errors):
        at = datetime.fromtimestamp(one["errorTime"]).astimezone()
        where = f" on {one['host']}" if one["host"] else ""
        text = str(one["error"])
        shown = "\n" + "\n".join(map(printable, text.splitlines())) if in_full else one_line_of(text)
        line = f"{at:%Y-%m-%d %H:%M:%S} {one['taskName']} in worker {one['worker']}{where}: {shown}"
        console.print(Text(line), soft_wrap=True)
    return 0
