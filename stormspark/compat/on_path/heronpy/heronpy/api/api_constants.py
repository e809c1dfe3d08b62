"""As in heronpy."""

from stormspark.compat.heronpy import constants

globals().update(
    {
        name: value
        for name, value in vars(constants).items()
        if name.startswith(("TOPOLOGY_", "TopologyReliability"))
    }
)
