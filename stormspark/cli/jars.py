"""``stormspark jars``: fetches jars for Spark before they are needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from stormspark.cli.spark_options import SparkOptions

__all__ = ["fetch_jars"]


def fetch_jars(options: SparkOptions, to: Path | None) -> int:
    """Fetch the jars, copy them if ``to`` is a folder, print their paths, and return the exit code.

    Raises `UnsupportedEnvironmentError` if they can't be fetched.
    """
    if not (options.delta or options.conf.get("spark.jars.packages")):
        msg = "give --delta or --packages"
        raise click.UsageError(msg)
    from stormspark.spark.delta_jars import delta_packages
    from stormspark.spark.session import fetched_jars

    jars = fetched_jars(delta_packages(options.conf) if options.delta else options.conf)
    if to is not None:
        to.mkdir(parents=True, exist_ok=True)
        jars = [str(shutil.copy(jar, to / Path(jar).name)) for jar in jars]
    for jar in jars:
        click.echo(jar)
    return 0
