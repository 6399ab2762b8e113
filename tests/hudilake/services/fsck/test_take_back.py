"""Nothing that a repair removes is lost: what may still be needed stays, the rest is put back byte by byte."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.clock import now_ms
from hudilake.errors import ConfigError, CorruptDataError, UnsupportedError
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.fsck import Repair, Severity
from hudilake.services.kept import take_back
from hudilake.services.repair import RepairPlan, RepairStep, plan_repair, repair
from hudilake.services.savepoint import create_savepoint
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.failing_storage import Killed
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.fsck.tables import age, logs, make_plain, report, rows, rs_rows, told
from tests.hudilake.services.fsck.test_files import FUTURE, PAST, renamed
from tests.hudilake.services.fsck.test_repair import CHANGES, INDEXED, PLAIN, Damage, begin, half_written, mend
from tests.hypothesis_profile import scaled

Files = dict[str, bytes]
TIMELINE = ".hoodie/timeline"


def files(path: Path) -> Files:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def still_there(path: Path, before: Files) -> bool:
    """Whether every file of before is where it was, or kept, with the same bytes."""
    kept = list((path / ".hoodie/.repairs").glob("*"))
    for name, body in before.items():
        places = [path / name, *(folder / "was" / f"{name}.kept" for folder in kept)]
        if not any(place.is_file() and place.read_bytes() == body for place in places):
            return False
    return True


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_a_repair_of_a_plain_table_is_taken_back(plain: Path, number: int) -> None:
    _taken_back(plain, PLAIN[number])


@pytest.mark.first(5)
@pytest.mark.parametrize("number", range(len(INDEXED)))
def test_a_repair_of_an_indexed_table_is_taken_back(indexed: Path, number: int) -> None:
    _taken_back(indexed, INDEXED[number])


def _taken_back(path: Path, damage: Damage) -> None:
    damage(path)
    age(path)
    before = files(path)
    *_, last = mend(path)
    assert "--take-back" in last
    assert still_there(path, before)
    assert take_back(lake.storage_at(path)).endswith(("file is as it was", "files are as they were"))
    assert files(path) == before


@pytest.mark.parametrize("damage", [begin, PLAIN[4]])
def test_a_repair_that_died_is_taken_back(plain: Path, tmp_path: Path, damage: Damage) -> None:
    damage(plain)
    age(plain)
    plan, before = plan_repair(report(plain).findings), files(plain)
    control = shutil.copytree(plain, tmp_path / "control")
    age(control)
    counting = Counting(lake.storage_at(control))
    list(repair(counting, plan))
    changing = [n for n, (method, _) in enumerate(counting.calls) if method in CHANGES]
    for at in changing:
        path = shutil.copytree(plain, tmp_path / f"at{at}")
        age(path)
        with pytest.raises(Killed):
            list(repair(Dying(lake.storage_at(path), at=at, before=at % 2 == 0), plan))
        assert still_there(path, before)
        if (path / ".hoodie/.repairs").exists():
            take_back(lake.storage_at(path))
        assert files(path) == before


def test_a_table_that_was_written_to_since_is_not_taken_back_as_a_whole(plain: Path) -> None:
    stray = renamed(logs(plain)[0], FUTURE)
    mend(plain)
    lake.commit(HudiTable.open(lake.storage_at(plain)), lake.upserts([1], 99))
    with pytest.raises(ConfigError, match="written to after its repair") as raised:
        take_back(lake.storage_at(plain))
    folder = raised.value.do_next.split()[-3]
    assert (plain / folder / f"{stray.relative_to(plain)}.kept").exists()
    assert not stray.exists()


def test_two_repairs_are_taken_back_the_newest_first(plain: Path) -> None:
    strays = []
    for instant in (FUTURE, "20990101000000001"):
        strays.append(renamed(logs(plain)[0], instant))
        mend(plain)
    assert [stray.exists() for stray in strays] == [False, False]
    take_back(lake.storage_at(plain))
    assert [stray.exists() for stray in strays] == [False, True]
    take_back(lake.storage_at(plain))
    assert [stray.exists() for stray in strays] == [True, True]
    with pytest.raises(ConfigError, match="no repair"):
        take_back(lake.storage_at(plain))


def test_a_repair_by_a_clock_that_is_behind_is_taken_back_first(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = renamed(logs(plain)[0], FUTURE)
    mend(plain)
    second, before = renamed(logs(plain)[0], "20990101000000001"), now_ms()
    age(plain)
    monkeypatch.setattr("hudilake.clock.now_ms", lambda: before - 1_800_000)
    mend(plain)
    take_back(lake.storage_at(plain))
    assert [stray.exists() for stray in (first, second)] == [False, True]


def test_readers_do_not_see_what_is_kept_and_fsck_tells_it(indexed: Path) -> None:
    before = rows(indexed), rs_rows(indexed)
    shutil.rmtree(indexed / METADATA_PATH / "column_stats")
    mend(indexed)
    assert (rows(indexed), rs_rows(indexed)) == before
    found = [f for f in report(indexed).findings if "earlier repair" in f.what]
    assert [f.severity for f in found] == [Severity.INFO]


@pytest.mark.parametrize(
    ("name", "value"),
    [("hoodie.table.version", "6"), ("hoodie.table.base.file.format", "LANCE"), ("hoodie.table.cdc.enabled", "true")],
)
def test_a_healthy_table_of_another_format_is_not_touched(plain: Path, name: str, value: str) -> None:
    file = plain / ".hoodie/hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name}=")]
    file.write_text("\n".join([*lines, f"{name}={value}", ""]))
    stray = renamed(logs(plain)[0], FUTURE)
    before = files(plain)
    with pytest.raises(UnsupportedError, match=f"{name} is {value}"):
        mend(plain)
    steps = (RepairStep(Repair.MOVE_FILE, str(stray.relative_to(plain))),)
    with pytest.raises(UnsupportedError, match=f"{name} is {value}"):
        list(repair(lake.storage_at(plain), RepairPlan(steps)))
    assert files(plain) == before


def _lose_all_instants(path: Path) -> None:
    for file in (path / TIMELINE).glob("2*"):
        file.unlink()


def _lose_the_newest(path: Path) -> None:
    newest = sorted((path / TIMELINE).glob("*_*"))[-1].name[:17]
    for file in (path / TIMELINE).glob(f"{newest}*"):
        file.unlink()


def _older_layout(path: Path) -> None:
    """The completed files are where, and as, layout 1 has them."""
    for file in list((path / TIMELINE).iterdir()):
        if "_" in file.name:
            instant, _, tail = file.name.partition("_")
            file.rename(path / ".hoodie" / f"{instant}.{tail.partition('.')[2]}")
        elif file.is_file():
            file.unlink()


def _unreadable_history(path: Path) -> None:
    _archived(path)
    for file in (path / TIMELINE / "history").glob("*.parquet"):
        file.write_bytes(b"PAR1")
    renamed(logs(path)[0], FUTURE)


def _unreadable_commit(path: Path) -> None:
    (path / sorted((path / TIMELINE).glob("*_*"))[0].relative_to(path)).write_bytes(b"Obj")
    renamed(logs(path)[0], FUTURE)


def _archived(path: Path) -> None:
    """The oldest commit is in the archived timeline alone."""
    completed = HudiTable.open(lake.storage_at(path)).timeline.completed()[0]
    body = (path / completed.path).read_bytes()
    assert completed.completion_time is not None
    lake.write_history(path, {completed.requested_time: completed.completion_time}, {completed.requested_time: body})
    for file in (path / TIMELINE).glob(f"{completed.requested_time}*deltacommit*"):
        file.unlink()


def _lost_history(path: Path) -> None:
    _archived(path)
    shutil.rmtree(path / TIMELINE / "history")


@pytest.mark.parametrize(
    "lose",
    [
        _lose_all_instants,
        _older_layout,
        _unreadable_history,
        _unreadable_commit,
        _lost_history,
    ],
)
def test_with_a_timeline_in_part_no_data_file_is_moved_and_errors_are_told(
    plain: Path, lose: Callable[[Path], None]
) -> None:
    lose(plain)
    age(plain)
    data = {name: (plain / name).read_bytes() for name in lake.data_files(plain)}
    assert any(f.severity is Severity.ERROR and f.path in data for f in told(plain))
    mend(plain)
    assert {name: (plain / name).read_bytes() for name in lake.data_files(plain)} == data


def test_a_commit_that_only_the_metadata_table_knows_keeps_its_files(indexed: Path) -> None:
    _lose_the_newest(indexed)
    age(indexed)
    data = lake.data_files(indexed)
    lost = [f for f in told(indexed) if "the timeline lacks it" in f.what]
    assert lost
    assert {f.severity for f in lost} == {Severity.ERROR}
    assert not {f.repair for f in lost} & {Repair.MOVE_FILE}
    mend(indexed)
    assert set(data) <= set(lake.data_files(indexed))


def test_archived_commits_and_savepoints_keep_their_files(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    create_savepoint(table, table.timeline.completed()[0].requested_time, "me")
    _archived(plain)
    stray = renamed(logs(plain)[0], FUTURE)
    data = set(lake.data_files(plain)) - {str(stray.relative_to(plain))}
    assert mend(plain)
    assert set(lake.data_files(plain)) == data


def test_a_file_that_a_savepoint_holds_stays(plain: Path) -> None:
    """The savepoint's commit is lost."""
    table = HudiTable.open(lake.storage_at(plain))
    newest = table.timeline.completed()[-1]
    create_savepoint(table, newest.requested_time, "me")
    for file in (plain / TIMELINE).glob(f"{newest.requested_time}*deltacommit*"):
        file.unlink()
    age(plain)
    assert any("a savepoint holds it" in f.what for f in told(plain))
    data = lake.data_files(plain)
    mend(plain)
    assert lake.data_files(plain) == data


