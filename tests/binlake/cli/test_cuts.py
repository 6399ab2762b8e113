"""``binlake cuts`` and ``binlake query --at``: in the recorded bank each account knows of its transfers at every place
that is given, and not at a mixture of two."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.position.waymarks import Way
from binlake.settings import Settings
from hudilake import open_table
from hudilake.errors import ConfigError
from hudilake.policies import RetentionPolicy
from tests.binlake.load.replay.dumped import HOUR, as_json, replay, write
from tests.binlake.stream.test_transactions import Bank, ends, recorded

#: Transfers that an account does not know of yet, and accounts that know of a later one. A transaction changes two
#: accounts and then adds the transfer, all within 700 bytes of the binlog, so within 700 of their order; later changes
#: of an account have greater orders.
WRONG = """
select (
    select count(*) from bank.transfers t join bank.accounts a on a.id = t.src or a.id = t.dst
    where a._binlake_order + 700 < t._binlake_order
) + (
    select count(*) from bank.accounts where _binlake_order > (select max(_binlake_order) from bank.transfers)
) as n
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bank")
    bank = Bank(place / "lake", whole=True)
    for end in ends(Random(3), 9):
        bank.batch(end)
    bank.runner.close()
    return written(place / "bank.yaml", bank)


def written(path: Path, bank: Bank) -> Path:
    document = bank.settings.model_dump(mode="json", exclude_unset=True)
    document["lake"]["options"] = {"fsync": "false"}  # the dump hides the values
    path.write_text(json.dumps(document))
    return path


