"""Wide tables derived by a process of its own, beside the stream: by commands and by replays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from binlake.hbase.derive.cell_store import store_of
from binlake.hbase.derive.derivation import Deriver, derive_stream
from binlake.settings import Settings
from binlake.tables.lake import Lake, locking
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.services.table_services import TableServices
from hudilake.services.planned import one_by_one
from hudilake.storage import Storage, open_storage

_THREADS = 8


@contextlib.contextmanager
def deriving(settings: Settings, root: Storage | None = None) -> Iterator[Deriver]:
    """A deriver with a view of the lake of its own.

    Args:
        settings: of the stream; it may be running.
        root: of the lake; None for that of the settings.
    """
    where = root or open_storage(settings.lake.uri, settings.lake.storage_options())
    lake = Lake(where, locking(settings.locking, f"derive {settings.name}"))
    services = TableServices(one_by_one)
    quarantine = settings.quarantine.model_copy(update={"path": settings.quarantine_path})
    own = settings.model_copy(update={"name": derive_stream(settings.name), "quarantine": quarantine})
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-derive") as pool:
        try:
            table, kept = QuarantineTable(own, lake, services), store_of(settings)
            yield Deriver(settings.name, lake, services, table, pool, kept, settings.quarantine.max_records_per_batch)
        finally:
            services.close()
