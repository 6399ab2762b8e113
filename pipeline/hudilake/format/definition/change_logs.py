"""Whether the commits of a table write change logs for Hudi's CDC query, and what these have: its properties say it.

binlake writes them for copy-on-write tables with a key, in the three modes of Hudi 1.2.0. Hudi also infers changes of
merge-on-read tables, from log files whose commits name all log files before them; binlake's commits do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, get_args

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.kind import TYPE
from hudilake.policies import ChangeLog

#: Whether commits write what they change, and how much of it.
CHANGE_LOG: Final = "hoodie.table.cdc.enabled"
CHANGE_LOG_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"
#: The mode of a table whose properties name none.
_USUAL: Final = "DATA_BEFORE_AFTER"
_MODES: Final[Mapping[str, ChangeLog]] = {mode.upper(): mode for mode in get_args(ChangeLog)}
_RECORD_KEY: Final = "hoodie.table.recordkey.fields"


def change_log_of(values: Mapping[str, str]) -> ChangeLog | None:
    """What the commits of a table keep of each changed row; None for nothing, and for a mode that binlake does not
    write.

    ``values``: its properties.
    """
    return _MODES.get(values.get(CHANGE_LOG_MODE, _USUAL)) if values.get(CHANGE_LOG) == "true" else None


def with_change_log(values: Mapping[str, str], mode: ChangeLog | None) -> Mapping[str, str]:
    """The properties of a table with change logs of that mode; the same for None."""
    return values if mode is None else {**values, CHANGE_LOG: "true", CHANGE_LOG_MODE: mode.upper()}


def unwritten_change_logs(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names of properties of a change log that binlake does not write, each with the reason.

    ``values``: all properties of a table, its type among them.
    """
    if values.get(CHANGE_LOG) != "true":
        return
    if values[TYPE] != "COPY_ON_WRITE":
        yield CHANGE_LOG, f"it changes only tables where this is false, or {TYPE} is COPY_ON_WRITE"
    if not values.get(_RECORD_KEY):
        yield CHANGE_LOG, f"it changes only tables where this is false, or {_RECORD_KEY} is set"
    if values.get(CHANGE_LOG_MODE, _USUAL) not in _MODES:
        yield CHANGE_LOG_MODE, f"it changes only tables where this is {' or '.join(_MODES)}"


def refuse_change_log(values: Mapping[str, str], table: str, what: str, why: str) -> None:
    """Raise UnsupportedError for a table with change logs.

    Args:
        values: its properties.
        table: its name.
        what: is not done there.
        why: the reason.
    """
    if change_log_of(values) is not None:
        raise UnsupportedError(
            f"{what} is not possible where {CHANGE_LOG} is true: {why}",
            do_next=f"make a new table for this, or set {CHANGE_LOG} to false with Hudi",
            table=table,
        )


def check_same_change_log(expected: Mapping[str, str], found: Mapping[str, str], table: str) -> None:
    """Raise ConfigError if a table has other change logs than the settings name. Settings that name none take what the
    table says. ``expected``, ``found``: properties; ``table``: its name."""
    wanted, known = change_log_of(expected), change_log_of(found)
    if wanted not in (None, known):
        raise ConfigError(
            f"the table's change log is {known or 'off'} where {wanted} was expected",
            do_next="leave the setting out: Hudi's CDC query needs the change logs of all commits, or of none",
            table=table,
        )
