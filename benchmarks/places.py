"""Where results, peers and documents are: in the tree that people work in, also when what runs is its compiled copy.

`make bench` runs the benchmarks in build/compiled and says by ``BENCH_ROOT`` which tree that is a copy of.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CODE", "ROOT"]

#: The tree that this module is in, from which benchmarks run.
CODE = Path(__file__).resolve().parent.parent
ROOT = Path(os.environ.get("BENCH_ROOT", CODE))
