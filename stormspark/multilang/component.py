"""The common base of `ShellBolt` and `ShellSpout`: the child's command and environment, and the declared streams (I3, I18)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from stormspark.api import Component, Fields, OutputFieldsDeclarer
from stormspark.errors import InvalidTopologyError, MultilangError
from stormspark.metrics import Metric
from stormspark.multilang.conversation import Surroundings
from stormspark.multilang.interpreters import (
    as_run,
    missing_program,
    not_a_program,
    old_library,
    python_2,
    runnable,
    with_library,
    with_own_library,
)
from stormspark.multilang.scripts import NotFound, Script, find, script_of
from stormspark.spi import LivesOutside
from stormspark.user_line import user_line
from stormspark.worker.host.launch import INHERITED_PATH
from stormspark.working_folder import from_start

__all__ = ["RESOURCES", "Outputs", "ShellComponent", "StreamLike"]

#: The configuration key that names the folder in which children start.
RESOURCES = "stormspark.multilang.resources"


class StreamLike(Protocol):
    """An output stream, as classes of other packages describe it."""

    @property
    def fields(self) -> Sequence[str]:
        """The names of the stream's fields."""


#: The outputs of a component: the fields of its default stream, or a mapping from the names of streams to the streams. Each
#: stream in the mapping is a list of fields, or an object that has ``fields`` and may have ``direct``.
Outputs = Sequence[str] | Mapping[str, Sequence[str] | StreamLike]


