"""Advice on attributes of async components that look like misspelt settings."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout
from stormspark.api.async_rules import misspelt_settings


def bolt(*bases: type, **attributes: Any) -> Any:
    return type("Asks", bases or (AsyncBolt,), {"execute": None, "declare_output_fields": None, **attributes})


@pytest.mark.parametrize(
    "own",
    [
        {"order": "asc"},
        {"order": 1},
        {"orders": 0},
        {"writes": 0},
        {"traits": None},
        {"waited": 0.0},
        {"capacity_mb": 5},
        {"fetch": 10},
        {"timeout": "5 s"},
        {"timeout": True},
        {"orderd": 1},
        {"capactiy": "9"},
    ],
)
def test_data_of_the_users_own_is_no_misspelt_setting(own: dict[str, Any]) -> None:
    assert misspelt_settings(bolt(**own)()) == ()
    spout = type("Polls", (AsyncSpout,), {"next_tuple": None, "declare_output_fields": None, **own})
    assert misspelt_settings(spout()) == ()


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("timeout", 5, "timeout_secs"),
        ("timeout_seconds", 5.0, "timeout_secs"),
        ("timeout_sec", 5, "timeout_secs"),
        ("capactiy", 9, "capacity"),
        ("capacty", 9, "capacity"),
        ("orderd", True, "ordered"),
        ("order", True, "ordered"),
        ("in_order", True, "ordered"),
        ("keep_order", False, "ordered"),
        ("ordred", True, "ordered"),
    ],
)
def test_a_misspelt_setting_is_found(name: str, value: Any, setting: str) -> None:
    assert misspelt_settings(bolt(**{name: value})()) == ((name, setting),)


def test_a_setting_of_a_base_class_does_not_count_as_set() -> None:
    base = bolt(timeout_secs=2.0)
    assert misspelt_settings(bolt(base, timeout=5)()) == (("timeout", "timeout_secs"),)
    assert misspelt_settings(bolt(bolt(timeout=5), timeout_secs=2.0)()) == ()
    assert misspelt_settings(bolt(timeout=5, timeout_secs=2.0)()) == ()
    one = bolt(timeout=5)()
    one.timeout_secs = 2.0
    assert misspelt_settings(one) == ()
