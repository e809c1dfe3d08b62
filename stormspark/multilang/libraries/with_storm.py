# Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
"""Runs a child's script with the ``storm.py`` of this folder, though the script's own folder has another ``storm.py``.

python with_storm.py SCRIPT [ARGUMENT ...]
"""

import os
import runpy
import sys

if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(sys.argv[1]))
    sys.path[0] = os.path.dirname(os.path.abspath(__file__))
    import storm  # noqa

    sys.path[0] = folder
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
