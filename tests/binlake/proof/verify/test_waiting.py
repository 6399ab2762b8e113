"""A wait for a stream that does not run is announced."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from binlake.proof.verify.coverage import StreamCoverage
from binlake.settings import Settings

_SETTINGS = """
name: shop
lake: {uri: 'DIR'}
kafka: {bootstrap_servers: '127.0.0.1:1', topics: [s.shop.a], ddl_topics: [s]}
"""


def test_a_wait_is_announced_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings.parse(_SETTINGS.replace("DIR", str(tmp_path)))
    with caplog.at_level(logging.INFO):
        StreamCoverage(settings, quiet_s=0.6, silent_s=0.2)._pass(5)
    lines = [record.getMessage() for record in caplog.records if "waiting for the stream" in record.getMessage()]
    assert lines == [
        "waiting for the stream to reach the source's position, at most 0.6 s; --no-wait takes the lake as it is"
    ]
