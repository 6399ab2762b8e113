"""The session of a statement, as far as conversions depend on it.

It stands alone: conversions, generated columns and the judgement of statements all depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from binlake.schema.rules.conversion.moments import DAY, SECOND


@dataclass(frozen=True, slots=True)
class Session:
    """The facts about a statement's server and session.

    ``zone``: of TIMESTAMP to and from other types. ``mariadb``: whether the server is a MariaDB and not a MySQL; a
    MariaDB cuts fractions of seconds off, a MySQL rounds them. ``seconds``: the statement's time since the Unix epoch;
    None if it is not known.
    """

    zone: str = "UTC"
    mariadb: bool = False
    seconds: int | None = None

    @property
    def today(self) -> int | None:
        """The local day of the statement, in days since 1970."""
        if self.seconds is None:
            return None
        moment = pa.scalar(self.seconds * SECOND, pa.timestamp("us", tz=self.zone))
        return int(pc.local_timestamp(moment).cast(pa.int64()).as_py() // DAY)
