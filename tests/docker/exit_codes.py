"""The exit codes of the error tree, and which of them a supervisor answers by a new start.

It stands alone: every supervisor's test asks it.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudilake.errors import LakeError, LostOwnershipError, TransientError


def _classes(base: type[LakeError]) -> Iterator[type[LakeError]]:
    yield base
    for derived in base.__subclasses__():
        yield from _classes(derived)


RESTART = frozenset({LostOwnershipError.exit_code, TransientError.exit_code})
#: What waits for a person: the other classes, and ``binlake verify``'s 81 for tables that it could not compare.
PERSON = frozenset({81} | {one.exit_code for one in _classes(LakeError)}) - RESTART