def binlake(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def wrong(conf: Path, *more: str) -> int:
    done = binlake("query", "--conf", conf, WRONG, "--format", "json", *more)
    return int(json.loads(done.stdout.splitlines()[0])["n"])


@pytest.mark.full
def test_all_tables_are_read_at_one_place(conf: Path) -> None:
    cuts = [json.loads(line) for line in binlake("cuts", conf, "--json").stdout.splitlines()]
    assert len(cuts) >= 6
    assert len({cut["completed"] for cut in cuts}) == len(cuts)
    for cut in cuts:
        assert wrong(conf, "--at", cut["completed"]) == 0
        if cut["transaction"] is not None:
            assert wrong(conf, "--at", cut["transaction"]) == 0
    assert sum(cut["transaction"] is not None for cut in cuts) >= 5
    shown = binlake("query", "--conf", conf, "select count(*) from bank.accounts", "--at", cuts[2]["completed"])
    assert f"as of {cuts[2]['completed']}" in shown.stderr
    assert f"{len(cuts)} cuts" in binlake("cuts", conf).stdout


@pytest.mark.full
def test_the_current_versions_at_a_place_are_the_rows_there(tmp_path: Path) -> None:
    """The control: some version is a former one at each place behind the first."""
    bank = Bank(tmp_path / "lake", True, {"history": [{"table": "bank.accounts", "to": "bank.accounts_h"}]})
    for end in ends(Random(3), 5):
        bank.batch(end)
    bank.runner.close()
    conf = written(tmp_path / "bank.yaml", bank)
    binlake("tag", "create", conf, "kept")
    cuts = [json.loads(line)["completed"] for line in binlake("cuts", conf, "--json").stdout.splitlines()]
    assert len(cuts) >= 3
    rows, old = "select id, balance from bank.accounts", "from bank.accounts_h where"
    now = f"select id, balance {old} is_current"
    sql = f"select (select count(*) from (({rows} except {now}) union all ({now} except {rows}))) as differing, "
    sql += f"(select count(*) from bank.accounts) as n, (select count(*) {old} not is_current) as former"
    seen = []
    for place in (*cuts, "kept"):
        done = binlake("query", "--conf", conf, sql, "--format", "json", "--at", place)
        seen.append(json.loads(done.stdout.splitlines()[0]))
    assert {one["differing"] for one in seen} == {0}
    assert all(one["n"] for one in seen)
    assert sorted(one["former"] for one in seen)[-1] > seen[0]["former"]


@pytest.mark.full
def test_rows_of_a_dump_from_beyond_the_stream_belong_to_no_cut_until_it_has_passed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, dumps = Bank(tmp_path / "lake", True), tmp_path / "dumps"
    first, later = ends(Random(3), 9)[:3], ends(Random(3), 9)[3:]
    for end in first:
        bank.batch(end)
    bank.runner.close()
    dumped = [
        (topic, partition, int(r.offsets[i]), int(r.timestamps_ms[i]), r.keys[i], r.values[i])
        for (topic, partition), r in recorded().items()
        for i in range(len(r) if topic.endswith(".accounts") else 0)
    ]
    write(dumps, "accounts", HOUR, "a.jsonl", as_json(dumped))
    dump = {"uri": str(dumps), "options": {"fsync": "false"}, "path": "{database}.{table}/dt={date}/hour={hour}/*"}
    document = json.loads(written(tmp_path / "bank.yaml", bank).read_text()) | {"dump": dump}
    assert len(replay(Settings.parse(json.dumps(document))).taken) == 1
    bank.start()
    for end in later:
        bank.batch(end)
    bank.runner.close()
    conf = written(tmp_path / "bank.yaml", bank)

    def cuts() -> list[str]:
        listed = [json.loads(line) for line in binlake("cuts", conf, "--json").stdout.splitlines()]
        return [cut["completed"] for cut in listed if not cut["missing"]]

    told = cuts()
    assert [wrong(conf, "--at", cut) for cut in told] == [0] * len(told)
    monkeypatch.setattr(Way, "_dumped_beyond", lambda *_: False)  # the control
    every = cuts()
    assert len(told) >= 3
    assert told[-1] == every[-1]  # the stream has passed all
    assert any(wrong(conf, "--at", cut) for cut in every)


def test_a_mixture_of_two_places_is_noticed(conf: Path) -> None:
    """The control: one table at an earlier place than the other."""
    cuts = [json.loads(line) for line in binlake("cuts", conf, "--json").stdout.splitlines()]
    early, late = cuts[1]["commits"], cuts[-1]["commits"]
    [accounts] = [uri for uri in early if uri.endswith("/accounts")]
    [transfers] = [uri for uri in early if uri.endswith("/transfers")]
    for one, other in ((early, late), (late, early)):
        mixed = ("--as-of", f"bank.accounts={one[accounts]}", "--as-of", f"bank.transfers={other[transfers]}")
        assert wrong(conf, *mixed) > 0


def test_what_cannot_be_had_is_refused_with_the_nearest(conf: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the oldest cut is of"):
        wrong(conf, "--at", "2001-01-01")
    with pytest.raises(ConfigError, match="the newest cut ends with"):
        wrong(conf, "--at", "0-1-999999999")
    with pytest.raises(ConfigError, match="exclude each other"):
        wrong(conf, "--at", "2030-01-01", "--as-of", "2030-01-01")
    with pytest.raises(ConfigError, match="of a stream at once"):
        binlake("query", tmp_path, "select 1 from t", "--at", "2030-01-01")
    bank = Bank(tmp_path / "lake", whole=False)
    bank.batch(ends(Random(3), 1)[-1])
    bank.runner.close()
    with pytest.raises(ConfigError, match="transaction_consistent is off"):
        wrong(written(tmp_path / "bank.yaml", bank), "--at", "2030-01-01")
    assert "transaction_consistent is off" in binlake("cuts", tmp_path / "bank.yaml").stdout


@pytest.mark.full
def test_a_tag_keeps_its_cut_against_cleaning(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "lake", whole=True)
    for end in ends(Random(3), 9):
        bank.batch(end)
    bank.runner.close()
    conf = written(tmp_path / "bank.yaml", bank)
    cuts = [json.loads(line) for line in binlake("cuts", conf, "--json").stdout.splitlines()]
    early, other = cuts[1], cuts[2]
    sums = "select (select count(*) from bank.transfers), (select sum(_binlake_order) from bank.accounts)"
    before = binlake("query", "--conf", conf, sums, "--format", "json", "--at", early["completed"]).stdout
    binlake("tag", "create", conf, "quarter.1", "--at", early["completed"])
    binlake("tag", "create", conf, "later", "--at", other["completed"])
    with pytest.raises(ConfigError, match="such a tag already"):
        binlake("tag", "create", conf, "later")
    with pytest.raises(ConfigError, match="no name of a tag"):
        binlake("tag", "create", conf, "2026-11-24")
    uris = list(early["commits"])
    for uri in uris:
        table = open_table(uri)
        table.compact()
        table.clean(RetentionPolicy(commits=1))
        table.compact()
    assert binlake("query", "--conf", conf, sums, "--format", "json", "--at", "quarter.1").stdout == before
    assert wrong(conf, "--at", "quarter.1") == 0
    listed = [json.loads(line) for line in binlake("tag", "list", conf, "--json").stdout.splitlines()]
    assert [(one["tag"], one["commits"]) for one in listed] == [
        ("later", other["commits"]),
        ("quarter.1", early["commits"]),
    ]
    binlake("tag", "delete", conf, "quarter.1")
    held = {uri: {one.instant for one in open_table(uri).savepoints()} for uri in uris}
    assert held == {uri: {other["commits"][uri]} for uri in uris}
    assert wrong(conf, "--at", "later") == 0
    binlake("tag", "delete", conf, "later")
    assert [open_table(uri).savepoints() for uri in uris] == [[], []]
    with pytest.raises(ConfigError, match="no such tag"):
        binlake("tag", "delete", conf, "later")
    with pytest.raises(ConfigError):
        wrong(conf, "--at", "later")
