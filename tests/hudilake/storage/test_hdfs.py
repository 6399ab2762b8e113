"""HDFS: answers of the NameNode that are lost on the way, and what its errors are taken for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage import AlreadyExistsError, Storage, StorageError, StorageNotFoundError, open_storage
from hudilake.storage.hdfs_errors import explain, retrying, translate
from tests.hudilake.storage.faults import AnswerCutter
from tests.services.hdfs import HdfsCluster

NO_RETRY = 'RPCError("java.io.IOException", "disk on fire\\n\\tat org.apache.hadoop.Foo(Foo.java:1)")'
SAFE_MODE = (
    'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Name node is in safe mode.\\n\\tat x")'
)
NO_DATA_NODE = 'RPCError("java.io.IOException", "File /x could only be written to 0 of the 1 minReplication nodes.")'
REFUSED = 'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=me, access=WRITE")'
THROUGH_A_FILE = 'RPCError("org.apache.hadoop.security.AccessControlException", "/a/b (is not a directory)\\n\\tat x")'
BAD_NAME = 'RPCError("org.apache.hadoop.fs.InvalidPathException", "Invalid path name /a:b\\n\\tat x")'
LONG_NAME = (
    'RPCError("org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException", "limit of 255\\n\\tat")'
)


@pytest.fixture
def cutter(hdfs_cluster: HdfsCluster) -> Iterator[AnswerCutter]:
    with AnswerCutter(hdfs_cluster.uri.removeprefix("hdfs://")) as cutter:
        yield cutter


def both_ways(cutter: AnswerCutter, cluster: HdfsCluster, root: str) -> tuple[Storage, Storage]:
    """One root, through the cutter and directly."""
    return open_storage(f"hdfs://{cutter.authority}/{root}"), open_storage(f"{cluster.uri}/{root}")


@pytest.mark.first(3)
@pytest.mark.hdfs
@pytest.mark.parametrize("method", [b"rename2", b"create", b"complete", b"addBlock"])
def test_create_succeeds_once_although_an_answer_is_lost(
    cutter: AnswerCutter, hdfs_cluster: HdfsCluster, method: bytes
) -> None:
    storage, direct = both_ways(cutter, hdfs_cluster, f"lost-{method.decode()}")
    storage.create("before", b"")
    cutter.arm(method)
    storage.create("x", b"mine")
    assert cutter.cuts == 1
    assert direct.read("x") == b"mine"
    assert [info.path for info in direct.walk("")] == ["before", "x"]
    with pytest.raises(AlreadyExistsError):
        storage.create("x", b"mine")


@pytest.mark.hdfs
def test_create_loses_to_another_although_the_answer_is_lost(cutter: AnswerCutter, hdfs_cluster: HdfsCluster) -> None:
    storage, direct = both_ways(cutter, hdfs_cluster, "lost-race")
    direct.create("x", b"")
    storage.stat("x")
    cutter.arm(b"rename2")
    with pytest.raises(AlreadyExistsError):
        storage.create("x", b"")
    assert cutter.cuts == 1
    assert storage.list_dirs("") == []


@pytest.mark.hdfs
def test_write_replaces_although_the_answer_is_lost(cutter: AnswerCutter, hdfs_cluster: HdfsCluster) -> None:
    storage, direct = both_ways(cutter, hdfs_cluster, "lost-write")
    storage.write("x", b"")
    cutter.arm(b"rename2")
    storage.write("x", b"new")
    assert cutter.cuts == 1
    assert direct.read("x") == b"new"


@pytest.mark.hdfs
def test_tasks_that_write_one_file_again_and_again_leave_no_second(hdfs_cluster: HdfsCluster) -> None:
    storage = open_storage(f"{hdfs_cluster.uri}/retried")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: storage.write("d/f", b"same"), range(16)))
    assert [info.path for info in storage.walk("")] == ["d/f"]
    assert storage.read("d/f") == b"same"


@pytest.mark.hdfs
def test_names_hdfs_does_not_take_are_refused_for_good(hdfs_cluster: HdfsCluster) -> None:
    storage = open_storage(f"{hdfs_cluster.uri}/names")
    for name in ("12:00", "x" * 300):
        with pytest.raises(UnsupportedError):
            storage.create(name, b"")
    storage.create("file", b"")
    with pytest.raises(StorageError) as refused:
        storage.create("file/below", b"")
    assert not isinstance(refused.value, AlreadyExistsError)
    assert [info.path for info in storage.walk("")] == ["file"]


@pytest.mark.hdfs
@pytest.mark.parametrize("method", [b"getFileInfo", b"getListing", b"getBlockLocations", b"delete"])
def test_other_calls_are_made_again_when_an_answer_is_lost(
    cutter: AnswerCutter, hdfs_cluster: HdfsCluster, method: bytes
) -> None:
    storage, direct = both_ways(cutter, hdfs_cluster, f"lost-{method.decode()}")
    storage.create("d/x", b"")
    cutter.arm(method)
    assert storage.stat("d/x") is not None
    assert storage.list("d") != []
    assert storage.read("d/x") == b""
    assert storage.delete("d/x") is True
    assert cutter.cuts == 1
    assert list(direct.walk("")) == []


def test_explain_takes_the_class_and_the_first_line() -> None:
    assert (explain(RuntimeError(SAFE_MODE)).kind, explain(RuntimeError(SAFE_MODE)).text) == (
        "SafeModeException",
        "Name node is in safe mode.",
    )
    assert explain(RuntimeError(LONG_NAME)).kind == "PathComponentTooLongException"
    assert explain(OSError("Connection refused")).text == "Connection refused"


@pytest.mark.parametrize(
    "error", [RuntimeError(SAFE_MODE), RuntimeError(NO_DATA_NODE), OSError("RPC listener disconnected")]
)
def test_what_passes_is_tried_again(error: Exception) -> None:
    failures = [error] * 2

    def call() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert retrying(call) == "done"


@pytest.mark.parametrize("error", [RuntimeError(NO_RETRY), OSError("Connection refused"), FileNotFoundError("/x")])
def test_what_does_not_pass_is_not_tried_again(error: Exception) -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        retrying(call)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("error", "operation", "kind"),
    [
        (RuntimeError(REFUSED), "create", ConfigError),
        (RuntimeError(THROUGH_A_FILE), "read", StorageNotFoundError),
        (RuntimeError(THROUGH_A_FILE), "create", StorageError),
        (RuntimeError(BAD_NAME), "create", UnsupportedError),
        (RuntimeError(LONG_NAME), "create", UnsupportedError),
        (NotImplementedError("File encryption"), "create", UnsupportedError),
        (FileNotFoundError("/x"), "read", StorageNotFoundError),
        (FileNotFoundError("/x"), "write", StorageError),
        (RuntimeError(NO_RETRY), "write", StorageError),
        (ConnectionRefusedError("refused"), "list", StorageError),
    ],
)
def test_errors_in_binlakes_words(error: Exception, operation: str, kind: type[LakeError]) -> None:
    told = translate(error, operation, "hdfs://h:1/x", [("hadoop.secret", "on fire")])
    assert type(told) is kind
    assert told.where == {"path": "hdfs://h:1/x"}
    assert told.do_next
    assert "on fire" not in str(told)
    assert "\tat" not in str(told)
