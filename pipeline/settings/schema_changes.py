"""The ``schema_changes`` section of a table: what DDL at the source does to the lake table and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.settings.types import Section


@dataclass(frozen=True, slots=True)
class SchemaChangeRule:
    """What DDL does to a lake table. Fields as in ``SchemaChangeSettings``."""

    add: Literal["fill", "null", "refuse"] = "fill"
    drop: Literal["keep", "refuse"] = "keep"
    rename: Literal["copy", "keep", "refuse"] = "copy"
    widen: Literal["apply", "refuse"] = "apply"
    narrow: Literal["keep", "refuse"] = "keep"
    convert: Literal["refuse", "string"] = "refuse"
    drop_table: Literal["keep", "delete"] = "keep"
    recreate_table: Literal["delete", "keep"] = "delete"
    rename_table: Literal["follow", "new", "refuse"] = "follow"
    shadow_tables: Literal["filter", "keep"] = "filter"


class SchemaChangeSettings(Section):
    """What DDL at the source does to a lake table and its rows. Refused: the rows from there on go to quarantine."""

    add: Literal["fill", "null", "refuse"] = "fill"
    """ADD COLUMN. ``fill``: rows that are there get the column's default, as in the source; ``null``: they get none."""
    drop: Literal["keep", "refuse"] = "keep"
    """DROP COLUMN. ``keep``: the column stays with its values, and is null in new rows."""
    rename: Literal["copy", "keep", "refuse"] = "copy"
    """A column under a new name. ``copy``: rows that are there get the values under the new name too; ``keep``: they
    keep them under the old one alone."""
    widen: Literal["apply", "refuse"] = "apply"
    """A type that holds all that the former held (int to bigint, decimals with more digits)."""
    narrow: Literal["keep", "refuse"] = "keep"
    """A type that holds less. ``keep``: the lake's column stays as wide as it is."""
    convert: Literal["refuse", "string"] = "refuse"
    """Any other type. ``string``: whole numbers become text where the source turns them into text, or stay text where
    it turns text into whole numbers; the rest is refused."""
    drop_table: Literal["keep", "delete"] = "keep"
    """DROP TABLE. ``keep``: the lake table stays as it is; ``delete``: its rows are deleted, as by TRUNCATE."""
    recreate_table: Literal["delete", "keep"] = "delete"
    """CREATE TABLE after DROP TABLE. ``delete``: the dropped table's rows go; ``keep``: they stay beside the new."""
    rename_table: Literal["follow", "new", "refuse"] = "follow"
    """RENAME TABLE. ``follow``: the rows go on to the same lake table; ``new``: to one of the new name."""
    shadow_tables: Literal["filter", "keep"] = "filter"
    """Tables that pt-online-schema-change and gh-ost make beside a table of ours, until they swap the two."""

    def rule(self) -> SchemaChangeRule:
        """The same as a rule."""
        return SchemaChangeRule(**self.model_dump())
