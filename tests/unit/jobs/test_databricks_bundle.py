"""The bundle for Databricks: its keys, types and values are those of ``databricks bundle schema``.

`bundle_schema.json` is an extract of that schema. In the mappings that our bundle has, it knows the name of every key; what
belongs to a key that our bundle has not may be anything.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

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