class ShellComponent(Component, LivesOutside):
    """The base class of `ShellBolt` and `ShellSpout`."""

    def __init__(
        self,
        command: Sequence[str],
        outputs: Outputs = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        metrics: Mapping[str, Metric] | None = None,
    ) -> None:
        self._declared_at = user_line()
        self._beside = Path(os.path.abspath(self._declared_at.rpartition(":")[0])).parent
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            self._refuse(f"a command must be a list of words, as ['python3', 'split.py'], got {command!r}")
        self._command = list(command)
        if isinstance(outputs, str):
            self._refuse(
                f"outputs must be the fields of the default stream, as ['word'], or those of each stream by name, got {outputs!r}"
            )
        self._outputs = outputs
        self._env: dict[str, str] = {}
        self._cwd = None if cwd is None else os.fspath(cwd)
        self._metrics = dict(metrics or {})
        self.set_env(env or {})

    # -- methods that Storm's classes have too (I3) --------------------------------------------------------------

    def set_env(self, env: Mapping[str, str]) -> Self:
        """Set environment variables of the child, in addition to the worker's variables.

        They replace the variables of earlier calls. As in Storm, the value of ``PATH`` is appended to the worker's ``PATH``.
        """
        for name, value in env.items():
            if not isinstance(name, str) or not isinstance(value, str):
                self._refuse(f"env must map names to strings, got {name!r}: {value!r}")
        self._env = dict(env)
        return self

    def change_child_cwd(self, change: bool) -> None:
        """Set whether the child starts in the resources folder. With False, it starts in the worker's working directory."""
        self._cwd = None if change else "."

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams in ``outputs``. A subclass may declare other streams."""
        if not isinstance(self._outputs, Mapping):
            if self._outputs:
                declarer.declare(Fields(*self._outputs))
            return
        for stream, declared in self._outputs.items():
            fields = declared if isinstance(declared, Sequence) else declared.fields
            declarer.declare_stream(stream, Fields(*fields), direct=bool(getattr(declared, "direct", False)))

    def _refuse(self, problem: str) -> None:
        msg = f"{self._declared_at}: {type(self).__name__}: {problem}"
        raise InvalidTopologyError(msg)

    # -- the child's surroundings --------------------------------------------------------------------------------

    def surroundings(self, conf: Mapping[str, Any], label: str) -> Surroundings:
        """Return how the child is started on this host. Raises `MultilangError`, with the reason, if it can't be started.

        Errors begin with ``label``, the name of the task.
        """
        environment = self._environment()
        command = runnable(self._command, environment)
        script = script_of(self._command)
        folder, file = self._place(conf, script, f"{label}: ")
        note = ""
        problem = missing_program(command, environment)
        if problem is None and script is not None and file is not None and file.is_file():
            whole, run = as_run(command, script, file)
            problem = not_a_program(script, file, environment) or python_2(whole, run, file)
            environment = with_library(run, file, environment, folder)
            if (old := old_library(whole, run, file)) is not None:
                note = f"{old}. stormspark's own storm.py takes its place"
                command = with_own_library(whole, run)
        if problem is not None:
            msg = (
                f"{label}: its child can't be started: {shlex.join(self._command)} in {folder}: {problem}\n"
                f"  declared at {self._declared_at}"
            )
            raise MultilangError(msg)
        return Surroundings(command, str(folder), environment, self._metrics, note)

    def check_script(self, conf: Mapping[str, Any]) -> str | None:
        """Look for the child's script before the topology runs. Returns why the child can't be started on this host, or None.

        Raises `InvalidTopologyError` if the script is there, but is Python 2.
        """
        script = script_of(self._command)
        environment = self._environment()
        command = runnable(self._command, environment)
        try:
            _, file = self._place(conf, script)
        except MultilangError as error:
            return str(error)
        if script is not None and file is not None and file.is_file():
            problem = python_2(*as_run(command, script, file), file)
            if problem is not None:
                self._refuse(f"{shlex.join(self._command)}: {problem}")
            if (problem := not_a_program(script, file, environment)) is not None:
                return f"{self._declared_at}: {shlex.join(self._command)}: {problem}"
        missing = missing_program(command, environment)
        return missing and f"{self._declared_at}: {shlex.join(self._command)}: {missing}"

    def _place(
        self, conf: Mapping[str, Any], script: Script | None, label: str = ""
    ) -> tuple[Path, Path | None]:
        """Return the folder in which the child starts, and the file of its script (see docs/multilang.md).

        The folder is ``cwd``, or the folder that the setting names, or a folder of the project that has the script.
        """
        given = (
            self._existing(Path(self._cwd), "cwd")
            if self._cwd is not None
            else self._existing(Path(from_start(conf[RESOURCES])), RESOURCES)
            if conf.get(RESOURCES) is not None
            else None
        )
        if given is not None:
            return given, None if script is None else given / script.name
        if script is None or os.path.isabs(script.name):
            file = None if script is None else Path(script.name)
            candidates = [self._beside / "resources", Path(from_start("resources")), self._beside]
            for folder in candidates:
                if folder.is_dir():
                    return folder.resolve(), file
            tried = ", ".join(str(folder.absolute()) for folder in candidates)
            msg = (
                f"{label}the child has no folder to start in, because none of these is on this host: {tried}. Ship the "
                f"scripts with the topology (spark-submit --archives resources.zip#resources), or name a folder with "
                f"{RESOURCES}, or with cwd"
            )
            raise MultilangError(msg)
        found = find(script.name, self._beside)
        if isinstance(found, NotFound):
            msg = (
                f"{label}{self._declared_at}: {shlex.join(self._command)}: the script {found}. Put it into resources/ beside "
                f"the topology's file. If only workers have it (spark-submit --archives resources.zip#resources), name its "
                f"folder with {RESOURCES}, or with cwd"
            )
            raise MultilangError(msg)
        return found.folder, found.file

    @staticmethod
    def _existing(folder: Path, what: str) -> Path:
        if not folder.is_dir():
            msg = f"{what} is {str(folder)!r}, and there is no such folder on this host ({folder.absolute()})"
            raise MultilangError(msg)
        return folder.resolve()

    def _environment(self) -> dict[str, str]:
        """Return the child's environment: the worker's, with ``env``, but without the settings for the worker's own Python."""
        environment = dict(os.environ)
        inherited = environment.pop(INHERITED_PATH, None)
        if inherited is not None:
            environment["PYTHONPATH"] = inherited
        if not environment.get("PYTHONPATH"):
            environment.pop("PYTHONPATH", None)
        for name, value in self._env.items():
            both = name == "PATH" and environment.get(name)
            environment[name] = f"{environment[name]}{os.pathsep}{value}" if both else value
        return environment
