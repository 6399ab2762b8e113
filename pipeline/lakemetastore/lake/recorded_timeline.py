"""What a state says of the visibility of files, for the rules by which files become file slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudilake.format.files.names import parse_data_name
from hudilake.format.timeline.timeline import FileGroupId
from lakemetastore.lake.entries import LakeFile, LakeInstant


@dataclass(frozen=True, slots=True)
class RecordedTimeline:
    """The writes of some files: when each completed, and which file groups were replaced."""

    completions: Mapping[str, str]
    groups: Mapping[FileGroupId, str]
    logs_name_base: bool = False

    @classmethod
    def of(cls, instants: Iterable[LakeInstant], files: Iterable[LakeFile]) -> RecordedTimeline:
        """Of a state's instants and the files of a partition. A state has only files of completed writes."""
        parsed = ((parse_data_name(file.name), file.completed) for file in files)
        completions = {name.instant: completed for name, completed in parsed if name is not None}
        ordered = sorted(instants, key=lambda instant: instant.requested)
        return cls(completions, {group: i.requested for i in ordered for group in i.replaced})

    def is_completed(self, requested_time: str) -> bool:
        """Tells whether one of the files was written by that instant: a state has only completed writes."""
        return requested_time in self.completions

    def completion_time(self, requested_time: str) -> str | None:
        """Returns when the write of that requested time completed; None if no file is of it."""
        return self.completions.get(requested_time)

    def replaced(self) -> Mapping[FileGroupId, str]:
        """Returns the replaced file groups, each with the requested time of the write that replaced it."""
        return self.groups
