"""What projects import of streamparse's commands: they read ``config.json`` with it.

Components of some projects call these functions in ``initialize``, to read hosts and options of an environment.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

from stormspark.compat.streamparse.project_config import find_config

__all__ = ["activate_env", "die", "get_config", "get_env_config"]


def die(msg: str, error_code: int = 1) -> NoReturn:
    """Exit with a message."""
    sys.stderr.write(f"error: {msg}\n")
    raise SystemExit(error_code)


def get_config(config_file: str | None = None) -> dict[str, Any]:
    """Return the content of ``config.json`` in the working directory, or in a folder above it."""
    path = Path(config_file) if config_file else Path("config.json")
    return dict(find_config(path.absolute()).content)


def get_env_config(
    env_name: str | None = None, config_file: str | None = None
) -> tuple[str | None, dict[str, Any]]:
    """Return the name and the settings of an environment, by default of the only one."""
    path = Path(config_file) if config_file else Path("config.json")
    environment = find_config(path.absolute()).environment(env_name)
    return environment.name, dict(environment.settings)


def activate_env(*args: Any, **kwargs: Any) -> None:
    """Do nothing: stormspark connects to no hosts."""
