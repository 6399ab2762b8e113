"""A process that answers: the Hive Metastore's protocol and HTTP, over one store."""

from __future__ import annotations

from contextlib import ExitStack

from hudilake.errors import LakeError
from hudilake.storage import open_storage
from lakemetastore.hive.connection import Answer
from lakemetastore.hive.context import Services
from lakemetastore.hive.functions import Functions
from lakemetastore.hive.hive_calls import HiveCalls
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.locks import Locks
from lakemetastore.hive.server import ThriftServer
from lakemetastore.hive.table_files import TableFiles
from lakemetastore.http.app import create_app
from lakemetastore.http.options import ServeOptions
from lakemetastore.lake.opening import metastore_of
from lakemetastore.router.router import Router
from lakemetastore.service.http_server import HttpServer
from lakemetastore.service.metrics import ServingMetrics
from lakemetastore.service.part import Report
from lakemetastore.service.ports import Ports, listen, server_context
from lakemetastore.settings.service import MetastoreSettings


class ServingPart:
    """Answers from ``start`` to ``stop``.

    Args:
        settings: of the service.
        ports: the ports that its parent holds.
    """

    def __init__(self, settings: MetastoreSettings, ports: Ports) -> None:
        self._settings, self._ports = settings, ports
        self._held = ExitStack()
        self._metrics = ServingMetrics()

    def start(self) -> None:
        """Open the store and listen. Raises ConfigError, StorageError, TransientError."""
        with ExitStack() as held:
            self._metastore = metastore_of(self._settings)
            held.callback(self._metastore.close)
            self._metastore.catalog.databases.names()  # a store that does not answer raises its error now
            held.enter_context(self._http())
            held.enter_context(self._thrift())
            self._held = held.pop_all()

    def stop(self) -> None:
        """Take no further calls, let those in hand end within ``drain_seconds``, then close the store."""
        self._held.close()

    def report(self) -> Report:
        """Whether the store answers, and the metrics."""
        reasons: tuple[str, ...] = ()
        try:
            self._metastore.catalog.databases.names()
        except LakeError as error:
            reasons = (f"the store does not answer: {error.what}",)
        return Report(reasons, self._metrics.render())

    def _thrift(self) -> ExitStack:
        wanted, store = self._settings.thrift, self._metastore.store
        services = Services(self._metastore.catalog, Locks(store), Functions(store), files=self._files())
        answer: Answer = HiveCalls(services, self._metrics.called)
        if self._settings.router is not None:
            router = Router(self._settings.router, answer, self._metrics.routed)
            router.clashes()
            answer = router.answer
        server = ThriftServer(
            answer,
            listener=listen(wanted.host, self._ports.thrift),
            tls=server_context(wanted.tls) if wanted.tls else None,
            limits=Limits(connections=wanted.max_connections, idle_seconds=wanted.idle_seconds),
            on_call=self._metrics.called,
        )
        self._metrics.connections_of(lambda: server.connections)
        server.start()
        held = ExitStack()
        held.callback(server.stop, self._settings.drain_seconds)
        return held

    def _http(self) -> ExitStack:
        wanted = self._settings.http
        reconciler, states = self._metastore.reconciler, self._metastore.lakes
        options = ServeOptions(register=reconciler.completed, registry=self._metrics.registry, states=states)
        app = create_app(self._metastore.catalog, [lake.root for lake in reconciler.lakes], options)
        server = HttpServer(app, listen(wanted.host, self._ports.http), wanted.tls, self._settings.drain_seconds)
        server.start()
        held = ExitStack()
        held.callback(server.stop)
        held.callback(app.state.drain)
        return held

    def _files(self) -> TableFiles:
        wanted = self._settings.thrift
        return TableFiles(
            open_storage,
            delete=wanted.delete_managed_data,
            roots=(self._settings.warehouse,),
            hudi=wanted.delete_hudi_data,
            lakes=[lake.root.uri for lake in self._metastore.reconciler.lakes],
            locations=wanted.locations,
        )
