"""Settings are found by words."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from stormspark.cli import main


def config(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], catch_exceptions=False)


def test_a_setting_is_found_by_words_of_its_name_or_meaning() -> None:
    done = config("spout", "pending")
    assert done.exit_code == 0
    assert done.stdout.count("topology.max.spout.pending") == 1
    assert "How many trees of a task of a spout may be open at once" in " ".join(done.stdout.split())
    assert "(B4)" not in done.stdout


def test_keys_without_effect_give_their_reason() -> None:
    done = config("topology.kryo.register")
    assert done.exit_code == 0
    assert "have no effect here" in done.stdout and "values are pickled" in " ".join(done.stdout.split())


def test_all_settings_are_listed() -> None:
    """``--list`` says it in a word; no word means the same."""
    done = config("--list")
    assert done.exit_code == 0 and done.stdout == config().stdout
    assert "stormspark.log.dir" in done.stdout and "topology.workers" in done.stdout


def test_settings_as_json() -> None:
    (entry,) = json.loads(config("--json", "topology.workers").stdout)[:1]
    assert entry["key"] == "topology.workers" and entry["values"] == "whole number of at least 1"


def test_nothing_that_fits_is_no_success() -> None:
    done = config("zookeeper", "quorum", "[/bold]")
    assert done.exit_code == 1
    assert done.stdout.startswith("no setting has 'zookeeper' and 'quorum' and '[/bold]' in its name or")


def test_a_misspelt_word_gets_the_nearest_one() -> None:
    assert config("wrokers").stdout.strip().endswith("in its name or meaning: did you mean workers?")
    assert (
        config("topology.max.spot.pending")
        .stdout.strip()
        .endswith("did you mean topology.max.spout.pending?")
    )
