"""Tables of versions 6 and 8 in the words of version 9, so that one set of rules reads them. They are never written.

Version 8 has other names for two properties. Version 6 (Hudi 0.14 and later 0.x) also has another timeline
(``timeline.instant``), names log files after the base file that they follow (``files.view``), and says how rows are
merged by its payload class alone; a strategy there says nothing (Hudi 1.2.0,
``HoodieTableConfig.inferMergingConfigsForPreV9Table``). The metadata tables of both are not used: partitions and files
are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudilake.errors import UnsupportedError
from hudilake.format.definition.kind import COMMIT_TIME, EVENT_TIME, MERGE_MODE

VERSION: Final = "hoodie.table.version"
LAYOUT: Final = "hoodie.timeline.layout.version"
META_FIELDS: Final = "hoodie.populate.meta.fields"
BASE_FORMAT: Final = "hoodie.table.base.file.format"
#: What a table says whose files are as all that binlake writes: Parquet, and with the commits that wrote them.
PLAIN: Final[Mapping[str, str]] = {VERSION: "9", LAYOUT: "2", META_FIELDS: "true", BASE_FORMAT: "PARQUET"}
#: Table version -> its timeline layout.
LAYOUTS: Final[Mapping[str, str]] = {"6": "1", "8": "2", "9": "2"}
_GENERATOR: Final = "hoodie.table.keygenerator.type"
_GENERATOR_CLASS: Final = "hoodie.table.keygenerator.class"
_ORDERING: Final = "hoodie.table.ordering.fields"
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_PAYLOAD: Final = "hoodie.compaction.payload.class"
_STRATEGY_6: Final = "hoodie.compaction.record.merger.strategy"
_LISTED: Final = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")
_KEYGEN: Final = "org.apache.hudi.keygen."
_TYPES: Final[Mapping[str, str]] = {
    f"{_KEYGEN}{name}{avro}KeyGenerator": f"{kind}{'_AVRO' if avro else ''}"
    for name, kind in (
        ("Simple", "SIMPLE"),
        ("Complex", "COMPLEX"),
        ("Nonpartitioned", "NON_PARTITION"),
        ("TimestampBased", "TIMESTAMP"),
        ("Custom", "CUSTOM"),
    )
    for avro in ("", "Avro")
}
_OVERWRITE: Final = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"


def in_words_of_9(values: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table of any version; the version itself stays. What is not understood stays too, and is
    refused with the rest."""
    newer = dict(values)
    if values.get(VERSION) not in ("6", "8"):
        return newer
    for name in _LISTED:
        newer.pop(name, None)
    if _PRECOMBINE in values:
        newer.setdefault(_ORDERING, values[_PRECOMBINE])
    if _GENERATOR not in values:
        kind = _TYPES.get(values.get(_GENERATOR_CLASS, ""))
        if kind is not None:
            newer[_GENERATOR] = kind
        elif _GENERATOR_CLASS not in values:
            newer[_GENERATOR] = "CUSTOM"  # writers were newer and the table was not: paths say nothing about values
    if values[VERSION] == "6":
        newer.pop(_STRATEGY_6, None)
    if MERGE_MODE not in values:
        payload = values.get(_PAYLOAD)
        by_time = bool(newer.get(_ORDERING)) and payload != _OVERWRITE
        newer[MERGE_MODE] = EVENT_TIME if by_time else COMMIT_TIME
        if payload != _OVERWRITE and not by_time and _is_event_time(payload):
            newer.pop(_PAYLOAD)  # without an ordering column it lets the later row win
    return newer


def refuse_unnamed(values: Mapping[str, str], what: str, table: str, *also: str) -> None:
    """Raise UnsupportedError for a table whose log files, or whose rows, do not name the commits that wrote them.

    Args:
        values: its properties.
        what: cannot be had of such a table.
        table: its name.
        also: further properties that must be as binlake writes them.
    """
    for name in (LAYOUT, META_FIELDS, *also):
        if (value := values.get(name, PLAIN[name])) != PLAIN[name]:
            raise UnsupportedError(
                f"{name} is {value}: {what} needs a table where it is {PLAIN[name]}",
                do_next="read the newest rows, or use Hudi for this table",
                table=table,
            )


def _is_event_time(payload: str | None) -> bool:
    return payload is not None and payload.rpartition(".")[2] in ("DefaultHoodieRecordPayload", "EventTimeAvroPayload")
