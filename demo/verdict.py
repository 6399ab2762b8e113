"""The verdict: compares a lake table with the source's final rows, cell by cell.

Rows are matched by key (as a multiset where the table has none).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from demo.truth import TruthColumn, TruthTable
from demo.values import Value, lake_values, truth_values

Row = tuple[Value, ...]

EXAMPLES = 3
#: Columns that belong to Hudi or binlake and not to the source.
OWN_PREFIXES = ("_hoodie_", "_binlake_")


@dataclass
class Difference:
    """Cells of one column that differ: their number, and examples as (key, truth, lake)."""

    count: int = 0
    examples: list[tuple[Row, Value, Value]] = field(default_factory=list)

    def add(self, key: Row, truth: Value, lake: Value) -> None:
        """Count one more differing cell."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((key, truth, lake))


@dataclass
class TableVerdict:
    """The result of a comparison. ``cells`` counts the equal cells; ``missing`` and ``extra`` hold some keys."""

    table: str
    truth_rows: int
    lake_rows: int = 0
    cells: int = 0
    missing_rows: int = 0
    extra_rows: int = 0
    duplicate_rows: int = 0
    row_examples: list[Row] = field(default_factory=list)
    differences: dict[str, Difference] = field(default_factory=dict)
    gone_columns: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether no cell differs and no row is missing or extra."""
        rows = self.missing_rows or self.extra_rows or self.duplicate_rows
        return not (rows or self.differences or self.mistakes)


def judge(
    truth: TruthTable,
    lake: pa.Table,
    *,
    gone: Collection[str] = (),
    derived: Collection[str] = (),
    lake_name: Callable[[str], str] = str,
    excused: Callable[[str, Value, Value], bool] = lambda column, truth, lake: False,
) -> TableVerdict:
    """Compare a lake table with the truth.

    Args:
        truth: the source's rows.
        lake: the rows as a reader returns them, with or without Hudi's columns.
        gone: columns that the source no longer has and the lake may still have.
        derived: lake columns that the settings add (a partition field).
        lake_name: source column name -> lake column name.
        excused: whether two cells of a table with a key may differ in this way (column, truth, lake).
    """
    verdict = TableVerdict(str(truth), len(truth.rows), lake.num_rows)
    columns = _columns(truth, lake, gone, derived, lake_name, verdict)
    if verdict.mistakes:
        return verdict
    truth_rows = list(zip(*(truth_values(truth, i) for i in range(len(truth.columns))), strict=True))
    lake_rows: list[Row] = list(zip(*columns, strict=True))
    if truth.key:
        _judge_keyed(truth, truth_rows, lake_rows, verdict, excused)
    else:
        _judge_multiset(truth_rows, lake_rows, len(truth.columns), verdict)
    return verdict


def _columns(
    truth: TruthTable,
    lake: pa.Table,
    gone: Collection[str],
    derived: Collection[str],
    lake_name: Callable[[str], str],
    verdict: TableVerdict,
) -> list[list[Value]]:
    """The lake's values column by column in the truth's order; errors about columns are added to ``mistakes``."""
    names = {lake_name(c.name).lower() for c in truth.columns}
    gone = {lake_name(name).lower() for name in gone}
    own = [n for n in lake.column_names if not n.startswith(OWN_PREFIXES) and n not in derived]
    more = [n for n in own if n.lower() not in names]
    verdict.gone_columns = [n for n in more if n.lower() in gone]
    verdict.mistakes += [f"column {n} is only in the lake" for n in more if n.lower() not in gone]
    columns = []
    for column in truth.columns:
        try:
            columns.append(_lake_column(lake, lake_name(column.name), column))
        except (KeyError, TypeError) as error:
            verdict.mistakes.append(str(error.args[0]))
    return columns


def _lake_column(lake: pa.Table, name: str, column: TruthColumn) -> list[Value]:
    """Readers and MySQL ignore the case of names."""
    places = [at for at, known in enumerate(lake.column_names) if known.lower() == name.lower()]
    if len(places) != 1:
        raise KeyError(f"column {name} is {len(places)} times in the lake")
    return lake_values(lake.column(places[0]), column)


def _judge_keyed(
    truth: TruthTable,
    truth_rows: list[Row],
    lake_rows: list[Row],
    verdict: TableVerdict,
    excused: Callable[[str, Value, Value], bool],
) -> None:
    names = [c.name for c in truth.columns]
    places = [names.index(k) for k in truth.key]
    expected = {tuple(row[i] for i in places): row for row in truth_rows}
    found: dict[Row, Row] = {}
    for row in lake_rows:
        key = tuple(row[i] for i in places)
        verdict.duplicate_rows += key in found
        found[key] = row
    _note_rows(verdict, [k for k in expected if k not in found], [k for k in found if k not in expected])
    for key, row in expected.items():
        if key in found:
            _judge_row(names, key, row, found[key], verdict, excused)


def _judge_row(
    names: list[str],
    key: Row,
    truth: Row,
    lake: Row,
    verdict: TableVerdict,
    excused: Callable[[str, Value, Value], bool],
) -> None:
    for name, expected, found in zip(names, truth, lake, strict=True):
        if _same(expected, found) or excused(name, expected, found):
            verdict.cells += 1
        else:
            verdict.differences.setdefault(name, Difference()).add(key, expected, found)


def _same(expected: Value, found: Value) -> bool:
    """Equal in value and in type: True is not 1, and -0.0 is not 0.0."""
    if isinstance(expected, float) and isinstance(found, float):
        return expected.hex() == found.hex()
    return isinstance(expected, bool) == isinstance(found, bool) and expected == found


def _judge_multiset(truth_rows: list[Row], lake_rows: list[Row], width: int, verdict: TableVerdict) -> None:
    expected, found = Counter(truth_rows), Counter(lake_rows)
    verdict.cells = width * (expected & found).total()
    _note_rows(verdict, (expected - found).elements(), (found - expected).elements())


def _note_rows(verdict: TableVerdict, missing: Iterable[Row], extra: Iterable[Row]) -> None:
    lost, surplus = list(missing), list(extra)
    verdict.missing_rows, verdict.extra_rows = len(lost), len(surplus)
    verdict.row_examples = [*lost[:EXAMPLES], *surplus[:EXAMPLES]]
