"""Places of a binlog as the offsets of one topic partition, and what a server says of its binlog.

The binlog of a server is the topic ``binlog/<server>`` with one partition. A record is one row of a rows event, or one
statement. Its offset is ``(file number << 32 | position of its event) << 11``, plus the number of the row in the event.
Offsets therefore rise as the binlog does, and say the place by themselves: no file has to remember it. A row takes a
byte at least, so the rows of an event never reach the offset of the next one; of a compressed event that is checked.
The difference of two offsets counts no records.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlake.decode.changes import FILE_BITS, POSITION_BITS
from binlake.decode.order import OUT_OF_RANGE, file_number
from binlake.source.binlog.topic import topic_of
from hudilake.errors import BadInputError, ConfigError

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

ROW_BITS = 63 - FILE_BITS - POSITION_BITS
PARTITION = 0
#: The place of the first event of a binlog file, after its four magic bytes.
FIRST_POSITION = 4


@dataclass(frozen=True, slots=True, order=True)
class BinlogPlace:
    """The number of a binlog file, and a position in it."""

    file: int
    position: int

    def __str__(self) -> str:
        return f"{self.file:06d}:{self.position}"


def offset_of(file: str, position: int) -> int:
    """The offset of the event at a position of a file. Raises ConfigError if a part does not fit."""
    number = file_number(file)
    if number == OUT_OF_RANGE or not 0 <= position < 1 << POSITION_BITS:
        raise ConfigError(
            f"the binlog position {file}:{position} has no place among the offsets",
            do_next="name the binlog files as MySQL does, and keep them below 4 GiB (max_binlog_size)",
        )
    return (number << POSITION_BITS | position) << ROW_BITS


def offset_at(place: str) -> int:
    """The offset of the event at ``file:position``. Raises ConfigError if a part does not fit."""
    file, _, position = place.rpartition(":")
    return offset_of(file, int(position))


def offset_of_order(order: int) -> int:
    """The offset of the event whose changes have an ordering value."""
    return (order & ((1 << FILE_BITS + POSITION_BITS) - 1)) << ROW_BITS


def place_of(offset: int) -> BinlogPlace:
    """The place of the event that an offset belongs to. Rows beyond the 2048th of an event show a later position."""
    whole = offset >> ROW_BITS
    return BinlogPlace(whole >> POSITION_BITS, whole & ((1 << POSITION_BITS) - 1))


@dataclass(frozen=True)
class BinlogServer:
    """What a server says of itself and its binlog.

    Args:
        topic: of its binlog.
        mariadb: whether it is a MariaDB.
        files: name -> bytes of the binlog files that it has, in order.
    """

    topic: str
    mariadb: bool
    files: dict[str, int]

    @staticmethod
    def ask(connection: SourceConnection) -> BinlogServer:
        """Ask a server. Raises ConfigError (no binlog, no rights), TransientError."""
        version = str(connection.rows("SELECT VERSION()")[0][0])
        mariadb = "mariadb" in version.lower()
        name = "server_id" if mariadb else "server_uuid"
        identity = str(connection.rows(f"SELECT @@{name}")[0][0])
        rows = connection.rows("SHOW BINARY LOGS")
        if not rows:
            raise ConfigError("the server writes no binlog", do_next="turn log_bin on", server=connection.place)
        return BinlogServer(topic_of(identity), mariadb, {str(row[0]): int(str(row[1])) for row in rows})

    @property
    def end(self) -> int:
        """The offset of the next event that the server will write."""
        *_, (file, size) = self.files.items()
        return offset_of(file, size)

    @property
    def start(self) -> int:
        """The offset of the first event that the server has."""
        return offset_of(next(iter(self.files)), FIRST_POSITION)

    def left_after(self, offset: int) -> int:
        """The bytes of the binlog from an offset on, as far as the server has them."""
        place = place_of(offset)
        sizes = {file_number(name): length for name, length in self.files.items()}
        newer = sum(length for number, length in sizes.items() if number > place.file)
        return max(0, sizes.get(place.file, 0) - place.position) + newer

    def file_of(self, place: BinlogPlace) -> str:
        """The name of the file that has a place. Raises BadInputError if the server does not have it."""
        name = next((one for one in self.files if file_number(one) == place.file), None)
        if name is None or place.position > self.files[name]:
            raise self._lost(place, name)
        return name

    def _lost(self, place: BinlogPlace, name: str | None) -> BadInputError:
        first, last = file_number(next(iter(self.files))), file_number(list(self.files)[-1])
        if name is None and place.file < first:
            return BadInputError(
                f"the stream stands at {place} of the binlog, and the server has deleted that file: it begins at "
                f"{next(iter(self.files))}",
                do_next="give the stream a new name and a new lake path, and load the tables; keep binlogs longer "
                "(binlog_expire_logs_seconds)",
                topic=self.topic,
            )
        what = "ends before it" if name is not None else f"has files {first} to {last}"
        return BadInputError(
            f"the stream stands at {place} of the binlog, and the server {what}: its binlog was reset, or another "
            "server answers",
            do_next="bring the old server back; or give the stream a new name and a new lake path, and load the tables",
            topic=self.topic,
        )


def charsets(connection: SourceConnection) -> dict[int, tuple[str, int]]:
    """Id of each collation -> its character set and the most bytes of a character. Raises TransientError."""
    question = (
        "SELECT a.ID, a.CHARACTER_SET_NAME, c.MAXLEN FROM information_schema.{} a "
        "JOIN information_schema.CHARACTER_SETS c ON c.CHARACTER_SET_NAME = a.CHARACTER_SET_NAME WHERE a.ID IS NOT NULL"
    )
    known: dict[int, tuple[str, int]] = {}
    for table in ("COLLATIONS", "COLLATION_CHARACTER_SET_APPLICABILITY"):
        with contextlib.suppress(ConfigError):  # only MariaDB has ids in the second one, and all of them
            known |= {
                int(str(i)): (str(name), int(str(most))) for i, name, most in connection.rows(question.format(table))
            }
    return known
