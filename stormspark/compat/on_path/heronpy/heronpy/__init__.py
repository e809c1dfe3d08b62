"""The package ``heronpy``, with the parts that topologies import: `stormspark.compat.heronpy` under heronpy's own names."""

import sys

from stormspark.compat.heronpy.older_names import OlderNames

if not any(isinstance(finder, OlderNames) for finder in sys.meta_path):
    sys.meta_path.append(OlderNames())
