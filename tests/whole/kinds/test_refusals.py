"""Operations that some kinds of tables do not have: refused with the reason that the code states, else done right."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import KnownIndex, TableKind
from hudilake.format.definition.kind_support import KindRefusal, TableOperation
from hudilake.table.table import HudiTable
from tests.hudilake.lake import ORDER, SCHEMA, storage_at
from tests.hypothesis_profile import is_nightly
from tests.paths import ROOT
from tests.whole.kinds import works
from tests.whole.kinds.cells import APPENDS, INDEXES, KINDS, NO_KIND, TYPES, Kind

#: A usual run takes one of so many cells, a nightly run takes all.
_STEP = 1 if is_nightly() else 9
ASKED = [(kind, operation) for operation in works.ASKED for kind in (*KINDS, *APPENDS)]
FED = [(kind, operation) for operation in works.WITH_EVENTS for kind in KINDS]
TOLD = [(kind, operation) for operation in works.OF_STATEMENTS for kind in KINDS]


def stated(kind: Kind, operation: TableOperation) -> KindRefusal | None:
    return TableKind(kind.type, kind.index).refusal(operation)


@pytest.mark.first(2)
@pytest.mark.parametrize(("kind", "operation"), ASKED[::_STEP], ids=str)
def test_refused_or_done(tmp_path: Path, kind: Kind, operation: TableOperation) -> None:
    bank, why = works.bank_of(tmp_path, kind.rules), stated(kind, operation)
    if why is None:
        assert works.ASKED[operation](bank) == []
    else:
        with pytest.raises(UnsupportedError) as raised:
            works.ASKED[operation](bank)
        assert why.why in raised.value.what
    assert works.wrong(bank) == []


@pytest.mark.first(2)
@pytest.mark.parametrize(("kind", "operation"), FED[::_STEP], ids=str)
def test_every_kind_has_it(tmp_path: Path, kind: Kind, operation: str) -> None:
    bank = works.bank_of(tmp_path, kind.rules)
    assert works.WITH_EVENTS[operation](bank) == []
    assert works.wrong(bank) == []


@pytest.mark.first(3)
@pytest.mark.parametrize(("kind", "operation"), TOLD[::_STEP], ids=str)
def test_statements_leave_indexes_right(tmp_path: Path, kind: Kind, operation: str) -> None:
    assert works.OF_STATEMENTS[operation](*works.followed(tmp_path, kind.rules)) == []


@pytest.mark.parametrize("kind", KINDS[::_STEP], ids=str)
def test_another_key(tmp_path: Path, kind: Kind) -> None:
    """Where it is refused, nothing of the table has changed, and rows that come later are in the quarantine."""
    source, follower = works.followed(tmp_path, kind.rules)
    before, why = follower.stored("t"), stated(kind, TableOperation.KEY_CHANGE)
    if why is None:
        assert works.another_key(source, follower) == []
        return
    with pytest.raises(UnsupportedError) as raised:
        works.another_key(source, follower)
    assert why.why in raised.value.what
    assert follower.stored("t") == before


def test_a_kind_that_hudi_does_not_have_is_refused_everywhere(tmp_path: Path) -> None:
    """In the settings, when a table is made, and when one that is there is opened (``test_supported``)."""
    with pytest.raises(ConfigError, match=r"consistent_bucket.*merge_on_read alone"):
        works.bank_of(tmp_path, NO_KIND.rules)
    config = TableConfig("t", ("id",), ORDER, 2, kind=TableKind(NO_KIND.type, NO_KIND.index))
    with pytest.raises(UnsupportedError, match="no hash rings"):
        HudiTable.create(storage_at(tmp_path / "t"), config, SCHEMA)
    assert not (tmp_path / "t/.hoodie").exists()


def test_the_documentation_has_the_same_cells() -> None:
    """The table in ``docs/tables.md``: each operation, and what each group of indexes makes of it."""
    text = (ROOT / "docs/tables.md").read_text().split("## What each kind has")[1].split("\n## ")[0]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    looked_up = tuple(index for index in INDEXES if "bucket" not in index)
    groups: tuple[tuple[KnownIndex, ...], ...] = (("bucket",), ("consistent_bucket",), looked_up, ("none",))
    told = {operation: cells for operation, *cells in lines[2:]}
    assert told == {str(o): [_cell(o, group) for group in groups] for o in TableOperation}


def _cell(operation: TableOperation, indexes: tuple[KnownIndex, ...]) -> str:
    """What all of these indexes have of an operation; what an external one lacks is said."""
    if "external" in indexes and len(indexes) > 1:
        others = _cell(operation, tuple(index for index in indexes if index != "external"))
        return others if _cell(operation, ("external",)) == others else f"{others}, not `external`"
    kinds = [Kind(type_, index) for type_ in TYPES for index in indexes if Kind(type_, index) != NO_KIND]
    types = {kind.type for kind in kinds}
    had = {(kind.type, stated(kind, operation) is None) for kind in kinds}
    words = {type_ for type_, has in had if has}
    assert len(had) == len(types), (operation, indexes)
    return "yes" if words == types else "refused" if not words else words.pop()
