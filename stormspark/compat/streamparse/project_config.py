"""Reads ``config.json``: a project's environments and their options (A37, A39)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormspark.errors import InvalidTopologyError, TopologyNotFoundError

__all__ = ["Environment", "ProjectConfig", "find_config"]

_log = logging.getLogger(__name__)

#: An environment's settings for ssh, Nimbus and virtualenvs. They have no effect, because stormspark connects to no Storm cluster
#: and makes no virtualenv.
_WITHOUT_EFFECT = (
    "user",
    "nimbus",
    "ssh_port",
    "ssh_password",
    "use_ssh_for_nimbus",
    "sudo_user",
    "ui.port",
    "virtualenv_root",
    "virtualenv_path",
    "virtualenv_name",
    "virtualenv_flags",
    "use_virtualenv",
    "install_virtualenv",
)
#: Options that only streamparse's own commands read.
_FOR_SPARSE = frozenset({*_WITHOUT_EFFECT, "storm.workers.list", "topology.python.path"})
_LEVELS = {
    "critical": "CRITICAL",
    "error": "ERROR",
    "warning": "WARNING",
    "warn": "WARNING",
    "debug": "DEBUG",
    "trace": "DEBUG",
}


@dataclass(frozen=True)
class Environment:
    """One of the environments under ``envs``. ``name`` is None if the project has no environments."""

    name: str | None
    settings: Mapping[str, Any]

    def options(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a topology's configuration: the environment's options, overridden by the topology's ``own`` config (A37).

        The environment's ``log`` becomes options that begin with ``pystorm.log``. Without ``topology.workers`` there are as many
        workers as the environment has hosts. If the environment names no hosts either, planning chooses the number of workers.

        >>> hosts = Environment("prod", {"workers": ["a", "b"], "log": {"level": "WARN"}, "options": {"mine": 1, "other": 2}})
        >>> sorted(hosts.options({"mine": 3}).items())  # doctest: +NORMALIZE_WHITESPACE
        [('mine', 3), ('other', 2), ('pystorm.log.level', 'warn'), ('stormspark.log.level', 'WARNING'), ('topology.workers', 2)]
        """
        settings = self.settings
        given = _mapping(settings.get("options") or {}, f"options of environment {self.name!r}")
        log = _mapping(settings.get("log") or {}, f"log of environment {self.name!r}")
        options = dict(given)
        for key, old in (("path", "log_path"), ("file", "log_file")):
            if value := log.get(key) or settings.get(old):
                options[f"pystorm.log.{key}"] = value
        for key in ("max_bytes", "backup_count"):
            if isinstance(log.get(key), int):
                options[f"pystorm.log.{key}"] = log[key]
        if isinstance(log.get("level"), str):
            options["pystorm.log.level"] = log["level"].lower()
        options.update(own)
        if options.get("topology.debug"):
            options["pystorm.log.level"] = "debug"
        level = _LEVELS.get(str(options.get("pystorm.log.level", "")).lower())
        if level is not None:  # the engine's log must not drop lines that pystorm's level lets through
            options.setdefault("stormspark.log.level", level)
        if options.get("topology.workers") is None and (hosts := self._hosts(options)):
            options["topology.workers"] = len(hosts)
        return {key: value for key, value in options.items() if key not in _FOR_SPARSE}

    def _hosts(self, options: Mapping[str, Any]) -> list[str]:
        hosts = options.get("storm.workers.list") or self.settings.get("workers") or []
        return hosts.split(",") if isinstance(hosts, str) else list(hosts)

    def warn(self) -> None:
        """Log a warning, in one line, that lists the settings that have no effect in stormspark."""
        given = [key for key in _WITHOUT_EFFECT if self.settings.get(key)]
        if given:
            _log.warning(
                "environment %r of config.json: %s %s no effect here, because stormspark connects to no cluster and makes no "
                "virtualenv",
                self.name,
                ", ".join(given),
                "has" if len(given) == 1 else "have",
            )


@dataclass(frozen=True)
class ProjectConfig:
    """A project's ``config.json``. ``file`` is None for a topology that belongs to no project."""

    file: Path | None
    content: Mapping[str, Any]

    def environment(self, name: str | None) -> Environment:
        """Return the environment called ``name``, or, if ``name`` is None, the only environment.

        If ``name`` is None and the project has no environments, the result has no settings. Raises `InvalidTopologyError` if
        there is no such environment, or several to choose from. The message lists all names.
        """
        environments = _mapping(self.content.get("envs") or {}, f"{self.file}: envs")
        there = ", ".join(map(repr, environments)) or "none"
        if name is None and len(environments) > 1:
            msg = f"{self.file} has several environments: choose one by --environment: {there}"
            raise InvalidTopologyError(msg)
        if name is None:
            name = next(iter(environments), None)
        elif name not in environments:
            place = self.file or "there is no config.json beside the topology or above it, so it"
            msg = f"{place} has no environment {name!r}; there are {there}"
            raise InvalidTopologyError(msg)
        settings = environments[name] if name is not None else {}
        return Environment(name, _mapping(settings, f"{self.file}: environment {name!r}"))


def find_config(file: Path) -> ProjectConfig:
    """Find the ``config.json`` for a topology's file. It is in the file's folder, or in the nearest folder above that has one.

    Without such a file, the result is empty. Raises `TopologyNotFoundError` if the file is not JSON.
    """
    for folder in file.resolve().parents:
        path = folder / "config.json"
        if path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                msg = f"{path} is not JSON: {error}"
                raise TopologyNotFoundError(msg) from error
            return ProjectConfig(path, _mapping(content, str(path)))
    return ProjectConfig(None, {})


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        msg = f"{what} must be a mapping, got {value!r:.80}"
        raise InvalidTopologyError(msg)
    return value
