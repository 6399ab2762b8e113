"""What two states of one table say otherwise.

It stands alone: ``check`` and ``lake_tables`` both compare states by it.
"""

from __future__ import annotations

from hudilake.wording import counted
from lakemetastore.lake.entries import LakeInstant
from lakemetastore.lake.state import LakeState


def differences(mine: LakeState, fresh: LakeState) -> list[str]:
    """What a state says otherwise than the table, for people; empty if they are equal."""
    discrepancies = [
        f"instant {key}: {_said(mine.instants.get(key))} for {_said(fresh.instants.get(key))}"
        for key in sorted(mine.instants.keys() | fresh.instants.keys())
        if mine.instants.get(key) != fresh.instants.get(key)
    ]
    for path in sorted(mine.files.keys() | fresh.files.keys()):
        if mine.files.get(path) != fresh.files.get(path):
            ours, theirs = ({file.name: file for file in s.stored(path)} for s in (mine, fresh))
            wrong = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            discrepancies.append(
                f"partition {path or '(the root)'}: {counted(len(wrong), 'file', 'differs', 'differ')}, "
                f"such as {wrong[0]}"
            )
    names = [name for name in ("uri", "identity", "indexed", "texts") if getattr(mine, name) != getattr(fresh, name)]
    if mine.schemas() != fresh.schemas():
        names.append("schema history")
    return [*discrepancies, *(f"{name} differs" for name in names)]


def _said(instant: LakeInstant | None) -> str:
    return "nothing" if instant is None else f"{instant.state} {instant.completed}".strip()
