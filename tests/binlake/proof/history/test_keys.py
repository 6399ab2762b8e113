"""A key that people write is the value that it spells, or it is refused: no row is found under a rounded key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from binlake.proof.history.keys import row_key
from hudilake.errors import ConfigError
from tests.binlake.cli.fed_lake import FedLake


def test_a_key_is_never_rounded(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"key": ["balance"]})
    lake.feed(1, ("a",))
    table = lake.table()
    for text in ("5", "5.00", '{"balance": 5.0}', "0005"):
        assert row_key(text, table).values == {"balance": Decimal("5.00")}
    for text in ("5.001", '{"balance": 5.0000000000000000001}', "1e999999999", "nan", "5_0", " 5", "99999999999.00"):
        with pytest.raises(ConfigError, match="is no value of column balance"):
            row_key(text, table)


def test_a_key_of_text_is_as_written(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"key": ["owner"]})
    lake.feed(1, ("a",))
    for text, value in {"007": "007", '{"owner": 7.10}': "7.10", '{"owner": "x"}': "x", " 7": " 7"}.items():
        assert row_key(text, lake.table()).values == {"owner": value}


def test_null_and_what_is_no_single_value_name_no_row(tmp_path: Path) -> None:
    """The text ``null`` is another value than null."""
    lake = FedLake(tmp_path, {"key": ["owner"]})
    lake.feed(1, ("a",))
    assert row_key("null", lake.table()).values == {"owner": "null"}
    for text in ('{"owner": null}', '{"owner": ["x"]}', '{"owner": {}}'):
        with pytest.raises(ConfigError, match="a row is named by values"):
            row_key(text, lake.table())


def test_a_column_is_given_once(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"key": ["owner"]})
    lake.feed(1, ("a",))
    for text in ('{"owner": "x", "owner": "y"}', '{"owner": "x", "OWNER": "y"}', "owner=x,owner=y", "owner=x,Owner=y"):
        with pytest.raises(ConfigError, match="gives a column twice"):
            row_key(text, lake.table())
