"""The Hive Metastore's protocol over a catalog, on a socket, for tests of one process."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.context import Services
from lakemetastore.hive.functions import Functions
from lakemetastore.hive.hive_calls import HiveCalls
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.locks import Locks
from lakemetastore.hive.server import OnCall, ThriftServer
from lakemetastore.hive.table_files import TableFiles
from lakemetastore.log.stores.base import LogStore


class HiveServer(ThriftServer):
    """A Thrift server whose clients see a catalog as a Hive Metastore.

    Args:
        catalog: what clients see.
        store: of the catalog. Locks and functions are in logs of their own there.
        listener: a socket that listens (`server.listen`). The server closes it.
        tls: certificates, if the clients speak TLS.
        limits: how much a client may take.
        on_call: told of each call.
        configuration: what ``get_config_value`` and ``getMetaConf`` answer from.
        files: which files may be deleted when clients drop tables; by default none.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: LogStore,
        *,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        on_call: OnCall | None = None,
        configuration: Mapping[str, str] | None = None,
        files: TableFiles | None = None,
    ) -> None:
        services = Services(catalog, Locks(store), Functions(store), configuration or {}, files or TableFiles())
        self.calls = HiveCalls(services, on_call)
        super().__init__(self.calls, listener=listener, tls=tls, limits=limits, on_call=on_call)
