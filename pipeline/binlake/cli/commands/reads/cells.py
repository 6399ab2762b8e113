"""``binlake cells``: the cells of a store's table, or its wide rows, now or as of a timestamp of the store."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import pyarrow as pa
import typer

from binlake.cli.commands.reads.query import text
from binlake.cli.options import LakeConf, OnlyJson, Table
from binlake.cli.table_options import chosen_one
from binlake.cli.text import json_line
from binlake.decode.cells import VALUE
from binlake.decode.types.cell_text import text_of
from binlake.hbase.derive.as_of import visible_cells, wide_rows_as_of
from binlake.hbase.derive.pairs import derived_pairs
from binlake.hbase.rules.rules import Moment
from binlake.hbase.settings.rules import CellsRule
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from hudilake.clock import now_ms, parse_instant
from hudilake.errors import ConfigError
from hudilake.read.query import instant_of
from hudilake.table.table import HudiTable

_MOST_DIGITS_OF_MS = 13
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", help="A timestamp of the store: 2024-02-29 12:34:56 (UTC), or milliseconds since 1970; now if none."
    ),
]
Rows = Annotated[
    list[str] | None,
    typer.Option("--row", help="Only this row key; \\xHH is a byte. It may be repeated."),
]
Wide = Annotated[bool, typer.Option("--wide", help="Print rows of the wide table instead of cells.")]


def cells(
    conf: LakeConf,
    table: Table,
    as_of: AsOf = None,
    row: Rows = None,
    wide: Wide = False,
    as_json: OnlyJson = False,
) -> None:
    """Print the visible cells of a table of cells, or its wide rows, as JSON lines: all versions that a read of the
    store has."""
    settings = Settings.load(conf)
    place = chosen_one(settings, table)
    rule = _rule_of(place)
    moment = Moment(now_ms(), None if as_of is None else _milliseconds(as_of))
    opened = HudiTable.open(place.storage)
    rows = None if row is None else _row_keys(row)
    if not wide:
        _print(_with_texts(visible_cells(opened, rule, moment, rows)))
        return
    pair = next((one for one in derived_pairs(settings) if one.cells_rules.path == place.rules.path), None)
    if pair is None:
        raise ConfigError(
            "the settings derive no wide table from this table of cells",
            do_next="leave out --wide, or declare tables.cells.wide",
            table=place.name,
        )
    _print(wide_rows_as_of(opened, rule, pair.declared, moment, rows))


def _rule_of(place: CatalogTable) -> CellsRule:
    if place.rules.cells is None:
        raise ConfigError(
            "it is no table of cells",
            do_next="name the table of cells of the store's table: tables.cells.table in the settings",
            table=place.name,
        )
    return place.rules.cells


def _milliseconds(moment: str) -> int:
    if moment.isdecimal() and len(moment) <= _MOST_DIGITS_OF_MS:
        return int(moment)
    return parse_instant(instant_of(moment))


def _row_keys(rows: list[str]) -> pa.Array:
    """In the text form that the table has."""
    keys = (_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), row.encode()) for row in rows)
    return text_of(pa.array(list(dict.fromkeys(keys)), pa.binary()))


def _with_texts(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Values as text."""
    for table in tables:
        values = text_of(table.column(VALUE).combine_chunks())
        yield table.set_column(table.schema.get_field_index(VALUE), VALUE, values)


def _print(tables: Iterable[pa.Table]) -> None:
    for table in tables:
        for batch in table.to_batches():
            for cell in batch.to_pylist():
                sys.stdout.write(json_line(_plain(cell), text))


def _plain(cell: dict[str, Any]) -> dict[str, Any]:
    """Maps, which Arrow gives as pairs, as objects."""
    return {name: dict(value) if isinstance(value, list) else value for name, value in cell.items()}
