"""``stormspark quickstart NAME``: makes the folder of a new project."""

from __future__ import annotations

import re
from pathlib import Path

import click

__all__ = ["make_project", "print_next_steps"]

#: The files of a project. ``.template`` follows their names, so that no tool takes them for modules or tests of stormspark.
_TEMPLATES, _ENDING = Path(__file__).parent / "project", ".template"
#: Packages leave out files whose names begin with a dot.
_HIDDEN = {"gitignore": ".gitignore"}
#: What may be the name of a Python project, and is a name of a topology and of a folder, too.
_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?")
#: Packages that a project needs. pip would install a project of such a name in the package's place.
_TAKEN = ("stormspark", "pyspark", "py4j", "pyarrow", "numpy", "pandas", "delta-spark", "pytest", "ipykernel")


def make_project(name: str, parent: Path) -> list[Path]:
    """Make the project ``name`` in ``parent``, and return its files.

    Raises `click.BadParameter` for a name that can't be one of a project, and for a folder that can't be made or is not empty.
    """
    if not _NAME.fullmatch(name):
        msg = (
            f"{name!r} can't be the name of a project: use letters from a to z, digits, - and _, beginning with a letter and "
            f"ending with a letter or a digit, such as word-count"
        )
        raise click.BadParameter(msg, param_hint="NAME")
    if name.lower().replace("_", "-") in _TAKEN:
        msg = f"{name!r} is the name of a package that the project needs, and pip would take one for the other: choose another"
        raise click.BadParameter(msg, param_hint="NAME")
    folder = parent / name
    if folder.is_symlink() or folder.exists():
        if not folder.is_dir():
            msg = f"there is a file {name} here already: choose another name, or move it away"
            raise click.BadParameter(msg, param_hint="NAME")
        if any(folder.iterdir()):
            msg = f"the folder {name} is here already and is not empty: choose another name, or move it away"
            raise click.BadParameter(msg, param_hint="NAME")
    try:
        return [_write(template, folder, name) for template in sorted(_TEMPLATES.rglob(f"*{_ENDING}"))]
    except OSError as error:
        msg = f"the project can't be written to {folder.absolute()}: {error.strerror or error}"
        raise click.BadParameter(msg, param_hint="NAME") from error


def _write(template: Path, folder: Path, name: str) -> Path:
    relative = template.relative_to(_TEMPLATES)
    file = relative.name.removesuffix(_ENDING)
    path = folder / relative.parent / _HIDDEN.get(file, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.read_text(encoding="utf-8").replace("{{name}}", name), encoding="utf-8")
    return path


def print_next_steps(name: str, files: list[Path]) -> None:
    """Print what was made, and the commands to type next."""
    click.echo(f"made {name} with {len(files)} files, which {name}/README.md explains. Next:\n")
    steps = [
        (f"cd {name}", ""),
        ("stormspark run word_count.py --engine local", "without Spark: prints the words and ends"),
        ("pytest", "its tests"),
        ("stormspark run word_count.py", "on Spark, on this machine"),
    ]
    width = max(len(command) for command, why in steps if why)
    for command, why in steps:
        click.echo(f"    {command:<{width}}  # {why}" if why else f"    {command}")
