"""The ``schema_changes`` section of a table: what DDL at the source does to the lake table and its rows."""

from __future__ import annotations

from typing import Literal, Self

from hudilake.validation import Section


class SchemaChangeSettings(Section):
    """What DDL at the source does to a lake table and its rows. ``refuse``: the rows from there on go to quarantine."""

    add: Literal["fill", "null", "refuse"] = "fill"
    """ADD COLUMN. ``fill``: existing rows get the column's default, as in the source; ``null``: they get null."""
    drop: Literal["keep", "refuse"] = "keep"
    """DROP COLUMN. ``keep``: the column stays with its values, and is null in new rows."""
    rename: Literal["copy", "keep", "refuse"] = "copy"
    """RENAME or CHANGE COLUMN. ``copy``: existing rows get the value under the new name too; ``keep``: existing rows
    keep it under the old name only."""
    widen: Literal["apply", "refuse"] = "apply"
    """A type that holds all values of the former type (int to bigint, decimals with more digits)."""
    narrow: Literal["keep", "refuse"] = "keep"
    """A type that holds fewer values. ``keep``: existing rows are converted as the source converts them; the column in
    the lake keeps its wider type."""
    convert: Literal["follow", "string", "refuse"] = "follow"
    """Any other change of type. ``follow``: existing rows are converted as the source converts them, and the column
    takes the new type; ``string``: a column that changes from whole numbers to text becomes text, one that changes from
    text to whole numbers stays text, and the rest is refused."""
    key: Literal["rewrite", "refuse"] = "rewrite"
    """Another primary key, or a key column with another name. ``rewrite``: the lake table is written anew under its new
    key, in one commit."""
    partitions: Literal["follow", "keep", "refuse"] = "follow"
    """DROP, TRUNCATE and EXCHANGE PARTITION. ``follow``: the partition's rows are deleted; where it is not known which
    rows these are, the statement is refused. ``keep``: its rows stay."""
    drop_table: Literal["keep", "delete"] = "keep"
    """DROP TABLE. ``keep``: the lake table stays as it is; ``delete``: its rows are deleted, as by TRUNCATE."""
    recreate_table: Literal["delete", "keep"] = "delete"
    """CREATE TABLE after DROP TABLE. ``delete``: the dropped table's rows are deleted; ``keep``: they stay."""
    rename_table: Literal["follow", "new", "refuse"] = "follow"
    """RENAME TABLE. ``follow``: the rows go to the same lake table as before; ``new``: to a table with the new name."""
    shadow_tables: Literal["filter", "keep"] = "filter"
    """The tables of pt-online-schema-change and gh-ost. ``filter``: a copy takes the table's place at the swap, under
    the table's rules, and gh-ost's notes are left out; ``keep``: they are tables like any other."""

    def without_changed_rows(self) -> Self:
        """The same rules for an append table: no statement changes or deletes its stored rows."""
        kept = {"fill": "null", "copy": "keep", "follow": "keep", "delete": "keep"}
        names = ("add", "rename", "partitions", "drop_table", "recreate_table")
        changes = {name: kept.get(getattr(self, name), getattr(self, name)) for name in names}
        return self.model_copy(update={**changes, "convert": "refuse"})
