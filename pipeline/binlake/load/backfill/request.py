"""What a backfill is asked to do."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from hudilake.errors import ConfigError

#: The group of new columns, if the request names none.
DEFAULT_GROUP = "backfill"


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What to write.

    Args:
        columns: the columns to write, named alike in the input and in the lake.
        key: the input's columns that hold the table's key, in the key's order; None if they have the same names.
        where: an SQL condition (DuckDB) over the input's columns; other rows are left out.
        order: the ordering value of the values. They do not replace values with a greater one.
        group: the name of the column group of new columns; None for a name that is free.
        insert: whether rows are inserted whose key the table does not have; otherwise they are counted.
        portion_rows: rows that one commit takes, approximately.
        restart: begin anew, even if the same backfill was interrupted or is done.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...] | None = None
    where: str | None = None
    order: int = 0
    group: str | None = None
    insert: bool = False
    portion_rows: int = 1_000_000
    restart: bool = False

    def check(self) -> None:
        """Raise ConfigError for a request that contradicts itself."""
        if not self.columns or len({name.lower() for name in self.columns}) != len(self.columns):
            raise ConfigError(
                "the columns to write are missing, or one is named twice", do_next="name each column once (--columns)"
            )
        if not 0 <= self.order < 1 << 62:
            raise ConfigError(
                "the order must be 0 or greater", do_next="give an ordering value, as _binlake_order holds them"
            )
        if self.portion_rows < 1:
            raise ConfigError("a portion needs at least one row", do_next="give a greater --portion-rows")

    def name(self, source: str) -> str:
        """The name of the backfill: the same command has the same name. ``source``: the input as it was given."""
        said = [source, self.columns, self.key, self.where, self.order, self.group, self.insert]
        return hashlib.blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()
