"""The ledger of requests: what is in series, what a request is, and the whole of it before a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench.requests.__main__ as ledger
from bench.requests.proxy import Request, depths, kind_of, kinds


def test_the_longest_chain_ends_with_each_request() -> None:
    two_at_once = [Request(2, 5, "put", "b"), Request(3, 4, "put", "c")]
    requests = [Request(0, 1, "list", "a"), *two_at_once, Request(6, 7, "create", "d")]
    assert depths(requests) == [1, 2, 2, 3]
    assert depths([]) == []
    assert kinds(requests) == {"create": 1, "list": 1, "put": 2}


@pytest.mark.parametrize(
    ("method", "target", "headers", "kind"),
    [
        ("GET", "/lake/a", [], "get"),
        ("GET", "/lake?list-type=2&prefix=a", [], "list"),
        ("HEAD", "/lake/a", [], "head"),
        ("PUT", "/lake/a", ["Content-Length"], "put"),
        ("PUT", "/lake/a", ["If-None-Match"], "create"),
        ("PUT", "/lake/a", ["x-amz-copy-source"], "copy"),
        ("POST", "/lake?delete", [], "delete"),
        ("DELETE", "/lake/a", [], "delete"),
        ("POST", "/lake/a?uploads", [], "upload"),
        ("PUT", "/lake/a?partNumber=1&uploadId=7", [], "upload"),
    ],
)
def test_requests_by_kind(method: str, target: str, headers: list[str], kind: str) -> None:
    assert kind_of(method, target, headers) == kind


@pytest.mark.full
def test_a_commit_before_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so many requests; the store's listings and deletes of the markers are two of them."""
    monkeypatch.setattr(ledger, "_RESULTS", tmp_path / "requests.json")
    ledger.main(["--products", "binlake", "--commits", "3"])
    told = json.loads((tmp_path / "requests.json").read_text())["binlake"]
    assert told["medians"]["all"] == 19
    assert min(one["visible"] for one in told["commits"]) == 10
    assert min(one["series"] for one in told["commits"]) == 13