@pytest.mark.full
def test_random_plants_lose_nothing_and_are_taken_back(tmp_path: Path) -> None:
    """Stray, missing, cut and renamed files: a repair loses no byte, moves no file of a commit, and can be undone."""
    source = make_plain(tmp_path / "source")
    age(source)
    rng, done = random.Random(26), 0
    for number in range(scaled(400, divisor=8)):
        path = shutil.copytree(source, tmp_path / str(number))
        for _ in range(rng.randint(1, 3)):
            _plant(path, rng)
        age(path)
        before = files(path)
        named = _named_by_commits(path) & before.keys()
        done += bool(mend(path))
        after = files(path)
        assert still_there(path, before), number
        assert all(after.get(name) == before[name] for name in named), number
        if (path / ".hoodie/.repairs").exists():
            take_back(lake.storage_at(path))
        assert files(path) == before, number
        shutil.rmtree(path)
    assert done > 10


def _named_by_commits(path: Path) -> set[str]:
    """The files of every commit that can be read."""
    named, timeline = set(), Timeline.load(lake.storage_at(path))
    for instant in timeline.completed():
        with contextlib.suppress(CorruptDataError):
            named |= {stat.path for stat in timeline.commit_metadata(instant).stats}
    return named


def _plant(path: Path, rng: random.Random) -> None:
    """One change of the files that a repair may meet."""
    log = rng.choice(logs(path)) if logs(path) else None
    instant = rng.choice([FUTURE, PAST, "20240229123456789", f"{rng.randrange(10**17):017d}"])
    match rng.randrange(9):
        case 0 | 1 if log is not None and instant not in log.name:
            renamed(log, instant)
        case 2 if log is not None:
            log.unlink()
        case 3 if log is not None:
            log.write_bytes(log.read_bytes()[: rng.randrange(40)])
        case 4:
            with contextlib.suppress(CorruptDataError):  # an earlier plant emptied a commit
                begin(path)
        case 5:
            half_written(path)
        case 6:
            marker = path / f".hoodie/.temp/{instant}/day=d1/x.marker.CREATE"
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_bytes(b"")
        case 7:
            (path / rng.choice(["day=d1", "day=d2"]) / ".hoodie_partition_metadata").unlink(missing_ok=True)
        case _:
            newest = sorted((path / TIMELINE).glob("*_*.deltacommit"))[-1]
            if rng.randrange(2):
                newest.write_bytes(b"")
            else:
                newest.unlink()
