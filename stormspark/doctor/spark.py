"""Which Spark would a topology get, and do its jars fit? Nothing here imports pyspark or starts Java."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from stormspark.doctor.result import Result, Status
from stormspark.extras import first_missing, missing, version_of
from stormspark.launcher import pyspark_found

__all__ = [
    "DELTA_RANGE",
    "LEAST_SPARK",
    "SPARK_RANGE",
    "check_jars",
    "check_spark",
    "check_spark_home",
    "pyspark_found",
    "spark_folder",
]

#: The oldest Spark that runs topologies, and the first one that nobody has tried.
LEAST_SPARK, _UNTRIED_SPARK = (4, 0), (4, 3)
#: What pip is to install. ``pyproject.toml`` has the same.
SPARK_RANGE, DELTA_RANGE = "pyspark>=4.0,<4.3", "delta-spark>=4.4,<4.5"

_JAR = re.compile(
    r"(?P<name>delta-spark|spark-sql-kafka-0-10|delta-storage)(?:_(?P<suffix>[\d._]+))?-(?P<version>\d[\w.]*)\.jar"
)


#: The Spark that earlier releases of Delta are for, whose jars do not name it.
_SPARK_OF_DELTA = {"4.0": "4.0", "3.3": "3.5", "3.2": "3.5", "3.1": "3.5", "3.0": "3.5"}


def check_spark(*, is_needed: bool = True) -> Result:
    """Is there a PySpark, and only one? If none ``is_needed``, the local engine will do."""
    found = pyspark_found()
    if found is None:
        told = str(missing("pyspark", "the Spark engine"))
        text, _, advice = told.partition(": ")
        home = os.environ.get("SPARK_HOME")
        there = _release_of(Path(home)) if home else None
        if there is not None and _is_too_old(there):
            advice += f" (and SPARK_HOME={home} is Spark {there}, which is too old: unset it then)"
        elif home:
            zipped = f"$(echo {home}/python/lib/py4j-*.zip)"
            advice += f", or let this Python see that of SPARK_HOME: PYTHONPATH={home}/python:{zipped}"
        if is_needed:
            return Result("Spark", Status.FAILED, text, advice)
        return Result("Spark", Status.NOTE, "not installed, so only the local engine runs here", advice)
    folder, version = found
    release = tuple(_numbers(version)[:2])
    installed = version_of("pyspark")
    is_hidden = installed is not None and installed != version
    if _is_too_old(version):
        least = ".".join(map(str, LEAST_SPARK))
        text = f"stormspark needs Spark {least} or later, but PySpark is {version} ({folder})"
        install = f"pip install --upgrade '{SPARK_RANGE}' '{DELTA_RANGE}'"
        advice = f"use a cluster with such a Spark; for a Spark on this host: {install}"
        if installed is not None and is_hidden and not _is_too_old(installed):
            text += f", which hides the installed PySpark {installed}"
            advice = "take that folder off PYTHONPATH"  # pip would find that all is well
        return Result("Spark", Status.FAILED, text, advice)
    if first_missing(["py4j"]) is not None:
        archive = next((folder.parent / "lib").glob("py4j-*.zip"), None)
        return Result(
            "Spark",
            Status.FAILED,
            f"PySpark {version} ({folder}) does not find py4j, which is a part of it",
            f"put {archive} on PYTHONPATH" if archive else "pip install py4j",
        )
    if is_hidden:
        return Result(
            "Spark",
            Status.WARNING,
            f"PySpark {version} in {folder} hides the installed PySpark {installed}",
            "remove one of them: pip uninstall pyspark, or take the other one off PYTHONPATH",
        )
    if (wrong := _delta_for_another(version)) is not None:
        return Result("Spark", Status.WARNING, wrong, _advice_on_delta(version, installed))
    if release >= _UNTRIED_SPARK:
        return Result(
            "Spark",
            Status.NOTE,
            f"PySpark {version} ({folder}), which is newer than those that stormspark was tried with",
            f"if something fails, try '{SPARK_RANGE}'",
        )
    return Result("Spark", Status.OK, f"PySpark {version} ({folder})")


def _delta_for_another(version: str) -> str | None:
    """Return what is wrong if the installed delta-spark is not for this PySpark; its package says which ones it is for."""
    try:
        needed = next(one for one in metadata.requires("delta-spark") or () if one.startswith("pyspark"))
    except (metadata.PackageNotFoundError, StopIteration):
        return None
    here = _numbers(version)
    bounds = re.findall(r"(>=|<=|<|>)\s*([\d.]+)", needed)
    fits = {">=": here.__ge__, "<": here.__lt__, "<=": here.__le__, ">": here.__gt__}
    if all(fits[sign](_numbers(bound)) for sign, bound in bounds):
        return None
    return f"PySpark {version}, but delta-spark {version_of('delta-spark')} is for another one ({needed})"


def _advice_on_delta(version: str, installed: str | None) -> str:
    """Say how to get a delta-spark for this PySpark. If pip has not installed that, it is a cluster's own, and stays."""
    if installed is not None:
        return f"pip install --upgrade delta-spark pyspark=={version}"
    return "pip install --upgrade --no-deps delta-spark, in the release for this Spark; or pip uninstall delta-spark"


def _is_too_old(version: str) -> bool:
    numbers = tuple(_numbers(version)[:2])
    return bool(numbers) and numbers < LEAST_SPARK


