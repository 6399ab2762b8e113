"""Quarantined cells of wide tables: to replay one is to derive its row again, from the cells that are stored now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from binlake.hbase.derive.derivation import Deriver
from binlake.hbase.derive.faults import cells_topic
from binlake.hbase.derive.pairs import derived_pairs
from binlake.hbase.derive.run import portions
from binlake.load.replay.quarantine_records import QuarantineEntry, ReplayResult
from binlake.settings import Settings
from hudilake.clock import now_ms
from hudilake.errors import LakeError


def derive_again(
    deriver: Deriver, settings: Settings, entries: Sequence[QuarantineEntry], done: ReplayResult
) -> list[QuarantineEntry]:
    """Derive the rows of quarantined cells again; returns the entries that have changed.

    A cell that has no place again is quarantined again, with its new reason. Entries of a wide table that the settings
    do not derive any more stay. ``done``: takes the counts, and the errors of tables.
    """
    changed: list[QuarantineEntry] = []
    for pair in derived_pairs(settings):
        mine = [held for held in entries if held.topic == cells_topic(pair.cells)]
        rows = pa.array(sorted({held.key.decode() for held in mine if held.key is not None}), pa.string())
        try:
            derived = deriver.derive_rows(pair, portions(rows)) if mine else None
        except LakeError as error:
            done.errors[str(pair.wide)] = error
            continue
        if derived is None:
            continue
        well = [held for held in mine if (held.partition, held.offset) not in derived.entries]
        done.applied += len(well)
        done.failed += len(mine) - len(well)
        done.commits.setdefault(str(pair.wide), []).extend(derived.instants)
        instant = derived.instants[-1] if derived.instants else None
        changed += [held.replayed(now_ms(), instant, str(pair.wide)) for held in well]
    return changed


def derive_after(deriver: Deriver, settings: Settings, written: Iterable[str], done: ReplayResult) -> None:
    """Derive the wide tables of the tables of cells that took records. ``done``: takes the errors of tables."""
    names = set(written)
    for pair in derived_pairs(settings):
        if str(pair.cells) in names:
            try:
                derived = deriver.derive(pair)
            except LakeError as error:  # the stream derives what is missing
                done.errors[str(pair.wide)] = error
            else:
                done.commits.setdefault(str(pair.wide), []).extend(derived.instants)
