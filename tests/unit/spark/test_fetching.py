"""Packages that can't be fetched: one sentence, and in time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from stormspark.config import DELTA_PACKAGE
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark.fetching import Fetching, missing_packages, not_fetched

RESOLVES = "Ivy Default Cache set to: {}/cache\n:: resolving dependencies :: org.apache.spark\n"


class Watched:
    """A JVM that fetches; each look comes a second after the last one."""

    def __init__(self, folder: Path, *, reached: bool, **settings: str) -> None:
        self.log, self.now, self.tried = folder / "spark.log", 0.0, 0
        self.log.write_text("of an earlier start, :: resolving dependencies ::\n")
        self.reached = reached
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self.fetching = Fetching(
            {"spark.jars.packages": "g:a:1", **named}, self.log, self.reaches, lambda: self.now
        )

    def reaches(self, url: str) -> bool:
        self.tried += 1
        return self.reached

    def says(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)

    def look(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self.fetching.look()


@pytest.fixture
def away(tmp_path: Path) -> Watched:
    return Watched(tmp_path, reached=False)


def test_a_network_that_swallows_everything_is_told_soon(away: Watched, tmp_path: Path) -> None:
    away.look(60)  # a slow JVM, which has not begun
    away.says(RESOLVES.format(tmp_path))
    with pytest.raises(UnsupportedEnvironmentError, match="no connection to https://repo1") as raised:
        away.look(10)
    assert "stormspark jars --packages g:a:1 --to jars" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_comes_is_waited_for(away: Watched, tmp_path: Path) -> None:
    away.says(RESOLVES.format(tmp_path))
    (tmp_path / "cache").mkdir()
    for number in range(20):
        away.look(5)
        if number % 2:
            away.says("found g#a;1 in central\n")
        else:
            (tmp_path / "cache" / "a.jar.part").write_bytes(b"x" * number + b"x")
    assert not away.tried


def test_a_slow_repository_has_a_minute(tmp_path: Path) -> None:
    slow = Watched(tmp_path, reached=True)
    slow.says(RESOLVES.format(tmp_path))
    slow.look(55)
    assert slow.tried == 1
    with pytest.raises(UnsupportedEnvironmentError, match="nothing has come for 60 s"):
        slow.look(10)


def test_a_proxy_of_java_is_not_second_guessed(tmp_path: Path) -> None:
    proxied = Watched(
        tmp_path, reached=False, spark_driver_extraJavaOptions="-Dhttps.proxyHost=proxy.invalid"
    )
    proxied.says(RESOLVES.format(tmp_path))
    proxied.look(55)
    assert not proxied.tried


def test_all_repositories_are_tried(tmp_path: Path) -> None:
    two = Watched(tmp_path, reached=False, spark_jars_repositories="https://mirror.invalid/maven")
    two.says(RESOLVES.format(tmp_path))
    with pytest.raises(UnsupportedEnvironmentError, match=r"to https://mirror\.invalid/maven or https://"):
        two.look(10)
    assert two.tried == 2


def test_why_ivy_has_failed(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    unresolved = (
        'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: g#a;1: not found]\n'
    )
    log.write_text("\tHost repo1.maven.invalid not found. url=https://...\n" + unresolved)
    assert not_fetched(log, 0) == "there is no way to repo1.maven.invalid"
    assert not_fetched(log, 50) == "no repository has g#a;1"
    log.write_text("Exception: Could not parse Master URL\n")
    assert not_fetched(log, 0) == ""
    assert not_fetched(tmp_path / "none", 0) == ""


def test_delta_is_named(tmp_path: Path) -> None:
    assert "can't fetch Delta (io.delta:" in missing_packages(DELTA_PACKAGE, "no way", tmp_path)
    assert "stormspark jars --delta --to jars" in missing_packages(DELTA_PACKAGE, "no way", tmp_path)
