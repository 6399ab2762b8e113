"""What Debezium itself does not deliver as the server holds it, and what the lake says that the log does not determine:
the only differences that are no failure.

Each exception names one loss, applies to single cells or values, and is counted. What the generator
leaves out because the connector ends at it is said where it is left out (``generate/``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from binlake.schema.rules.undetermined import WHOLE_ROWS
from demo.truth import TruthTable
from demo.values import Value

#: What Debezium's decoder puts in place of a byte that it takes for another character set.
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class ConnectorLoss:
    """``name``: in the summary. ``reason``: what the connector does (measured with Debezium 3.4 and MariaDB 11.4)."""

    name: str
    reason: str


ZERO_DATES = ConnectorLoss(
    "zero dates",
    "a date with month or day 0 comes as null; as the epoch where NULL is not allowed, and in streamed TIMESTAMPs",
)
CHARSET = ConnectorLoss(
    "changed character set", "after CONVERT TO or MODIFY with another character set, rows are decoded with the old one"
)

UNDETERMINED = ConnectorLoss(
    "not determined", "the log does not determine the value; the lake's commits name the column, and the cell is null"
)
CASCADED = ConnectorLoss(
    "changed by a foreign key", "the binlog does not have the change; the column, or the table's rows, are named"
)
UNMATCHED = ConnectorLoss(
    "deletes of no row",
    "of a table without a key, some of whose values are not determined: the stream warns of the table",
)


@dataclass
class Excuses:
    """Judges the differences of one comparison.

    ``by_connector``: whether a connector decoded the rows. ``used``: how often each exception applied.
    """

    by_connector: bool = True
    used: Counter[str] = field(default_factory=Counter)
    _zero_columns: set[str] = field(default_factory=set)
    _undetermined: frozenset[str] = frozenset()
    _cascaded: frozenset[str] = frozenset()

    @property
    def rows_may_stay(self) -> bool:
        """Whether the lake may have rows that a foreign key has removed."""
        return WHOLE_ROWS in self._cascaded

    def look_at(self, truth: TruthTable, undetermined: Collection[str], cascaded: Collection[str]) -> None:
        """Begin with a table: which of its columns have dates that the connector cannot express.

        ``undetermined``: the columns that the lake's commits name so; ``cascaded``: those of its foreign keys.
        """
        self._undetermined, self._cascaded = frozenset(undetermined), frozenset(cascaded)
        self._zero_columns.clear()
        for at, column in enumerate(truth.columns):
            if column.data_type in ("date", "datetime", "timestamp"):
                zeros = sum("-00" in str(row[at])[:10] for row in truth.rows)
                self.used[ZERO_DATES.name] += zeros
                self._zero_columns |= {column.name} if zeros else set()

    def excused(self, column: str, source: Value, lake: Value) -> bool:
        """Whether a loss of the connector explains why a cell differs."""
        if column in self._zero_columns and {source, lake} == {None, 0}:
            return True
        if column in self._undetermined and lake is None:
            self.used[UNDETERMINED.name] += 1
            return True
        if column in self._cascaded or self.rows_may_stay:
            self.used[CASCADED.name] += 1
            return True
        is_text = isinstance(source, str) and isinstance(lake, str)
        if self.by_connector and is_text and _REPLACEMENT in str(lake) and _REPLACEMENT not in str(source):
            self.used[CHARSET.name] += 1
            return True
        return False
