"""The settings of Spark that hold for all programs of this user: ``spark-defaults.conf``, and variables of the environment."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark

__all__ = ["spark_defaults"]

#: Variables that ``spark-submit`` reads. The file counts more.
_VARIABLES = {
    "spark.executor.memory": "SPARK_EXECUTOR_MEMORY",
    "spark.executor.cores": "SPARK_EXECUTOR_CORES",
}
_LINE = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")


def spark_defaults() -> dict[str, str]:
    """Return the settings with which ``spark-submit`` begins, before those of a command."""
    found = {key: value for key, name in _VARIABLES.items() if (value := os.environ.get(name))}
    folder = os.environ.get("SPARK_CONF_DIR") or Path(
        os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "conf"
    )
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in map(str.strip, lines):
        if line[:1] not in ("#", "!") and (parts := _LINE.match(line)):
            found[parts[1]] = parts[2]
    return found
