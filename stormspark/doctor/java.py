"""Is there a Java that runs Spark?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stormspark.doctor.result import Result, Status

__all__ = ["check_java"]

_LEAST_JAVA = 17
_INSTALL_JAVA = (
    "install a Java 17 runtime (Debian, Ubuntu: apt install openjdk-17-jre-headless) or set JAVA_HOME to one"
)
#: A java that does not answer within this time is stuck.
_ANSWER_SECS = 60.0


def check_java(environment: Mapping[str, str] | None = None) -> Result:
    """Is there a Java that runs Spark? Spark takes the one in JAVA_HOME before the one on the PATH.

    >>> print(check_java({"JAVA_HOME": "/nowhere"}).found)
    Spark needs Java 17 or later, but there is none at JAVA_HOME=/nowhere
    """
    given = os.environ if environment is None else environment
    home = given.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=given.get("PATH"))
    if java is None or not os.access(java, os.X_OK):
        where = f"there is none at JAVA_HOME={home}" if home else "there is none on the PATH"
        return _failed(where)
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, check=False, timeout=_ANSWER_SECS
        ).stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return _failed(f"{java} -version does not end")
    except OSError as error:  # such as a program for another processor
        return _failed(f"{java} can't run ({error.strerror})")
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if found is None:
        return _failed(f"{java} is of an unknown version ({output[:60]!r})")
    if int(found[1]) < _LEAST_JAVA:
        return _failed(f"{java} is {found[1]}")
    return Result("Java", Status.OK, f"Java {found[1]} ({java})")


def _failed(why: str) -> Result:
    return Result("Java", Status.FAILED, f"Spark needs Java {_LEAST_JAVA} or later, but {why}", _INSTALL_JAVA)
