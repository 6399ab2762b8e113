"""What a writer of a log must know.

It stands alone: ``writer`` and ``versioned`` both raise them.
"""

from __future__ import annotations

from hudilake.errors import CommitUnknownError, LostOwnershipError, TransientError


class ConflictError(LostOwnershipError):
    """An entry since the version that a change was made for concerns the same file groups and columns."""


class CrowdedError(TransientError):
    """Other writers were first each time, for as long as a commit may take. Nothing was written."""


class LogOutcomeUnknownError(CommitUnknownError):
    """The store gave no answer, and nobody knows whether the change was made."""
