"""The module ``heronpy.api.api_constants``: some of the names of `stormspark.compat.heronpy.constants`."""

from stormspark.compat.heronpy import constants

globals().update(
    {
        name: value
        for name, value in vars(constants).items()
        if name.startswith(("TOPOLOGY_", "TopologyReliability"))
    }
)
