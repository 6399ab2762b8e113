"""A person who acts through the pages of a console."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from starlette.testclient import TestClient

from binlake.cli.console.access import Access
from binlake.cli.console.actions import ActionLog, ActionRecord
from binlake.cli.console.page import Site
from binlake.cli.console.site import application
from tests.binlake.cli.console.watched_lake import HOST, Watched, words_of

TOKEN = "0123456789abcdef0123"


@dataclass
class Operator:
    """A person who is signed in at the console of one stream."""

    watched: Watched
    client: TestClient

    @staticmethod
    def of(conf: Path) -> Operator:
        watched = Watched.of(conf)
        app = application(Site({watched.watch.settings.name: watched.watch}), [HOST], Access(TOKEN))
        client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
        assert client.post("/sign-in", data={"token": TOKEN}).status_code == 303
        return Operator(watched, client)

    def act(self, action: str, table: str, code: int = 0) -> ActionRecord:
        """See the plan, confirm it, and wait; what the audit log keeps of it. ``code``: the exit code that is right."""
        stream = self.watched.watch.settings.name
        form = {"stream": stream, "table": table, "action": action}
        plan = self.client.get("/action", params=form).text
        [key] = set(re.findall(r'name="key" value="([^"]+)"', plan))
        assert self.client.post("/action", data={**form, "key": key}).status_code == 303
        log = ActionLog(self.watched.watch.settings, self.watched.watch.conf)
        while (kept := log.newest()[0]).ended_ms is None:
            sleep(0.3)
        assert (kept.action, kept.table, kept.by) == (action, table, "testclient")
        assert kept.command in words_of(plan)
        assert kept.code == code, kept.output
        assert kept.output.strip()
        assert " ".join(kept.output.split())[:40] in words_of(self.client.get("/actions").text)
        self.watched.look()
        return kept
