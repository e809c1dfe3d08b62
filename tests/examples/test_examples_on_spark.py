"""The examples on Spark: one in the session of the tests, and all of them as their pages say, each with a Spark of its own."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from stormspark.cli import main
from tests.examples.test_examples import (
    EXAMPLES,
    PAGES,
    PRINTED,
    ROOT,
    SETTINGS,
    lines_of,
    prices,
    run_commands,
    said,
    shown_by,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    yield
    for name in [name for name in sys.modules if (EXAMPLES / f"{name}.py").exists()]:
        del sys.modules[name]


def test_totals_count_once_and_can_be_queried(spark, start, monkeypatch, tmp_path):
    page = PAGES["exactly-once-totals"]
    orders = tmp_path / "orders"
    shutil.copytree(EXAMPLES / "data" / "orders", orders)
    monkeypatch.setenv("ORDERS", str(orders))
    example = importlib.import_module("exactly_once_totals")

    def totals():
        running = start(example.build(), checkpoint=str(tmp_path / "checkpoint"), trigger="available-now")
        assert running.wait(300)
        assert running.error is None
        frame = example.in_sql(str(tmp_path / "checkpoint"), spark)
        return [(row["customer"], row["spent"]) for row in frame.collect()]

    shown = re.findall(r"\|\s*([a-z]+)\|\s*([\d.]+)\|", page)
    expected = [(customer, float(spent)) for customer, spent in shown]
    assert totals() == expected
    more = {"id": 9, "customer": "dan", "item": "tea", "quantity": 1, "cents": 300}
    (orders / "more.json").write_text(json.dumps(more) + "\n")
    assert dict(totals()) == dict(expected) | {"dan": 12.0}
    listed = CliRunner().invoke(main, ["state", str(tmp_path / "checkpoint"), "totals"])
    assert re.search(r"'dan'\s+1200\b", listed.output), listed.output


def typed(command, *more, exit_code=0):
    """Type a command of a page, in a process of its own as its users do, but on Spark."""
    variables = dict(re.findall(r"(\w+)=(\S+) ", command))
    command = re.sub(r"^(\w+=\S+ )*", "", command).replace(" --engine local", "").split()
    command = [sys.executable, *(["-m", *command] if command[0] == "stormspark" else command[1:]), *more]
    done = subprocess.run(
        command,
        env=os.environ | variables | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


def logged(tmp_path):
    """What tasks have printed and logged, without the time and the level."""
    text = "".join(path.read_text() for path in sorted((tmp_path / "logs").glob("*-*.log")))
    return re.sub(r"(?m)^\S+(?: \S+)? +INFO \S+ +", "", text)


@pytest.mark.long
@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_what_its_page_shows(name, tmp_path):
    typed(run_commands(PAGES[name])[0], *SETTINGS)
    assert lines_of(logged(tmp_path), like=PRINTED[name]) == shown_by(PAGES[name], like=PRINTED[name])


@pytest.mark.long
@pytest.mark.parametrize(("name", "file"), [("kafka-to-delta", "kafka_to_delta.py"), ("pv-uv", "pv_uv.py")])
def test_its_table_has_what_its_page_shows(name, file):
    typed(run_commands(PAGES[name])[0], *SETTINGS)
    shown = said(PAGES[name])
    assert typed(f"python examples/{file}").splitlines()[: len(shown)] == shown


@pytest.mark.long
def test_the_enrichment_gives_up_the_unicorn_alone(monkeypatch, tmp_path):
    page = PAGES["enrichment"]
    with prices(monkeypatch):
        typed(run_commands(page)[0], *SETTINGS, exit_code=3)
    assert lines_of(logged(tmp_path), like="order ") == shown_by(page, like="order ")


@pytest.mark.long
def test_totals_are_in_the_state_that_its_page_shows():
    command = next(line for line in run_commands(PAGES["exactly-once-totals"]) if "--checkpoint" in line)
    typed(command, *SETTINGS)
    printed = typed("python examples/exactly_once_totals.py checkpoints/totals")
    assert printed.splitlines()[:8] == said(PAGES["exactly-once-totals"], 1)


@pytest.mark.long
def test_clicks_come_from_kafka(kafka, monkeypatch):
    clicks = (EXAMPLES / "data" / "clicks" / "clicks.json").read_bytes().splitlines()
    kafka.create_topic("clicks")
    kafka.produce("clicks", clicks)
    page = PAGES["kafka-to-delta"]
    command = next(line for line in run_commands(page) if line.startswith("KAFKA_SERVERS"))
    command = command.replace("broker:9092", kafka.bootstrap)
    typed(command, "--trigger", "available-now", *SETTINGS)
    shown = said(page)
    assert typed("python examples/kafka_to_delta.py").splitlines()[: len(shown)] == shown
