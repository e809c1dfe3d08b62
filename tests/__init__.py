"""The tests. They run the sources, also where the tuple path is compiled: ``STORMSPARK_PURE= pytest`` runs what is compiled."""

import os

# Before anything imports stormspark. A test may put something in the place of a function, which compiled code would still call.
os.environ.setdefault("STORMSPARK_PURE", "1")
