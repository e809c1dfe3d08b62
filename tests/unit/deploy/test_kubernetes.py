"""The manifests for Kubernetes: they are what its API takes, and they agree with each other and with ``stormspark run``."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from stormspark.cli.commands import run

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
SCHEMA = json.loads(Path(__file__).with_name("kubernetes.schema.json").read_text())


def manifests(file: str) -> dict[str, Any]:
    """Those of a file, by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((FOLDER / file).read_text())}


def settings() -> dict[str, str]:
    lines = manifests("topology.yaml")["ConfigMap"]["data"]["spark.conf"].splitlines()
    return dict(line.split(maxsplit=1) for line in lines if not line.startswith("#"))


def driver() -> Any:
    return manifests("topology.yaml")["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def refused(manifest: Any) -> str:
    kind = {"Deployment": "apps.v1", "Role": "rbac.v1", "RoleBinding": "rbac.v1"}.get(
        manifest["kind"], "core.v1"
    )
    schema = {**SCHEMA, "$ref": f"#/$defs/io.k8s.api.{kind}.{manifest['kind']}"}
    del schema["oneOf"]
    errors = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    return "\n".join(f"{manifest['kind']}: {error.json_path}: {error.message}" for error in errors)


def test_the_api_takes_each_manifest() -> None:
    of_topology = manifests("topology.yaml")
    template = yaml.safe_load(of_topology["ConfigMap"]["data"]["executor.yaml"])
    every = [*manifests("rights.yaml").values(), *of_topology.values(), template]
    assert [one["kind"] for one in every] == [
        "ServiceAccount", "Role", "RoleBinding", "Service", "ConfigMap", "Deployment", "Pod",
    ]  # fmt: skip
    assert [refused(one) for one in every] == [""] * len(every)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["spec", "replica"], 1),
        (["spec", "template", "spec", "containers", 0, "port"], []),
        (["spec", "template", "spec", "terminationGracePeriodSeconds"], "120"),
    ],
)
def test_the_schema_notices_slips(path: list[Any], value: object) -> None:
    manifest = manifests("topology.yaml")["Deployment"]
    place = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert str(path[-1]) in refused(manifest)


def test_executors_reach_the_driver_by_the_ports_that_it_listens_on() -> None:
    conf, service = settings(), manifests("topology.yaml")["Service"]
    [nimbus] = [word for word in driver()["args"] if word.startswith("stormspark.nimbus.port=")]
    listens = {
        int(conf["spark.driver.port"]),
        int(conf["spark.driver.blockManager.port"]),
        int(nimbus.split("=")[1]),
    }
    assert {port["port"] for port in service["spec"]["ports"]} == listens
    [ui] = [int(word.split("=")[1]) for word in driver()["args"] if word.startswith("stormspark.ui.port=")]
    assert {port["containerPort"] for port in driver()["ports"]} == {*listens, ui}
    assert conf["spark.driver.host"] == service["metadata"]["name"]
    labels = manifests("topology.yaml")["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_drivers_and_executors_have_one_image_and_the_rights_that_are_given() -> None:
    conf, of_rights = settings(), manifests("rights.yaml")
    assert conf["spark.kubernetes.container.image"] == driver()["image"]
    account = of_rights["ServiceAccount"]["metadata"]["name"]
    pod = manifests("topology.yaml")["Deployment"]["spec"]["template"]["spec"]
    assert {account} == {
        pod["serviceAccountName"], conf["spark.kubernetes.authenticate.serviceAccountName"],
        of_rights["RoleBinding"]["subjects"][0]["name"],
    }  # fmt: skip


def test_the_drivers_command_is_one_of_stormspark() -> None:
    words = driver()["args"]
    assert words[:5] == ["tini", "--", "stormspark", "run", "flow.py"]
    known = {option for parameter in run.params for option in parameter.opts}
    options = [word.partition("=")[0] for word in words[5:] if word.startswith("-")]
    assert set(options) <= known
    assert all(key.startswith("spark.") for key in settings())
    [mount] = [one for one in driver()["volumeMounts"] if one["name"] == "settings"]
    assert f"--properties-file={mount['mountPath']}/spark.conf" in words
    assert settings()["spark.kubernetes.executor.podTemplateFile"] == f"{mount['mountPath']}/executor.yaml"


def test_what_reaches_the_checkpoint_is_there() -> None:
    """The same packages as in the guide, and of the version that Spark's own jars have."""
    [checkpoint] = [word for word in driver()["args"] if word.startswith("--checkpoint=s3a://")]
    package = settings()["spark.jars.packages"]
    assert f"--packages {package} " in (FOLDER.parents[1] / "docs" / "delivery.md").read_text(), checkpoint
    pyspark = pytest.importorskip("pyspark")
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    assert package == f"org.apache.hadoop:hadoop-aws:{jar.stem.removeprefix('hadoop-client-api-')}"


@pytest.mark.parametrize(
    ("path", "stays_out"),
    [
        (".git", True), (".env", True), ("sub/.env", True), (".venv", True), ("venv", True), ("certs/client.pem", True),
        ("deploy/secrets.yaml", True), ("flow.py", False), ("requirements.txt", False), ("steps/secrets.py", False),
    ],
)  # fmt: skip
def test_what_stays_out_of_the_image(path: str, stays_out: bool) -> None:
    """The last pattern that fits counts. Each one begins with any number of folders."""
    found = False
    for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        assert line.startswith("#") or pattern.startswith("**/")
        if fnmatch(Path(path).name, pattern.removeprefix("**/")):
            found = not line.startswith("!")
    assert found == stays_out


def test_the_image_has_what_the_manifests_and_the_package_ask_for() -> None:

    text = (FOLDER / "Dockerfile").read_text()
    instructions = re.findall(r"^([A-Z]+) ", text, re.MULTILINE)
    assert set(instructions) <= {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT"}
    assert "openjdk-17" in text and " tini" in text
    [python] = re.findall(r"^ARG PYTHON=3\.(\d+)", text, re.MULTILINE)
    assert int(python) >= 11
    security = manifests("topology.yaml")["Deployment"]["spec"]["template"]["spec"]["securityContext"]
    assert f"USER {security['runAsUser']}" in text
