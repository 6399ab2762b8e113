"""Chooses a table's lock by its store or by the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from hudilake.errors import ConfigError
from hudilake.locking.base import TableLock
from hudilake.locking.fenced import unfenced
from hudilake.locking.file_lock import FileLock
from hudilake.locking.process_lock import ProcessLock
from hudilake.locking.storage_lock import StorageLock
from hudilake.storage.abilities import ConditionalStore
from hudilake.storage.base import Storage

Provider: TypeAlias = Literal["auto", "process", "file", "storage"]

_MIN_VALIDITY_S = 10
_RENEWALS_PER_VALIDITY = 10
_FILE_SCHEMES = ("file", "hdfs")


@dataclass(frozen=True)
class LockConfig:
    """The lock settings of a table. All its writers must use the same ones, Hudi's included.

    Attributes:
        provider: ``process`` excludes the threads of this process alone; ``file`` is Hudi's FileSystemBasedLockProvider
            (local disk, HDFS), ``storage`` its StorageBasedLockProvider (object stores); ``auto`` chooses by the
            store.
        wait_s: how long to wait for another holder.
        validity_s: how long others wait for a holder that is silent.
        renew_s: how often a holder renews.
        heartbeat_timeout_s: how long others treat a silent writer of an instant as alive.
        foreign_expiry_s: ``file`` only: the age at which a lock without a holder's name, as Hudi's is, is dead; 0 for
            never. The setting of the Hudi writers is ``hoodie.write.lock.filesystem.expire``, in minutes.

    Raises:
        ConfigError: times that Hudi would refuse, or that cannot work.

    Example:
        >>> table = hudilake.open_table(orders.uri, locking=hudilake.LockConfig(provider="file", wait_s=10))
        >>> table.count()
        3
    """

    provider: Provider = "auto"
    wait_s: float = 60.0
    validity_s: float = 300.0
    renew_s: float = 30.0
    heartbeat_timeout_s: float = 600.0
    foreign_expiry_s: float = 0.0

    def __post_init__(self) -> None:
        if self.provider not in get_args(Provider):
            raise ConfigError(
                "unknown lock provider", do_next="use auto, process, file or storage", provider=self.provider
            )
        if self.validity_s < _MIN_VALIDITY_S or self.validity_s < _RENEWALS_PER_VALIDITY * self.renew_s:
            raise ConfigError(
                "a lock's validity must be at least 10 s and at least ten times the time between renewals",
                do_next="raise validity_s or lower renew_s",
                validity_s=self.validity_s,
                renew_s=self.renew_s,
            )
        if self.renew_s <= 0 or self.heartbeat_timeout_s <= 0 or min(self.wait_s, self.foreign_expiry_s) < 0:
            raise ConfigError(
                "a time of the lock is zero or negative",
                do_next="give renew_s and heartbeat_timeout_s a time above 0",
                renew_s=self.renew_s,
                heartbeat_timeout_s=self.heartbeat_timeout_s,
            )


def table_lock(storage: Storage, config: LockConfig) -> TableLock:
    """The lock of a table. Every writer of one process may have its own object: they exclude each other as well.

    Args:
        storage: at the table's root.
        config: its settings.

    Raises:
        ConfigError: a provider that this store cannot have.
    """
    store, uri = unfenced(storage), storage.uri
    scheme = uri.partition("://")[0]
    on_files = scheme in _FILE_SCHEMES
    provider = config.provider
    if provider == "auto":
        provider = "process" if scheme == "memory" else "file" if on_files else "storage"
    times = {"wait_s": config.wait_s, "validity_s": config.validity_s, "renew_s": config.renew_s}
    if provider == "process":
        return ProcessLock(uri, config.wait_s)
    if provider == "file" and on_files:
        return FileLock(store, **times, foreign_expiry_s=config.foreign_expiry_s)
    if provider == "storage" and isinstance(store, ConditionalStore):
        return StorageLock(store, uri, **times)
    raise ConfigError(
        f"the lock provider {provider!r} does not work on this store",
        do_next="use file on local disk and HDFS, storage on object stores, or leave it at auto",
        uri=uri,
    )
