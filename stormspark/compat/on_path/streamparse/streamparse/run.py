"""streamparse's script that runs one class. stormspark runs the class in a worker."""

import sys

__all__ = ["main"]


def main() -> None:
    """Exit with a message that says how to run the topology."""
    sys.exit(
        "a component can't be run alone, and no process is started for it: run the topology that it is part of by "
        "`stormspark run topologies/NAME.py` (or NAME.clj)"
    )


if __name__ == "__main__":
    main()
