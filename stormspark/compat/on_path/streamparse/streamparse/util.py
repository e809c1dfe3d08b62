"""What the commands of streamparse share. stormspark has commands of its own, so only what components use is here."""

from stormspark.compat.streamparse.commands import activate_env, die, get_config, get_env_config

__all__ = ["activate_env", "die", "get_config", "get_env_config"]
