"""Values that no MySQL column has, but that a forged event can: they are quarantined, and no reader stops at them."""

from __future__ import annotations

import pytest

from tests.binlake.decode.events import declared, decoded, envelope, reasons

SCHEMA = declared({"id": "int", "at": "datetime(6)", "day": "date"}, ("id",))
LAST_US, LAST_DAY = 253_402_300_799_999_999, 2_932_896


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", LAST_US + 1),
        ("at", 2**62),
        ("at", -(2**62)),
        ("day", LAST_DAY + 1),
        ("day", 2**31 - 1),
        ("day", -(2**31)),
    ],
)
def test_a_time_outside_of_mysqls_years_is_quarantined(column: str, value: int) -> None:
    found = decoded([envelope({"id": 1, column: value}), envelope({"id": 2, column: 0})], SCHEMA)
    assert reasons(found) == {0: "bad_value"}


def test_control_the_last_moment_is_a_row() -> None:
    assert reasons(decoded([envelope({"id": 1, "at": LAST_US, "day": LAST_DAY})], SCHEMA)) == {}
