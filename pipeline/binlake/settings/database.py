"""The source's database itself, which ``binlake load`` and ``binlake verify`` read, and its binlog."""

from __future__ import annotations

import zlib
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from hudilake.validation import Count, Section, Text


class ReplicaSettings(Section):
    """A replica that is read in place of the server that writes the binlog."""

    host: Text
    """Its host name or address; user, password and TLS are those of the database."""
    port: int = Field(default=3306, ge=1, le=65535)
    """Its port."""


class MysqlSettings(Section):
    """How binlake reads the binlog of ``database`` itself, without Kafka."""

    server_id: int | None = Field(default=None, ge=1, lt=1 << 32)
    """The number by which the server knows this reader. No replica of the server and no other reader may have it. Null
    takes one made of the stream's name."""
    start: Annotated[str, StringConstraints(pattern=r"^(now|earliest|.+\.\d+:\d+)$")] = "now"
    """Where a stream without a position begins, if no table was loaded before: ``now`` takes what changes from now on,
    ``earliest`` all that the server's binlog still has, ``FILE:POSITION`` what follows that place between two
    transactions."""

    def replica_id(self, stream: str) -> int:
        """The server id, for a stream of this name."""
        return self.server_id or 1 << 30 | zlib.crc32(stream.encode()) & ((1 << 30) - 1)


class LoadSettings(Section):
    """How ``binlake load`` reads tables, and how much of the server it takes."""

    connections: Count = 2
    """How many sessions read side by side."""
    chunk_rows: Count = 50_000
    """Rows of one query, approximately. A table without a key is one query."""
    commit_rows: Count = 1_000_000
    """Rows of one commit, approximately. An interrupted load reads at most so many rows again, and holds so many in
    memory."""


class DatabaseSettings(Section):
    """How to reach the MySQL or MariaDB server whose changes the stream carries."""

    host: Text | None = None
    """Host name or address; null: no command may read the source."""
    port: int = Field(default=3306, ge=1, le=65535)
    """The port."""
    user: Text | None = None
    """A user with SELECT on the tables, and REPLICATION CLIENT (MariaDB: BINLOG MONITOR; on a replica SLAVE MONITOR);
    MySQL needs RELOAD besides, for a lock that lasts milliseconds."""
    password: SecretStr | None = None
    """The user's password."""
    tls: bool = False
    """Encrypt the connection. Without ``ca_file`` the server's certificate is checked against the system's."""
    ca_file: Text | None = None
    """Certificates (PEM) of the authorities to trust; turns ``tls`` on."""
    timeout_seconds: float = Field(default=60.0, gt=0)
    """How long the server may take to connect, or to send the next rows."""
    replica: ReplicaSettings | None = None
    """A replica that is read instead. Positions are then those of its primary, whose binlog the stream carries."""
    rows_per_second: Count | None = None
    """The most rows that are read a second; null for no limit."""
    load: LoadSettings = Field(default_factory=LoadSettings)
    """The first load of tables, ``binlake load``."""
