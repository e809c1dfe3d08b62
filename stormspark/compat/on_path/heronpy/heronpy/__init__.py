"""The package ``heronpy``, as far as topologies import it. It has the classes of `stormspark.compat.heronpy`."""

import sys

from stormspark.compat.heronpy.older_names import OlderNames

if not any(isinstance(finder, OlderNames) for finder in sys.meta_path):
    sys.meta_path.append(OlderNames())
