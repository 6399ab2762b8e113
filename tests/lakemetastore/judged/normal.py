"""What of an answer is not compared, each with its reason. ``docs/metastore-differences.md`` lists the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from tests.lakemetastore.judged.calls import Outcome
from tests.lakemetastore.judged.plain import CLASS, Plain, changed

#: Times after this one are those of the run; scripts send earlier ones.
_RUN_BEGINS = 1_750_000_000
_TIMES = frozenset({"createTime", "lastAccessTime", "transient_lastDdlTime", "lastAnalyzed"})

_COUNTS = frozenset({"numFiles", "totalSize", "numFilesErasureCoded"})
#: Fields by class that are not compared: a number of the metastore's own database; transactions, which ours has not;
#: what only 4.0.1 tells of a database.
_OWN = {"Table": {"id", "writeId"}, "Partition": {"writeId"}, "Database": {"type", "createTime"}}


@dataclass(frozen=True, slots=True)
class Normal:
    """The rules for the answers of one server. ``warehouse``: its directory for databases, as it writes it."""

    warehouse: str

    def outcome(self, found: Outcome) -> Outcome:
        """An outcome as it is compared."""
        return msgspec.structs.replace(
            found, answer=changed(found.answer, self._field), text=found.text and self._text(found.text)
        )

    def _field(self, name: str, value: Plain) -> Plain:
        if isinstance(value, str):
            return _time_of_the_call(name, self._text(value))
        if isinstance(value, int):
            return _time_of_the_call(name, value)
        if isinstance(value, dict):
            return {key: one for key, one in value.items() if not _left_out(value.get(CLASS), key, one)}
        return value

    def _text(self, text: str) -> str:
        # Each server has its own directory.
        text = re.sub(f"(file:)?(//)?{re.escape(self.warehouse)}", "<warehouse>", text)
        # The texts of 3.1.3 print the whole partition, ours its table and values.
        text = re.sub(r"(Partition\(values:\[.*?\], dbName:\w+, tableName:\w+), .*", r"\1)", text)
        # What comes after is the stack of the server.
        return re.sub(r"(?s)\n\tat .*", "", text)


def _time_of_the_call(name: str, value: int | str) -> Plain:
    if name == "lastAnalyzed":
        # 3.1.3 answers the time of the call, ours what the client sent.
        return "when the statistics were made"
    late = name in _TIMES and str(value).isdigit() and int(value) > _RUN_BEGINS
    return "the time of the call" if late else value


def _left_out(kind: Plain, name: str, value: Plain) -> bool:
    if name in _OWN.get(str(kind), ()):
        return True
    if kind == "StorageDescriptor" and name == "skewedInfo":
        # Absent in answers that repeat what the client sent, empty in others: nothing is skewed in either.
        return not any(one for key, one in value.items() if key != CLASS)
    # A real metastore looks at the directory and counts its files, ours looks at no files.
    return kind is None and name in _COUNTS and value == "0"
