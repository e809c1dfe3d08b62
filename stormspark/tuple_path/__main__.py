"""Says whether the tuple path is compiled: ``python -m stormspark.tuple_path``."""

from __future__ import annotations

import sys

from stormspark.tuple_path import compiled, why_sources

if __name__ == "__main__":
    why = why_sources()
    sys.stdout.write(
        f"the tuple path is {'compiled' if compiled() else 'Python'}{f', because {why}' if why else ''}\n"
    )
