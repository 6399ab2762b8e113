"""Which commits may be made side by side: against a model of cells, in which the order is tried both ways."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.commit.announced import announcement, intent_extra, intent_of
from hudilake.commit.intent import WHOLE_TABLE, GroupIntent, Intent, conflicts
from hudilake.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudilake.format.timeline.instant import DELTA_COMMIT, Instant, State
from tests.hypothesis_profile import scaled

COLUMNS = ("a", "b", "c")
GROUPS = (("p1", "00000000-x"), ("p1", "00000001-x"), ("p2", "00000000-x"))
LIVING, FRESH = (1, 2, 3), (4, 5)
Row = dict[str, str]
Table = dict[tuple[str, str, int], Row]


@dataclass(frozen=True)
class Step:
    """One write to a row: an insert of a new key, a change of columns of a living row, or its delete."""

    group: tuple[str, str]
    key: int
    columns: tuple[str, ...] | None  # None: a delete

    @property
    def inserts(self) -> bool:
        """Whether the row is new."""
        return self.key in FRESH and self.columns is not None


def _steps(name: str) -> st.SearchStrategy[tuple[str, tuple[Step, ...]]]:
    group = st.sampled_from(GROUPS)
    insert = st.builds(Step, group, st.sampled_from(FRESH), st.just(COLUMNS))
    change = st.builds(
        Step,
        group,
        st.sampled_from(LIVING),
        st.sets(st.sampled_from(COLUMNS), min_size=1).map(lambda c: tuple(sorted(c))),
    )
    delete = st.builds(Step, group, st.sampled_from(LIVING), st.none())
    steps = st.lists(st.one_of(insert, change, change, delete), max_size=3, unique_by=lambda s: (s.group, s.key))
    return st.tuples(st.just(name), steps.map(tuple))


def _applied(table: Table, writer: str, steps: tuple[Step, ...]) -> Table:
    """What readers see: a full row replaces, a partial row changes a living row, a delete removes."""
    after = {place: dict(row) for place, row in table.items()}
    for step in steps:
        place = (*step.group, step.key)
        if step.columns is None:
            after.pop(place, None)
        elif step.inserts:
            after[place] = dict.fromkeys(COLUMNS, writer)
        elif place in after:
            after[place].update(dict.fromkeys(step.columns, writer))
    return after


def _intent(writer: str, steps: tuple[Step, ...]) -> Intent:
    def of(step: Step) -> GroupIntent:
        changed = frozenset[str]() if step.columns is None or step.inserts else frozenset(step.columns)
        return GroupIntent(*step.group, changed, step.inserts, step.columns is None)

    return Intent.of_groups(map(of, steps)).at(writer)


@settings(max_examples=scaled(300))
@given(_steps("one"), _steps("two"), st.sampled_from(["row", "column"]))
def test_what_passes_gives_one_table_in_either_order(
    one: tuple[str, tuple[Step, ...]], two: tuple[str, tuple[Step, ...]], policy: str
) -> None:
    start: Table = {(*group, key): dict.fromkeys(COLUMNS, "start") for group in GROUPS for key in LIVING}
    mine, theirs = _intent(*one), _intent(*two)
    found = conflicts(mine, [theirs], policy)  # type: ignore[arg-type]
    assert (found is None) == (conflicts(theirs, [mine], policy) is None)  # type: ignore[arg-type]
    if found is None:
        assert _applied(_applied(start, *one), *two) == _applied(_applied(start, *two), *one)
    apart = not {step.group for step in one[1]} & {step.group for step in two[1]}
    if apart or not (one[1] and two[1]):
        assert found is None
    elif policy == "row":
        assert found is not None


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        (GroupIntent("", "0", frozenset("a"), False, False), GroupIntent("", "0", frozenset("b"), False, False), False),
        (GroupIntent("", "0", frozenset("a"), False, False), GroupIntent("", "0", frozenset("ab"), False, False), True),
        (GroupIntent("", "0", frozenset("a"), False, False), GroupIntent("", "0", None, False, False), True),
        (GroupIntent("", "0", frozenset(), True, False), GroupIntent("", "0", None, False, False), False),
        (GroupIntent("", "0", frozenset("a"), True, False), GroupIntent("", "0", frozenset("b"), False, False), False),
        (GroupIntent("", "0", frozenset("a"), True, False), GroupIntent("", "0", frozenset("b"), True, False), True),
        (GroupIntent("", "0", frozenset("a"), False, True), GroupIntent("", "0", frozenset("b"), False, False), True),
        (GroupIntent("", "0"), GroupIntent("", "1"), False),
        (GroupIntent("p", "0"), GroupIntent("", "0"), False),
    ],
)
def test_columns(mine: GroupIntent, theirs: GroupIntent, conflict: bool) -> None:
    found = conflicts(Intent.of_groups([mine]), [Intent.of_groups([theirs])], "column")
    assert (found is not None) is conflict


def test_two_names_of_one_bucket_meet() -> None:
    """Hudi names a file group by chance, binlake by its place: two groups for one bucket would be a broken table."""
    mine = Intent.of_groups([GroupIntent("", "00000003-aaaa", frozenset(), True, False)])
    theirs = Intent.of_groups([GroupIntent("", "00000003-bbbb", frozenset("a"), False, False)])
    assert conflicts(mine, [theirs], "column") is not None


def test_the_whole_table_and_the_queue_meet_everything() -> None:
    one, other = Intent.of_groups([GroupIntent("", "0")]), Intent.of_groups([GroupIntent("", "1")])
    assert conflicts(one, [other], "row") is None
    assert conflicts(one, [other], "queue") is not None
    for pair in ((one, WHOLE_TABLE), (WHOLE_TABLE, one), (Intent(), WHOLE_TABLE)):
        assert conflicts(pair[0], [pair[1]], "column") is not None


@settings(max_examples=scaled(100))
@given(_steps("20240101000000000"), st.booleans())
def test_an_intent_is_read_back_as_it_was_written(written: tuple[str, tuple[Step, ...]], whole: bool) -> None:
    intent = Intent.of_groups(_intent(*written).groups, whole=whole).at(written[0])
    instant = Instant(written[0], DELTA_COMMIT, State.INFLIGHT)
    assert intent_of(instant, CommitMetadata.from_bytes(announcement(intent), instant.path)) == intent


def test_a_commit_without_the_key_writes_whole_rows() -> None:
    """Hudi's commits, ours from before, and ours that write whole rows, which have no key."""
    intent = Intent.of_groups([GroupIntent("p", "0")]).at("1")
    assert intent_extra(intent, {("p", "0")}) == {}
    stats = (WriteStat("p", "0", "p/0.log", "null"), WriteStat("p", "0", "p/1.log", "null"))
    assert intent_of(Instant("1", DELTA_COMMIT, State.COMPLETED, "2"), CommitMetadata(stats)) == intent


def test_a_group_without_a_file_is_said() -> None:
    """A commit that keeps the order of a deleted row writes no file of the group, and decides on it all the same."""
    written, touched = GroupIntent("p", "0"), GroupIntent("p", "1")
    intent = Intent.of_groups([written, touched]).at("1")
    completed = CommitMetadata((WriteStat("p", "0", "p/0.log", "null"),), intent_extra(intent, {("p", "0")}))
    read = intent_of(Instant("1", DELTA_COMMIT, State.COMPLETED, "2"), completed)
    assert read == intent
    assert conflicts(Intent.of_groups([GroupIntent("p", "1", frozenset("a"), False, False)]), [read], "column")
