"""What the library logged during a test."""

from __future__ import annotations

from typing import Any

import pytest


def events(caplog: pytest.LogCaptureFixture) -> dict[str, dict[str, Any]]:
    """The fields of the last record of every event; ``levelname`` is among them."""
    return {vars(record)["event"]: vars(record) for record in caplog.records if hasattr(record, "event")}
