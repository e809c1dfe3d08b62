"""How a command reaches a driver: on this host by name, at the URL of its REST API, or through its checkpoint folder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import click
from click.shell_completion import CompletionItem

from stormspark.checkpoint.commands import FOLDER
from stormspark.checkpoint.control import ControlFile, LocalControlFile
from stormspark.checkpoint.dead_letters import LetterFiles, LocalLetterFiles
from stormspark.cli.refusing import assignments
from stormspark.errors import StormsparkError
from stormspark.launcher import is_url, on_databricks
from stormspark.operations.access import TOKEN
from stormspark.operations.checkpoint_client import CheckpointClient
from stormspark.operations.client import Client, Driver, UrlClient
from stormspark.operations.registry import entries, entry_of

__all__ = ["Reach", "complete_names", "reaches", "reaches_all"]

_R = TypeVar("_R")


class Reach(NamedTuple):
    """Which topology, and the way to its driver."""

    name: str | None = None
    url: str | None = None
    token: str | None = None
    checkpoint: str | None = None
    #: How long the driver may take to answer through the checkpoint, in seconds.
    answer_secs: float = 60.0
    #: Settings of a Spark that has to reach the checkpoint.
    conf: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_here(self) -> bool:
        """Whether the driver is one of this user's on this host."""
        return self.url is None and self.checkpoint is None

    def driver(self) -> Driver:
        """Return what asks the driver. Raises `TopologyNotAliveError` if there is no such topology."""
        if self.url is not None and self.checkpoint is not None:
            msg = "--url and --checkpoint are two ways to the driver: give one of them"
            raise click.UsageError(msg)
        if self.url is not None:
            return UrlClient(self.url, self.token, self.name)
        if self.checkpoint is not None:
            return self._through_the_checkpoint(self.checkpoint)
        return Client(entry_of(self.given_name))

    def _through_the_checkpoint(self, checkpoint: str) -> Driver:
        if checkpoint.startswith("file:"):
            checkpoint = unquote(urlsplit(checkpoint).path)
        control: ControlFile
        files: LetterFiles
        if is_url(checkpoint) or on_databricks():
            from stormspark.spark.commands import commands_at_url  # this takes a second

            control, files = commands_at_url(checkpoint.rstrip("/"), self.conf)
        else:
            path = Path(checkpoint)
            control, files = LocalControlFile(path), LocalLetterFiles(path / FOLDER, shared=True)
        return CheckpointClient(
            control,
            files,
            self.name,
            say=lambda text: click.echo(text, err=True),
            limit_secs=self.answer_secs,
        )

    @property
    def given_name(self) -> str:
        """The name of the topology. Raises `click.UsageError` if none was given."""
        if self.name is None:
            msg = (
                "Missing argument 'NAME': the name or the id of a topology, as `stormspark list` prints them."
            )
            raise click.UsageError(msg)
        return self.name


def complete_names(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the names of this user's topologies on this host that begin with what was typed."""
    try:
        return [CompletionItem(one.topology) for one in entries() if one.topology.startswith(begun)]
    except (StormsparkError, OSError):
        return []


_options = (
    click.option(
        "--url",
        metavar="URL",
        help="The driver's REST API (stormspark.ui.port), such as http://host:8080, for a driver of another host or user.",
    ),
    click.option(
        "--token",
        metavar="TOKEN",
        envvar=TOKEN,
        show_envvar=True,
        help="The token of that REST API. Other users of this host can see what is given here, but not the variable.",
    ),
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="The topology's checkpoint folder, a path or a URL, for a driver that no connection reaches: the command travels "
        "through the folder. Whoever may write there may command.",
    ),
    click.option(
        "--answer-secs",
        type=click.FloatRange(min=1),
        default=60.0,
        show_default=True,
        metavar="SECS",
        help="With --checkpoint: how long the driver may take to answer.",
    ),
    click.option(
        "-c",
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=assignments,
        help="A setting of Spark (spark.*), for a checkpoint at a URL. May be repeated.",
    ),
)


def reaches_all(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare the options for a command about all topologies, and pass them as ``reach``."""

    @functools.wraps(command)
    def wrapped(
        *,
        url: str | None,
        token: str | None,
        checkpoint: str | None,
        answer_secs: float,
        conf: dict[str, Any],
        name: str | None = None,
        **others: Any,
    ) -> _R:
        return command(reach=Reach(name, url, token, checkpoint, answer_secs, conf), **others)

    for option in reversed(_options):
        wrapped = option(wrapped)
    return wrapped


def reaches(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare ``NAME`` and the options for a command about one topology, and pass them as ``reach``."""
    return click.argument("name", metavar="NAME", required=False, shell_complete=complete_names)(
        reaches_all(command)
    )
