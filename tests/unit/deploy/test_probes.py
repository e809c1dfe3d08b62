"""What systemd, Kubernetes and Prometheus get is what the driver understands, and the runbook quotes messages that there are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stormspark.cli.commands import run
from stormspark.config import Settings
from stormspark.operations.health import OPEN_PATHS
from tests.unit.deploy.test_kubernetes import driver

ROOT = Path(__file__).parents[3]


def test_the_probes_ask_what_needs_no_token() -> None:
    container = driver()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in OPEN_PATHS
        assert f"stormspark.ui.port={ports[asked['port']]}" in container["args"]


def test_the_rules_name_calls_that_there_are() -> None:
    text = (ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text()
    assert set(re.findall(r":8081(/\w+)", text)) == OPEN_PATHS
    runbook = (ROOT / "docs" / "operations" / "runbook.md").read_text()
    for rule in yaml.safe_load(text)["groups"][0]["rules"]:
        section = re.search(r"'(.+)'", rule["annotations"]["description"])
        assert section is not None
        assert f"## {section[1]}\n" in runbook


def test_the_unit_starts_a_command_that_there_is() -> None:
    text = (ROOT / "deploy" / "systemd" / "flow.service").read_text()
    start = re.search(r"ExecStart=\S+/stormspark run (.+?)\n(?! )", text, re.DOTALL)
    assert start is not None
    words = start[1].replace("\\\n", " ").split()
    context = run.make_context("run", words)
    assert context.params["checkpoint"] == "/var/lib/flow/checkpoint"
    assert Settings.read(context.params["conf"]).ui_port == 8081


def test_the_runbook_quotes_messages_that_there_are() -> None:
    runbook = (ROOT / "docs" / "operations" / "runbook.md").read_text()
    code = " ".join(path.read_text() for path in sorted((ROOT / "stormspark").rglob("*.py")))
    # The parts of a message are strings in several lines, with values in braces.
    messages = re.sub(r'"\s+f?"', "", code).lower()
    quoted = re.findall(r'^## "(.+)"$', runbook, re.MULTILINE)
    assert len(quoted) >= 7
    for message in quoted:
        pattern = "[^\n]*".join(map(re.escape, message.lower().split("...")))
        assert re.search(pattern, messages), message
