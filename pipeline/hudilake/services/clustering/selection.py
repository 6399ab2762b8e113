"""Which file slices a clustering takes, and which of them are laid out together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import ceil
from typing import TypeAlias

from hudilake.format.files.view import FileSlice, first_instant
from hudilake.format.layout.order import recorded_order
from hudilake.format.timeline.commit_metadata import CLUSTER, CommitMetadata
from hudilake.format.timeline.instant import REPLACE_COMMIT, Instant, State
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.table.table import HudiTable

#: Slices of one partition that are laid out together, oldest first.
Taken: TypeAlias = list[FileSlice]


def bytes_of(piece: FileSlice) -> int:
    """Bytes of a slice's files."""
    return piece.base_size + piece.log_size


def selected(table: HudiTable, slices: Iterable[FileSlice], config: ClusteringConfig) -> list[Taken]:
    """The slices to lay out, unit by unit; those that gain most are first if the bytes are bounded.

    Args:
        table: as of its last refresh.
        slices: newest ones, of any partitions.
        config: the settings.

    Raises CorruptDataError, StorageError.
    """
    by_path: dict[str, Taken] = {}
    for piece in slices:
        if any(fnmatchcase(piece.partition_path, pattern) for pattern in config.policy.partitions):
            by_path.setdefault(piece.partition_path, []).append(piece)
    known = LaidOutFiles(table, config)
    chosen = (_of_partition(by_path[path], config, known) for path in sorted(by_path))
    units = [unit for pieces in chosen for unit in _cut(pieces, config) if _gains(unit, config, known)]
    return _bounded(units, config, known)


@dataclass
class LaidOutFiles:
    """Which file slices a clustering has laid out in the wanted order.

    Args:
        table: as of its last refresh.
        config: says the order.
    """

    table: HudiTable
    config: ClusteringConfig
    _instants: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, piece: FileSlice) -> bool:
        return piece.base_file is not None and not piece.log_files and self._laid_out(piece.base_file.name.instant)

    def _laid_out(self, instant: str) -> bool:
        if instant not in self._instants:
            body = self._commit(instant)
            clusters = body is not None and body.operation == CLUSTER
            self._instants[instant] = clusters and recorded_order(body.extra if body else {}) == self.config.order
        return self._instants[instant]

    def _commit(self, instant: str) -> CommitMetadata | None:
        """The replacecommit of that requested time; None for any other instant."""
        timeline = self.table.timeline
        known = timeline.find(instant)
        if known is not None:
            return timeline.commit_metadata(known) if known.completed and known.action == REPLACE_COMMIT else None
        data = timeline.history().metadata(instant)
        return CommitMetadata.from_bytes(data, Instant(instant, REPLACE_COMMIT, State.REQUESTED).path) if data else None


def _of_partition(pieces: Taken, config: ClusteringConfig, known: LaidOutFiles) -> Taken:
    """What is taken of a partition."""
    if config.policy.select == "small":
        return [piece for piece in pieces if bytes_of(piece) < config.sizes.small_bytes]
    if config.policy.select == "changed" and all(piece in known for piece in pieces):
        return []
    return pieces


def _cut(pieces: Taken, config: ClusteringConfig) -> Iterator[Taken]:
    """Units of about equal size, of slices that began one after the other."""
    total = sum(map(bytes_of, pieces))
    share = total / ceil(total / config.policy.group_bytes) if total else 1
    unit: Taken = []
    for piece in sorted(pieces, key=lambda piece: (first_instant(piece), piece.file_id)):
        if unit and sum(map(bytes_of, unit)) + bytes_of(piece) / 2 > share:
            yield unit
            unit = []
        unit.append(piece)
    if unit:
        yield unit


def _gains(unit: Taken, config: ClusteringConfig, known: LaidOutFiles) -> bool:
    """Whether files would become better: other rows in them, or fewer or more of them."""
    if all(piece in known for piece in unit):
        return False
    return config.order is not None or len(unit) != config.outputs(sum(map(bytes_of, unit)))


def _bounded(units: Sequence[Taken], config: ClusteringConfig, known: LaidOutFiles) -> list[Taken]:
    """Returns the units that gain most, up to the bound on bytes, and at least one; all units without a bound."""
    most = config.policy.max_io_bytes
    if most is None:
        return list(units)

    def gain(unit: Taken) -> int:
        return sum(bytes_of(piece) for piece in unit if piece not in known)

    chosen: list[Taken] = []
    total = 0
    for unit in sorted(units, key=gain, reverse=True):
        total += sum(map(bytes_of, unit))
        if chosen and total > most:
            break
        chosen.append(unit)
    return chosen