def _pyspark_for(release: str, otherwise: str) -> str:
    """Say what to do if the PySpark here is for another release than that Spark: the Spark of a cluster stays, if it can be used.

    >>> _pyspark_for("4.1.4", "unset it"), _pyspark_for("3.5.1", "unset it")
    ("unset it, or get the PySpark for it: pip install 'pyspark==4.1.4'", 'unset it')
    """
    return (
        otherwise
        if _is_too_old(release)
        else f"{otherwise}, or get the PySpark for it: pip install 'pyspark=={release}'"
    )


def _numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)[:3]]


def check_spark_home(
    pyspark_version: str | None = None, environment: Mapping[str, str] | None = None
) -> Result:
    """Is SPARK_HOME a Spark, and one of the same release as PySpark? Without SPARK_HOME, Spark is PySpark's own.

    >>> print(check_spark_home("4.2.0", {"SPARK_HOME": "/nowhere"}))
    SPARK_HOME=/nowhere is no Spark, because it has no bin/spark-submit: unset it, or let it name the folder of a Spark 4.2.0
    """
    given = os.environ if environment is None else environment
    if pyspark_version is None:
        found = pyspark_found()
        pyspark_version = found[1] if found else ""
    home = given.get("SPARK_HOME")
    if home is None:
        submit = shutil.which("spark-submit", path=given.get("PATH"))
        release = _release_of(Path(submit).resolve().parents[1]) if submit else None
        if release and pyspark_version and _minor(release) != _minor(pyspark_version):
            return Result(
                "SPARK_HOME",
                Status.WARNING,
                f"not set, but the spark-submit on the PATH ({submit}) is Spark {release}, and PySpark is {pyspark_version}",
                _pyspark_for(release, "take that one off the PATH"),
            )
        return Result("SPARK_HOME", Status.OK, "not set: Spark is PySpark's own")
    what_to_do = "unset it, or let it name the folder of a Spark"
    what_to_do += f" {pyspark_version}" if pyspark_version else ""
    if not os.access(Path(home, "bin", "spark-submit"), os.X_OK):
        return Result(
            "SPARK_HOME",
            Status.FAILED,
            f"SPARK_HOME={home} is no Spark, because it has no bin/spark-submit",
            what_to_do,
        )
    release = _release_of(Path(home))
    if release and pyspark_version and _minor(release) != _minor(pyspark_version):
        return Result(
            "SPARK_HOME",
            Status.FAILED,
            f"SPARK_HOME={home} is Spark {release}, but this program has PySpark {pyspark_version}",
            _pyspark_for(release, what_to_do),
        )
    return Result("SPARK_HOME", Status.OK, f"{home} (Spark {release or 'of an unknown version'})")


def spark_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder of the Spark that would start: that of SPARK_HOME, or else PySpark's own. None if there is none."""
    given = os.environ if environment is None else environment
    home = given.get("SPARK_HOME")
    if home:
        return Path(home)
    found = pyspark_found()
    return found[0] if found else None


def check_jars(folder: Path | None = None, delta_package: str = "") -> Result:
    """Do the jars of Delta and Kafka in Spark's folder fit this Spark? If there are none, Spark fetches them."""
    home = folder or spark_folder()
    release = _release_of(home) if home else None
    if home is None or release is None:
        return Result("jars", Status.NOTE, "there is no Spark whose jars could be looked at")
    found = dict(_jars_in(home / "jars"))
    names = {name for name, _, _ in found.values()}
    wrong = []
    for jar, (name, suffix, version) in found.items():
        # Delta names the Spark that it is for since 4.1: delta-spark_4.2_2.13. Spark's Kafka source has Spark's own version.
        wanted = {
            "delta-spark": suffix.split("_")[0] if "_" in suffix else _SPARK_OF_DELTA.get(_minor(version)),
            "spark-sql-kafka-0-10": _minor(version),
        }.get(name)
        if wanted is not None and wanted != _minor(release):
            wrong.append(f"{jar} is for Spark {wanted}")
        scala = _scala_of(home)
        if name != "delta-storage" and scala and not suffix.endswith(scala):
            wrong.append(f"{jar} is for Scala {suffix.rpartition('_')[2]}, and not {scala}")
    if "delta-spark" in names and "delta-storage" not in names:
        wrong.append("delta-storage-*.jar is missing beside delta-spark")
    if wrong:
        return Result(
            "jars",
            Status.FAILED,
            f"{home / 'jars'} has jars that do not fit Spark {release}: {'; '.join(wrong)}",
            f"put those of {delta_package or 'the same release'} there, or remove them",
        )
    if "delta-spark" not in names:
        return Result(
            "jars",
            Status.NOTE,
            f"Spark {release} has no jar of Delta; it is fetched when a topology first needs it ({delta_package})",
            "without a way to Maven Central: `stormspark jars --delta --to DIR` elsewhere, then --jars",
        )
    return Result("jars", Status.OK, ", ".join(sorted(found)))


def _jars_in(folder: Path) -> Iterator[tuple[str, tuple[str, str, str]]]:
    for path in sorted(folder.glob("*.jar")):
        # Ivy puts the organisation before the name.
        match = _JAR.fullmatch(re.sub(r"^(io\.delta|org\.apache\.spark)_", "", path.name))
        if match is not None:
            yield path.name, (match["name"], match["suffix"] or "", match["version"])


def _release_of(home: Path) -> str | None:
    """Return the version of the Spark in a folder; None if it has no jar that tells it, as a build of one's own may have none."""
    for jar in Path(home, "jars").glob("spark-core_*.jar"):
        return jar.stem.partition("-core_")[2].partition("-")[2]
    return None


def _scala_of(home: Path) -> str | None:
    for jar in Path(home, "jars").glob("spark-core_*.jar"):
        return jar.stem.partition("-core_")[2].partition("-")[0]
    return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
