"""The bundle for Databricks: its keys, types and values are those of ``databricks bundle schema``.

`bundle_schema.json` is an extract of that schema. In the mappings that our bundle has, it knows the name of every key; what
belongs to a key that our bundle has not may be anything.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from stormspark.spark.preflight import PACKAGES

ROOT = Path(__file__).parents[3]
BUNDLE: Any = yaml.safe_load((ROOT / "jobs" / "databricks.yml").read_text(encoding="utf-8"))
SCHEMA = json.loads(Path(__file__).with_name("bundle_schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
JOB = "resources", "jobs", "word_count"
CLUSTER = *JOB, "job_clusters", 0, "new_cluster"


def test_the_bundle_fits_the_schema():
    assert [error.message for error in VALID.iter_errors(BUNDLE)] == []


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (JOB, "continous", {}),
        (CLUSTER, "data_security_mode", "DEDICATED"),
        (CLUSTER, "num_workers", "two"),
        ((*JOB, "tasks", 0), "library", []),
        (("targets", "dev"), "default", "yes"),
    ],
)
def test_the_schema_finds_mistakes(place, key, value):
    """Otherwise the test above shows nothing."""
    bundle = copy.deepcopy(BUNDLE)
    part = bundle
    for step in place:
        part = part[step]
    part[key] = value
    assert not VALID.is_valid(bundle)


def test_it_runs_the_program_of_a_new_project():
    (task,) = BUNDLE["resources"]["jobs"]["word_count"]["tasks"]
    program = task["spark_python_task"]["python_file"]
    templates = ROOT / "stormspark" / "cli" / "project"
    (template,) = templates.glob(f"{Path(program).name}*")
    assert f'"{task["spark_python_task"]["parameters"][0]}"' in template.read_text(encoding="utf-8")
    assert task["job_cluster_key"] in {
        one["job_cluster_key"] for one in BUNDLE["resources"]["jobs"]["word_count"]["job_clusters"]
    }


def packages_of(requirement: str) -> set[str]:
    """What pip installs for ``stormspark[extra, ...]``, by the names of projects; without what those need."""
    (extras,) = re.findall(r"stormspark(?:\[([\w,]+)\])?$", requirement)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [*project["dependencies"]]
    for extra in filter(None, extras.split(",")):
        for needed in project["optional-dependencies"][extra]:
            found += packages_of(needed) if needed.startswith("stormspark[") else [needed]
    return {re.split(r"[^\w-]", one)[0] for one in found}


def installed_for_databricks() -> dict[str, str]:
    installed = {"the bundle": BUNDLE["variables"]["stormspark"]["default"]}
    for notebook in sorted((ROOT / "notebooks" / "databricks").glob("*.py")):
        (installed[notebook.name],) = re.findall(r'%pip install "(.+)"', notebook.read_text(encoding="utf-8"))
    return installed


@pytest.mark.parametrize(("name", "requirement"), installed_for_databricks().items())
def test_what_is_installed_has_what_workers_import_and_leaves_spark_alone(name, requirement):
    packages = packages_of(requirement)
    assert packages >= set(PACKAGES), name
    assert not packages & {"pyspark", "delta-spark"}, name
    assert ("kafka" in name) is ("confluent-kafka" in packages)
