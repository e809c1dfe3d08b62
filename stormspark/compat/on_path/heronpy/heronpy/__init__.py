"""heronpy, as far as topologies import it: `stormspark.compat.heronpy` under the original's names."""

import sys

from stormspark.compat.heronpy.older_names import OlderNames

if not any(isinstance(finder, OlderNames) for finder in sys.meta_path):
    sys.meta_path.append(OlderNames())
