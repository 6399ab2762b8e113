"""From URIs and options to storages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.storage import StorageError, check_exclusive_create, open_storage
from hudilake.storage.hdfs import HdfsStorage
from hudilake.storage.local import LocalStorage
from hudilake.storage.objects import ObjectStorage


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("/lake/db", "file:///lake/db"),
        ("/lake//db/", "file:///lake/db"),
        ("/lake/../db", "file:///db"),
        ("file:/lake/db", "file:///lake/db"),
        ("file:///lake/db/", "file:///lake/db"),
        ("file://localhost/lake", "file:///lake"),
        ("/a b/50%/year=1/ü:x", "file:///a b/50%/year=1/ü:x"),
        ("file:///a%20b", "file:///a%20b"),
    ],
)
def test_local_uris(given: str, uri: str) -> None:
    storage = open_storage(given)
    assert isinstance(storage, LocalStorage)
    assert storage.uri == uri
    assert open_storage(storage.uri) == storage


def test_relative_path_counts_from_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("lake").uri == f"file://{tmp_path}/lake"


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3a://bucket/a/b/", "s3a://bucket/a/b"),
        ("S3://bucket//a//b", "s3://bucket/a/b"),
        ("s3://my.bucket_1/a%20b/ü c", "s3://my.bucket_1/a%20b/ü c"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
        ("abfss://container@account.dfs.core.windows.net/a/b", "abfss://container@account.dfs.core.windows.net/a/b"),
        ("memory://x/y", "memory://x/y"),
    ],
)
def test_object_uris(given: str, uri: str) -> None:
    options = {"account_name": "a"} if given.startswith("az:") else {}
    storage = open_storage(given, options)
    assert isinstance(storage, ObjectStorage)
    assert storage.uri == uri
    assert storage.sub("x/y").uri == f"{uri}/x/y"


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("hdfs://name-node:8020/lake/", "hdfs://name-node:8020/lake"),
        ("hdfs://nameservice", "hdfs://nameservice"),
        ("hdfs:///lake", "hdfs:///lake"),
        ("hdfs://n:1//a b//year=1", "hdfs://n:1/a b/year=1"),
    ],
)
def test_hdfs_uris(given: str, uri: str) -> None:
    storage = open_storage(given, {"dfs.client.use.datanode.hostname": "true", "hsync": "false"})
    assert isinstance(storage, HdfsStorage)
    assert storage.uri == uri
    assert storage.hsync is False
    assert storage.sub("x").uri == f"{uri}/x"


@pytest.mark.parametrize(
    "uri",
    ["ftp://host/x", "s3:///x", "s3:bucket", "file://host/x", "file:relative", "gs://", "memory:x", "http://host/x"],
)
def test_uris_that_lead_nowhere_are_refused(uri: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_storage(uri)
    assert refused.value.do_next


@pytest.mark.parametrize("uri", ["s3://KEY:hushhush@bucket/x", "s3://hushhush@bucket", "hdfs://me:hushhush@host:1/x"])
def test_credentials_in_a_uri_are_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_storage(uri)
    assert "hushhush" not in str(refused.value)


@pytest.mark.parametrize("uri", ["s3://bucket/../x", "hdfs://h:1/a/../../b", "memory://x/./y"])
def test_roots_with_dots_are_refused(uri: str) -> None:
    with pytest.raises(UnsupportedError):
        open_storage(uri)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://bucket", {"no_such_option": "hushhush"}),
        ("s3://bucket", {"aws_conditional_put": "hushhush"}),
        ("gs://bucket", {"service_account_key": "hushhush"}),
        ("hdfs://h:1", {"password": "hushhush"}),
        ("hdfs://h:1", {"hsync": "hushhush"}),
        ("/lake", {"secret": "hushhush"}),
    ],
)
def test_wrong_options_are_refused_by_name_only(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        open_storage(uri, options)
    assert "hushhush" not in f"{refused.value} {refused.value!r}"


@pytest.mark.parametrize("options", [{"max_retries": "many"}, {"retry_timeout_s": "long"}, {"timeout": "30"}])
def test_values_of_the_wrong_form_are_shown(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        open_storage("s3://bucket", options)
    assert next(iter(options.values())) in str(refused.value)


def test_option_names_are_obstores_own() -> None:
    options = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "timeout": "30s"}
    assert open_storage("s3://bucket", {**options, "secret_access_key": "b"}).uri == "s3://bucket"


def test_nobody_listens() -> None:
    for uri, options in (
        ("hdfs://127.0.0.1:1/lake", {}),
        ("s3://bucket", {"endpoint": "http://127.0.0.1:1", "max_retries": "1", "access_key_id": "a"}),
    ):
        with pytest.raises(StorageError) as refused:
            check_exclusive_create(open_storage(uri, {**options, **({"secret_access_key": "b"} if options else {})}))
        assert refused.value.do_next


def test_memory_stores_are_told_apart_by_name() -> None:
    one, same, other = (open_storage(f"memory://{name}/{os.getpid()}") for name in ("one", "one", "other"))
    one.create("x", b"")
    assert same.list("") != []
    assert other.list("") == []
    one.delete_tree("")
