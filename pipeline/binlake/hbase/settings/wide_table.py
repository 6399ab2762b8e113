"""The section ``tables.cells[].wide``: a wide table and its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from binlake.hbase.settings.declared import DeclarationError, Storage, WideColumn, wide_column
from binlake.hbase.settings.rules import Undeclared
from hudilake.validation import Count, Section, Text, mistake

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = ("_hoodie_", "_binlake_")


def _named(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise mistake("a column's name has letters, digits and _ only, and no digit first")
    if name.lower().startswith(_RESERVED):
        raise mistake(f"names that begin with {' or '.join(_RESERVED)} are the lake's own")
    return name


def _declared(declared: str, info: ValidationInfo) -> str:
    try:
        wide_column("", declared, info.data.get("storage"))
    except DeclarationError as error:
        raise mistake(str(error)) from error
    return declared


class WideSettings(Section):
    """A wide table: a row for each row of the store, columns by declaration."""

    table: Text | None = None
    """The ``database.table`` in the lake; null takes the store's own name of the table."""
    storage: Storage | None = None
    """What a column without ``#`` holds, as Hive's ``hbase.table.default.storage.type``: ``binary`` for values as
    HBase's ``Bytes`` writes them, ``string`` for their text. null: every column says it, but for ``utf8`` and
    ``bytes``, where it is all one."""
    columns: Mapping[Annotated[Text, AfterValidator(_named)], Annotated[Text, AfterValidator(_declared)]] = Field(
        min_length=1
    )
    """Column in the lake: where its value is in the store, and its type, as ``d:user_id#b long``. The place is written
    as for Hive's HBase handler: ``:key`` is the row key, ``cf:col`` a column, ``cf:`` a map of the family's undeclared
    columns, ``cf:pre.*`` a map of those that begin with ``pre``, ``:timestamp`` the newest timestamp of the row's
    cells; ``#b`` for values as HBase's ``Bytes`` writes them, ``#s`` for values as text. Types: ``utf8`` (the default),
    ``long``, ``int``, ``short``, ``double``, ``float``, ``boolean``, ``decimal(p,s)``, ``bytes``."""
    undeclared: Undeclared = "quarantine"
    """What becomes of a value that no column holds: ``drop`` leaves it out, ``quarantine`` reports it. The table of
    cells has it in any case."""
    sweep_seconds: Count = 60
    """How often the rows are derived anew whose cells have expired (``ttl_seconds``)."""

    @model_validator(mode="after")
    def _columns(self) -> Self:
        parsed = self.parsed()
        if sum(column.is_key for column in parsed) != 1:
            raise mistake("exactly one column must be :key")
        names: dict[str, str] = {}
        places: dict[tuple[object, ...], str] = {}
        for column in parsed:
            if (other := names.setdefault(column.name.lower(), column.name)) != column.name:
                raise mistake(f"columns {other} and {column.name} are one name to readers, which ignore case")
            place = column.family, column.qualifier, column.prefix, column.is_timestamp
            if (other := places.setdefault(place, column.name)) != column.name:
                raise mistake(f"columns {other} and {column.name} have one place in the store")
        return self

    def parsed(self) -> tuple[WideColumn, ...]:
        """The columns, the row key first."""
        wide_columns = [wide_column(name, text, self.storage) for name, text in self.columns.items()]
        return tuple(sorted(wide_columns, key=lambda column: not column.is_key))
