"""Object stores through a bad network, against a real S3 server behind a proxy that misbehaves."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import random
import threading
import traceback
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.storage import (
    AlreadyExistsError,
    OutcomeUnknownError,
    Storage,
    StorageError,
    check_exclusive_create,
    open_storage,
)
from hudilake.write.base_sink import mapped
from tests.conftest import BUCKET
from tests.hudilake.storage.faults import Fault, HttpProxy, http_proxy
from tests.services.s3 import S3Server

IMPATIENT = {"max_retries": "1", "retry_timeout_s": "5"}
_roots = itertools.count()


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[HttpProxy]:
    with http_proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def path(proxy: HttpProxy) -> str:
    return f"s3://{BUCKET}/faults{next(_roots)}"


@pytest.fixture
def direct(s3_server: S3Server, path: str) -> Storage:
    return open_storage(path, s3_server.options())


@pytest.fixture
def faulty(s3_server: S3Server, proxy: HttpProxy, path: str) -> Storage:
    """The same root as ``direct``, through the proxy."""
    return open_storage(path, {**s3_server.options(), "endpoint": proxy.endpoint, **IMPATIENT})


@pytest.mark.parametrize("reaches_store", [True, False])
@pytest.mark.parametrize("answer", ["lost", 500, 503, 429, 409])
def test_create_succeeds_once_whatever_becomes_of_the_first_answer(
    proxy: HttpProxy, faulty: Storage, direct: Storage, answer: int, reaches_store: bool
) -> None:
    proxy.faults = [Fault("PUT", answer, reaches_store)]
    faulty.create("x", b"mine")
    assert proxy.faults[0].times == 0
    assert direct.read("x") == b"mine"
    with pytest.raises(AlreadyExistsError):
        faulty.create("x", b"mine")


@pytest.mark.parametrize("reaches_store", [True, False])
@pytest.mark.parametrize("answer", ["lost", 500, 409])
@pytest.mark.parametrize("content", [b"", b"same"])
def test_create_loses_to_equal_bytes_of_another_although_its_answer_is_lost(
    proxy: HttpProxy, faulty: Storage, direct: Storage, answer: int, reaches_store: bool, content: bytes
) -> None:
    direct.create("x", content)
    proxy.faults = [Fault("PUT", answer, reaches_store)]
    with pytest.raises(AlreadyExistsError):
        faulty.create("x", content)


def test_racing_threads_on_a_bad_line_have_one_winner(proxy: HttpProxy, s3_server: S3Server, path: str) -> None:
    options = {**s3_server.options(), "endpoint": proxy.endpoint, "max_retries": "4"}
    storage, dice = open_storage(path, options), random.Random(7)
    for turn in range(4):
        winners: list[int] = []
        start = threading.Barrier(8)

        def run(name: str, me: int, winners: list[int] = winners, start: threading.Barrier = start) -> None:
            start.wait()
            with contextlib.suppress(AlreadyExistsError):
                storage.create(name, b"")
                winners.append(me)

        proxy.faults = [Fault("PUT", "lost", reaches_store=dice.random() < 0.7) for _ in range(dice.randint(1, 5))]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, [str(turn)] * 8, range(8)))
        assert len(winners) == 1


def test_no_answer_at_all_is_an_unknown_outcome(proxy: HttpProxy, faulty: Storage, direct: Storage) -> None:
    proxy.faults = [Fault("PUT", "lost", reaches_store=True), Fault("", "lost", times=100)]
    with pytest.raises(OutcomeUnknownError) as unknown:
        faulty.create("x", b"mine")
    assert unknown.value.where["path"].endswith("/x")
    assert direct.read("x") == b"mine"


def test_store_that_drops_metadata_leaves_the_outcome_unknown(proxy: HttpProxy, s3_server: S3Server, path: str) -> None:
    storage = open_storage(path, {**s3_server.options(), "endpoint": proxy.endpoint, "max_retries": "0"})
    proxy.dropped_headers = ("x-amz-meta-",)
    storage.create("x", b"mine")
    proxy.faults = [Fault("PUT", "lost", reaches_store=True)]
    with pytest.raises(OutcomeUnknownError):
        storage.create("y", b"mine")
    with pytest.raises(UnsupportedError):
        check_exclusive_create(storage)


@pytest.mark.parametrize("answer", [500, 503, 429])
def test_passing_refusals_are_tried_again(proxy: HttpProxy, faulty: Storage, answer: int) -> None:
    faulty.create("x", b"abc")
    for call in (
        lambda: faulty.write("x", b"abc"),
        lambda: faulty.read("x"),
        lambda: faulty.list(""),
        lambda: faulty.stat("x"),
        lambda: faulty.read_range("x", 0, 1),
    ):
        proxy.faults = [Fault("", answer)]
        call()
        assert proxy.faults[0].times == 0


def test_lasting_refusals_end_as_storage_errors(proxy: HttpProxy, faulty: Storage) -> None:
    proxy.faults = [Fault("", 503, times=1_000)]
    for call in (lambda: faulty.write("x", b""), lambda: faulty.read("x"), lambda: faulty.list("")):
        with pytest.raises(StorageError) as refused:
            call()
        assert "503" in refused.value.what
        assert refused.value.where["path"].startswith(faulty.uri)
        assert refused.value.do_next


def test_check_finds_a_store_that_ignores_the_condition(proxy: HttpProxy, faulty: Storage, direct: Storage) -> None:
    check_exclusive_create(faulty)
    proxy.dropped_headers = ("if-none-match",)
    with pytest.raises(UnsupportedError):
        check_exclusive_create(faulty)
    assert list(direct.walk("")) == []


def test_secrets_appear_nowhere(proxy: HttpProxy, faulty: Storage, s3_server: S3Server) -> None:
    secrets = (s3_server.secret_access_key, s3_server.access_key_id, "hush%2Fthis%2Bis%3Dsecret")
    body = f"<Error><Message>no: {' '.join(secrets)}</Message></Error>".encode()
    texts = [repr(faulty), str(faulty), faulty.uri]
    for answer, kind in ((403, ConfigError), (401, ConfigError), (400, StorageError), (404, StorageError)):
        proxy.faults = [Fault("", answer, times=100, body=body)]
        with pytest.raises(kind) as refused:
            faulty.read("x")
        texts += [str(refused.value), repr(refused.value), repr(pickle.loads(pickle.dumps(refused.value)))]
        texts += traceback.format_exception(refused.value)
    assert "***" in " ".join(texts)
    for secret in secrets:
        assert not [text for text in texts if secret in text]


def test_refused_credentials_and_missing_bucket_are_mistakes_in_the_settings(
    proxy: HttpProxy, faulty: Storage, s3_server: S3Server
) -> None:
    proxy.faults = [Fault("", 403, times=100)]
    for call in (lambda: faulty.create("x", b""), lambda: faulty.list("")):
        with pytest.raises(ConfigError):
            call()
    nowhere = open_storage("s3://no-such-bucket/lake", s3_server.options())
    for call in (lambda: nowhere.create("x", b""), lambda: nowhere.write("x", b""), lambda: nowhere.list("")):
        with pytest.raises(ConfigError) as refused:
            call()
        assert "bucket" in refused.value.do_next


@pytest.mark.full
def test_directory_of_more_than_a_page(proxy: HttpProxy, faulty: Storage, direct: Storage) -> None:
    """Its tail costs one request, and as a subdirectory it is jumped over; one delete takes it all."""
    names = [f"{i:04}" for i in range(1_100)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: direct.write(f"t/5/{name}", b""), names))
    for name in ("t/1", "t/4", "t/5", "t/5.", "t/50", "t/6", "u"):
        direct.write(name, b"")

    def with_requests(prefix: str, start_after: str | None) -> tuple[list[str], int]:
        proxy.requests.clear()
        return [info.path for info in faulty.list(prefix, start_after)], len(proxy.requests)

    assert with_requests("t/5", "1097") == (["t/5/1098", "t/5/1099"], 1)
    assert with_requests("t/5", None) == ([f"t/5/{name}" for name in names], 2)
    assert with_requests("t", "1") == (["t/4", "t/5", "t/5.", "t/50", "t/6"], 2)
    assert "continuation-token" not in proxy.requests[1][1]
    faulty.delete_tree("t")
    assert [info.path for info in direct.walk("")] == ["u"]


def test_placeholders_of_directories_are_no_files(s3_server: S3Server, direct: Storage) -> None:
    root = f"{s3_server.endpoint}/{BUCKET}/{direct.uri.removeprefix(f's3://{BUCKET}/')}"
    for key in ("/", "/d/", "/d/f"):
        urllib.request.urlopen(urllib.request.Request(root + key, b"", method="PUT"), timeout=10).close()
    assert direct.list("") == []
    assert direct.list_dirs("") == ["d"]
    assert [info.path for info in direct.list("d")] == ["d/f"]


def test_the_store_in_memory_keeps_no_file_of_the_caller(tmp_path: Path) -> None:
    """A base file is given as a mapped file, in whose place the next one is written."""
    store, file = open_storage(f"memory://owned-{tmp_path.name}"), tmp_path / "base"
    for number, call in enumerate((store.write, store.create)):
        file.write_bytes(b"first")
        call(f"object-{number}", mapped(file))
        file.write_bytes(b"other")
        assert store.read(f"object-{number}") == b"first"
