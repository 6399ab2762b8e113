"""Tables of other kinds as Hudi Spark 1.2.0 wrote them, with the rows that it reads from them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.paths import GOLDEN

_KINDS = GOLDEN / "kinds"


def extracted(kind: str, at: Path) -> Path:
    """Unpack the golden table of a kind below a folder; returns its root."""
    with tarfile.open(_KINDS / f"{kind}.tar.gz") as archive:
        archive.extractall(at, filter="data")
    return at / kind


def expected_rows(kind: str) -> list[dict[str, Any]]:
    """What Hudi Spark reads from it, in the spelling of ``spelled``."""
    rows: list[dict[str, Any]] = json.loads((_KINDS / f"{kind}_expected.json").read_text())["rows"]
    return rows


def spelled(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
    """Rows in the spelling of the golden files (bytes in hexadecimal; decimals, dates and times as text), by id."""
    names = list(names)
    out = [{name: _spelled(row[name]) for name in names} for row in rows]
    return sorted(out, key=lambda row: (row["id"], row["_hoodie_partition_path"]))


def _spelled(value: Any) -> Any:  # noqa: ANN401 - a cell
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return str(value) if isinstance(value, Decimal | date) else value
