"""Actions of the console: nobody acts without the token and a page's key; each one is shown first and kept after."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from starlette.testclient import TestClient

from binlake.cli.console.access import COOKIE, ENVIRONMENT, Access
from binlake.cli.console.action_routes import ActionRoutes
from binlake.cli.console.actions import KINDS, ActionLog, command_of, kind_of
from binlake.cli.console.page import Site
from binlake.cli.console.site import application
from binlake.position.table_requests import load_requests
from binlake.settings import Settings
from binlake.settings.sections import DebeziumSettings
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from tests.binlake.cli.console.signed_in import TOKEN
from tests.binlake.cli.console.watched_lake import HOST, Watched, words_of
from tests.binlake.cli.fed_lake import FedLake

TABLE = {"stream": "shop", "table": "shop.a"}


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(4)
    return lake


class Acting:
    """A browser on a console that has a token, and what the lake's stream is asked."""

    def __init__(self, lake: FedLake, token: str | None = TOKEN) -> None:
        self.lake, self.watched = lake, Watched.of(lake.conf)
        self.site = Site({"shop": self.watched.watch})
        self.client = TestClient(
            application(self.site, [HOST], Access(token)), base_url=f"http://{HOST}", follow_redirects=False
        )

    def post(self, path: str, **fields: str) -> int:
        status: int = self.client.post(path, data=fields).status_code
        return status

    def page(self, path: str, **asked: str) -> str:
        text: str = self.client.get(path, params=asked).text
        return text

    def key(self) -> str:
        key: str = re.findall(r'name="key" value="([^"]+)"', self.page("/action", **TABLE, action="pause"))[0]
        return key

    def asked(self) -> bool:
        """Whether anything was asked of the stream."""
        return bool(load_requests(open_storage(f"{self.lake.path}/.binlake/shop")))

    def log(self) -> ActionLog:
        return ActionRoutes(self.site, Access()).logs["shop"]

    def ended(self) -> str:
        """The page of actions, once none is under way."""
        while "under way" in (page := self.page("/actions")):
            sleep(0.1)
        return page


def test_without_a_token_nobody_acts_and_the_plan_is_shown_all_the_same(lake: FedLake) -> None:
    acting = Acting(lake, None)
    assert "The console has no token" in acting.page("/actions")
    page = acting.page("/action", **TABLE, action="compact")
    assert f"binlake compact -- {lake.conf} shop.a" in words_of(page)
    assert "post" not in page
    assert acting.post("/sign-in", token="") == 403
    assert acting.post("/action", **TABLE, action="pause", key="") == 403
    assert not acting.asked()


