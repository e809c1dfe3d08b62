"""Each setting is described once, in the code, and the page of settings comes from there."""

from __future__ import annotations

from stormspark.config import KNOWN_KEYS
from stormspark.config_reference import described
from stormspark.storm_keys import STORM_KEYS
from tests.settings_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """Otherwise: ``make settings``."""
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/reference/settings.md is out of date, run: make settings"
    )


def test_each_key_has_a_meaning() -> None:
    """A key of Storm that has an effect, but that no field of `Settings` reads, is read by a front-end: it is named there."""
    entries = {entry.key: entry for entry in described()}
    assert [key for key, entry in entries.items() if not entry.meaning] == []
    elsewhere = {key for key, one in STORM_KEYS.items() if not one.useless_because}
    assert KNOWN_KEYS - entries.keys() <= elsewhere
