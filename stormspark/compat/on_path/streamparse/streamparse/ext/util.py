"""What the commands of streamparse share, as streamparse 1 called the module."""

from streamparse.util import activate_env, die, get_config, get_env_config

__all__ = ["activate_env", "die", "get_config", "get_env_config"]
