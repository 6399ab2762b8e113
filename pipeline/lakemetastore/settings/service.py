"""The settings of one metastore service: what ``python -m lakemetastore serve`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from hudilake.validation import Amount, Count, Section, Text, mistake
from lakemetastore.settings.document import document_of, read_text
from lakemetastore.settings.options import Options, plain
from lakemetastore.settings.problems import validated
from lakemetastore.settings.router import RouterSettings

_SCHEMA = "python -m lakemetastore config-schema"


class StoreSettings(Section):
    """Where the metastore keeps its logs. ``uri`` may hold a password, so it is not printed."""

    uri: Text = Field(repr=False)
    """A directory or ``file:``, an object store (``s3:``, ``gs:``, ``az:``), ``hdfs:``, ``lmdb:`` or a database by
    SQLAlchemy's URL (``sqlite:``, ``mysql+pymysql:``, ``postgresql+psycopg:``)."""
    options: Options = Field(default_factory=dict)
    """The store's own options (endpoint, region, credentials)."""
    snapshot_every: Count = 500
    """After so many versions of a log its state is written as a snapshot."""
    check_after_ms: Amount = 0
    """How old what a process knows of a log may be before it asks the store again; 0 asks at every call, so that a
    commit through one process is seen at once through all others."""

    def store_options(self) -> dict[str, str]:
        """The options in clear text."""
        return plain(self.options)


class TlsSettings(Section):
    """The certificate of a port."""

    certificate_file: Text
    """The certificate (PEM), with those of the authorities between."""
    key_file: Text
    """Its private key (PEM), without a password."""
    client_ca_file: Text | None = None
    """If given, clients must show a certificate of these authorities (PEM)."""


class ThriftSettings(Section):
    """The port that speaks the Hive Metastore's protocol. There is no Kerberos and no SASL."""

    host: Text = "127.0.0.1"
    """The address to listen on. Who reaches it may read and change the catalog, so do not open it to everybody."""
    port: int = Field(default=9083, ge=0, le=65535)
    """The port; 0 takes a free one."""
    tls: TlsSettings | None = None
    """Encrypts the connection; null does not."""
    max_connections: Count = 1000
    """The most connections of one process. When there are so many, a further one takes the place of that on which
    nothing has been asked for the longest time."""
    idle_seconds: float = Field(default=600.0, gt=0)
    """A connection on which nothing is asked for so long is closed."""
    delete_managed_data: bool = True
    """Whether ``DROP`` deletes the files of a managed table below ``warehouse``, as the Hive Metastore does. A managed
    table whose files may not be deleted is not dropped while it has some. Files of external tables are never
    deleted."""
    delete_hudi_data: bool = False
    """Whether that is so for managed tables that are Hudi tables, too."""
    locations: tuple[Text, ...] = ()
    """Prefixes of locations that clients may name besides ``warehouse`` and those of ``lakes``, such as
    ``s3://bucket/tables``; others are refused, so that no client makes the service ask a store of its choice. New
    directories are made there; nothing is moved or deleted."""


class HttpSettings(Section):
    """The port of the timeline service: HTTP with an OpenAPI document, ``/health`` and ``/metrics``."""

    host: Text = "127.0.0.1"
    """The address to listen on. There is no authentication but ``tls.client_ca_file``."""
    port: int = Field(default=9084, ge=0, le=65535)
    """The port; 0 takes a free one."""
    tls: TlsSettings | None = None
    """Encrypts the connection; null does not."""


class ServedLake(Section):
    """A lake whose tables the metastore holds."""

    settings: Text | None = None
    """The settings file of the stream that writes it. Exactly one of ``settings`` and ``uri``."""
    uri: Text | None = None
    """Root of the lake's tables."""
    options: Options = Field(default_factory=dict)
    """The store's own options, with ``uri``."""

    def storage_options(self) -> dict[str, str]:
        """The options in clear text."""
        return plain(self.options)

    def beside(self, directory: Path) -> ServedLake:
        """The same with the path of the settings file as it is from ``directory``, where these settings are."""
        return self.model_copy(update={"settings": str(directory / self.settings)}) if self.settings else self

    @model_validator(mode="after")
    def _named_in_one_way(self) -> Self:
        if (self.settings is None) == (self.uri is None):
            raise mistake("exactly one of settings and uri must be given")
        if self.settings is not None and self.options:
            raise mistake("options belong to uri; the settings file has its own")
        return self


class ServiceMonitoringSettings(Section):
    """Health and metrics of all processes together."""

    host: Text = "127.0.0.1"
    """The address to listen on. There is no authentication, so do not open it to a public network."""
    port: int | None = Field(default=None, ge=0, le=65535)
    """The port; null serves nothing. 0 takes a free one."""


class MetastoreSettings(Section):
    """One metastore service: a store, and processes that answer for it."""

    store: StoreSettings
    """Where the metastore keeps its logs. Any number of services may share one store."""
    warehouse: Text = "file:///data/warehouse"
    """Where databases and managed tables without a location of their own are put."""
    processes: Count = 1
    """How many processes answer, on the same ports. One that dies is started again."""
    thrift: ThriftSettings = Field(default_factory=ThriftSettings)
    """The port that speaks the Hive Metastore's protocol."""
    http: HttpSettings = Field(default_factory=HttpSettings)
    """The port of the timeline service."""
    monitoring: ServiceMonitoringSettings = Field(default_factory=ServiceMonitoringSettings)
    """Health and metrics of all processes together."""
    lakes: tuple[ServedLake, ...] = ()
    """Lakes whose tables the metastore holds; their timelines are the truth, and are read again at intervals."""
    reconcile_seconds: float = Field(default=60.0, gt=0)
    """How often the lakes are read for what was not registered."""
    router: RouterSettings | None = None
    """Several metastores that clients of the Thrift port see as one catalog; null shows them this one alone."""
    drain_seconds: float = Field(default=10.0, ge=0)
    """After SIGTERM, how long calls in hand may take."""

    @staticmethod
    def load(path: Path | str, environ: Mapping[str, str] | None = None) -> MetastoreSettings:
        """Read and validate a settings file; ``environ`` as for ``Settings.load``.

        Raises:
            SettingsError: with every mistake of the file, each with its path and line.
            ConfigError: the file cannot be read or is not YAML.
        """
        file = Path(path)
        return MetastoreSettings.parse(read_text(file), origin=str(file), directory=file.parent, environ=environ)

    @staticmethod
    def parse(
        text: str, *, origin: str = "settings", directory: Path = Path(), environ: Mapping[str, str] | None = None
    ) -> MetastoreSettings:
        """Validate the text of a settings file; see ``load``."""
        settings = validated(MetastoreSettings, document_of(text, origin, directory, environ), origin, _SCHEMA)
        return settings.model_copy(update={"lakes": tuple(lake.beside(directory) for lake in settings.lakes)})
