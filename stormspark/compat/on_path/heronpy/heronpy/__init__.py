"""The package ``heronpy``, with the parts that topologies import: `stormspark.compat.heronpy` under the original's names."""

import sys

from stormspark.compat.heronpy.older_names import OlderNames

if not any(isinstance(finder, OlderNames) for finder in sys.meta_path):
    sys.meta_path.append(OlderNames())