def test_a_wrong_token_a_form_without_its_key_and_another_site_do_nothing(lake: FedLake) -> None:
    acting = Acting(lake)
    assert acting.post("/sign-in", token=f"{TOKEN}x") == 403
    assert COOKIE not in acting.client.cookies
    assert acting.post("/action", **TABLE, action="pause", key="") == 403
    assert acting.post("/sign-in", token=TOKEN) == 303
    assert acting.post("/action", **TABLE, action="pause") == 403
    assert acting.post("/action", **TABLE, action="pause", key="x" * 43) == 403
    key = acting.key()
    for site in ("cross-site", "same-site"):
        fields, headers = {**TABLE, "action": "pause", "key": key}, {"sec-fetch-site": site}
        assert acting.client.post("/action", data=fields, headers=headers).status_code == 404
    for named in ("http://evil.example", f"http://evil.{HOST}"):
        fields, headers = {**TABLE, "action": "pause", "key": key}, {"origin": named}
        assert acting.client.post("/action", data=fields, headers=headers).status_code == 403
        assert acting.client.post("/sign-in", data={"token": TOKEN}, headers=headers).status_code == 403
    assert acting.client.post("/action", content=b"{}", headers={"content-type": "application/json"}).status_code == 415
    assert acting.client.post("/action", data={"key": "x" * 20_000}).status_code == 413
    assert acting.client.get("/action", params={**TABLE, "action": "drop"}).status_code == 404
    assert acting.post("/action", **TABLE, action="drop", key=key) == 404
    assert not acting.asked()
    assert not acting.log().newest()
    cookie = acting.client.post("/sign-in", data={"token": TOKEN}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


@pytest.mark.full
def test_an_action_runs_as_it_was_shown_and_is_kept(lake: FedLake) -> None:
    acting = Acting(lake)
    assert acting.post("/sign-in", token=TOKEN) == 303
    assert acting.post("/action", **TABLE, action="pause", key=acting.key()) == 303
    page = words_of(acting.ended())
    assert "shop.a: is paused as soon as the batch in hand is finished" in page
    assert acting.asked()
    [kept] = acting.log().newest()
    assert (kept.action, kept.table, kept.code) == ("pause", "shop.a", 0)
    assert kept.command == f"binlake table pause -- {lake.conf} shop.a"
    assert kept.ended_ms is not None
    key = acting.key()
    assert acting.client.post("/sign-out", data={"key": key}).status_code == 303
    assert acting.post("/action", **TABLE, action="resume", key=key) == 403


@pytest.mark.full
def test_a_form_is_taken_once(lake: FedLake) -> None:
    acting = Acting(lake)
    own = {"origin": f"http://{HOST}:8765"}
    assert acting.client.post("/sign-in", data={"token": TOKEN}, headers=own).status_code == 303
    form = {**TABLE, "action": "savepoint", "key": acting.key()}
    assert acting.client.post("/action", data=form, headers={"origin": "null"}).status_code == 303
    acting.ended()
    answer = acting.client.post("/action", data=form)
    assert answer.status_code == 403
    assert "this form was sent before" in answer.text
    assert len(acting.log().newest()) == 1
    assert acting.key() != form["key"]


def test_a_form_that_is_not_sent_whole_is_no_error_of_the_console(lake: FedLake) -> None:
    app, sent = Acting(lake).client.app, []
    headers = [(b"host", HOST.encode()), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/sign-in", "query_string": b"", "headers": headers}
    parts = iter([{"type": "http.request", "body": b"tok", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:  # noqa: ANN401 - a message
        return next(parts)

    async def send(message: Any) -> None:  # noqa: ANN401 - a message
        sent.append(message)

    async def ask() -> None:
        await app(scope | {"scheme": "http", "server": (HOST, 80), "client": None}, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 400


@pytest.mark.full
def test_one_action_of_a_stream_at_a_time(lake: FedLake) -> None:
    log = Acting(lake).log()
    first = log.begin("savepoint", "shop.a", "test")
    with pytest.raises(ConfigError, match="under way"):
        log.begin("savepoint", "shop.b", "test")
    log.wait()
    [kept] = log.newest()
    assert (kept.name, kept.code) == (first.name, 0)
    assert "savepoint" in lake.run("savepoint list", "shop.a").output


def test_every_action_is_a_command_that_takes_a_table_as_a_name(lake: FedLake) -> None:
    settings = Settings.load(lake.conf)
    for kind in (*KINDS.values(), kind_of("resync", settings)):
        words = command_of(kind, "shop.yaml", "--help")
        assert "--help" not in words[: words.index("--")]
        for dry in (False, True):
            assert isinstance(command_of(kind, "c", "t", dry=dry), list)


def test_a_table_is_read_anew_the_way_that_its_stream_has(lake: FedLake) -> None:
    settings = Settings.load(lake.conf)
    assert "--from-source" in kind_of("resync", settings).words
    with_signals = settings.model_copy(
        update={"source": settings.source.model_copy(update={"debezium": DebeziumSettings(signal_topic="signals")})}
    )
    assert kind_of("resync", with_signals) is KINDS["resync"]


def test_a_short_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(ConfigError, match="fewer than 16"):
        Access.of(tmp_path / "token")
    with pytest.raises(ConfigError, match="cannot be read"):
        Access.of(tmp_path / "none")
    monkeypatch.setenv(ENVIRONMENT, TOKEN)
    assert Access.of(None).token == TOKEN
    monkeypatch.delenv(ENVIRONMENT)
    assert not Access.of(None).possible
