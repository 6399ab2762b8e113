"""Passwords of addresses in messages."""

from __future__ import annotations

import pytest

from hudilake.storage.redaction import without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("spark://me:p:w%2F@host:7077", "spark://me:***@host:7077"),
        ("no master at spark://me:pw@host:7077, http://:x@h", "no master at spark://me:***@host:7077, http://:***@h"),
        ("root:pw@host:3306/shop", "root:***@host:3306/shop"),
        ("root:a/b@c@host/shop", "root:***@host/shop"),
        ("root@host:3306/shop", "root@host:3306/shop"),
        ("spark://host:7077", "spark://host:7077"),
        ("hdfs://nn:8020/user@domain", "hdfs://nn:8020/user@domain"),
        ("yarn", "yarn"),
    ],
)
def test_an_address_shows_no_password(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
