"""What Hudi's remote file system view asks for, as its client asks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from hudilake.format.files.view import first_instant, slices_of_partition
from hudilake.format.timeline.instant import Instant, State
from hudilake.read import TableReader
from hudilake.storage import open_storage
from lakemetastore.http.hudi_view import BASE, timeline_hash, view_instants
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.read.lakes import ids, new_table, row
from tests.judges.hudi_spark import HudiSpark
from tests.lakemetastore.http.served import serving


@pytest.fixture
def table(tmp_path: Path) -> IndexedTable:
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(20)])
    table.compact()
    table.write([row(key, 2) for key in range(10)])
    return table


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving([open_storage(str(tmp_path))]) as found:
        yield found


def known_hash(table: IndexedTable) -> str:
    timeline = table.table.timeline
    return timeline_hash(view_instants([*timeline.pending(), *timeline.completed_actions(("deltacommit", "commit"))]))


def ask(address: str, table: IndexedTable, path: str, **fields: str) -> tuple[int, Any]:
    """A request of Hudi's client: it names the table by its plain path, and the hash of the timeline that it knows."""
    fields = {"basepath": str(table.path), "timelinehash": known_hash(table), **fields}
    answer = urllib3.request("GET", address + BASE + path, fields=fields, retries=False)
    return answer.status, json.loads(answer.data)


def test_the_hash_is_that_of_hudis_client() -> None:
    """As Hudi Spark 1.2.0 sent it for a timeline of one deltacommit, and for an empty one."""
    one = Instant("20261123035357023", "deltacommit", State.COMPLETED, "20261123035400000")
    assert timeline_hash([one]) == "09d8eb6949943f715af0bc8e2653d574a358db0e48a90911e793d4fed25e4f61"
    assert timeline_hash([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_slices_and_base_files_of_a_partition(table: IndexedTable, address: str) -> None:
    partition, timeline = "part=p1", table.table.timeline
    expected = slices_of_partition(partition, table.storage.list(partition), timeline)
    later = {"partition": partition, "maxinstant": "29990101000000000"}
    status, found = ask(address, table, "/slices/merged/beforeoron/latest/", **later)
    assert status == 200
    assert [(s["fileId"], s["baseInstant"]) for s in found] == [(s.file_id, first_instant(s)) for s in expected]
    logs = [[log["path"] for log in s["logFiles"]] for s in found]
    assert logs == [[f"{table.path}/{log.path}" for log in s.log_files] for s in expected]
    _, files = ask(address, table, "/datafiles/beforeoron/latest/", **later)
    bases = [s.base_file for s in expected if s.base_file is not None]
    assert [(f["fullPath"], f["fileLen"]) for f in files] == [(f"{table.path}/{b.path}", b.size) for b in bases]
    _, one = ask(address, table, "/datafile/latest/partition", partition=partition, fileid=bases[0].name.file_id)
    assert one == files[:1]
    assert ask(address, table, "/compactions/pending/") == (200, [])


def test_what_hudis_own_view_must_answer_is_refused(table: IndexedTable, address: str) -> None:
    path, partition = "/slices/merged/beforeoron/latest/", "part=p1"
    assert ask(address, table, path, partition=partition)[0] == 200
    assert ask(address, table, path, partition=partition, timelinehash="0" * 64)[0] == 404
    first = table.table.timeline.completed()[0].requested_time
    assert ask(address, table, path, partition=partition, maxinstant=first)[0] == 404
    assert ask(address, table, "/filegroups/all/partition/", partition=partition)[0] == 404


def requests_by_route(address: str) -> dict[tuple[str, str], int]:
    """(path, status) -> requests to the view so far."""
    text = urllib3.request("GET", f"{address}/metrics").data.decode()
    lines = re.findall(rf'http_requests_total{{.*route="({BASE}[^"]*)",status="(\d+)"}} (\d+)', text)
    return {(path.removeprefix(BASE), status): int(count) for path, status, count in lines}


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_hudi_writes_by_this_view(table: IndexedTable, address: str, hudi_spark: HudiSpark, tmp_path: Path) -> None:
    """Hudi's readers send no request, its writers do. Rows are right, with a compaction among the commits."""
    host, port = address.removeprefix("http://").split(":")
    view = {
        "hoodie.filesystem.view.type": "REMOTE_FIRST",
        "hoodie.filesystem.view.remote.host": host,
        "hoodie.filesystem.view.remote.port": port,
    }
    ours = HudiSpark(hudi_spark.session, view).snapshot(str(table.path))
    reader = TableReader.open(str(table.path))
    assert sorted(found["id"] for found in ours) == ids(reader, reader.plan())
    assert requests_by_route(address) == {}
    options = view | {
        "hoodie.embed.timeline.server": "false",
        "hoodie.table.name": "w",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "order",
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    path = str(tmp_path / "w")
    for number in range(3):
        rows = [(key, f"v{number}", f"p{key}", number) for key in (1, 2, 10 + number)]
        frame = hudi_spark.session.createDataFrame(rows, ["id", "text", "part", "order"])
        frame.write.format("hudi").options(**options).mode("append").save(path)
    found = {(one["id"], one["text"]) for one in hudi_spark.snapshot(path)}
    assert found == {(1, "v2"), (2, "v2"), (10, "v0"), (11, "v1"), (12, "v2")}
    answered = requests_by_route(address)
    refused = sum(count for (_, status), count in answered.items() if status != "200")
    print(f"answered: {sum(answered.values()) - refused}, refused: {refused}")
    assert {status for _, status in answered} <= {"200", "404", "422"}
    assert answered["/slices/beforeoron/latest/", "200"] > 0
    assert refused < sum(answered.values()) / 4  # an empty table has no columns yet; the compaction is pending
