"""Runs the steps of a test file: variables, blocks, files in files, connections.

A refused statement does not end a file, since it leaves no event; so ``--error`` says nothing here. What needs a second
server, a shell or another start of the server is left out.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hudilake import clock
from tests.programs.proofs.suite.language import Block, Command, Sql, Step, read
from tests.programs.proofs.suite.sessions import Answer, Session

#: Included files that are about a second server, about the start of the server, or wait for what does not come here.
_LEFT_OUT = re.compile(
    r"/(have_|not_|no_|big_test|long_test|sync_|rpl_(init|end|reset|assert|sync|start_|stop_|restart_|connect|change_|"
    r"test_framework|show|diff|for_each|generate|reconnect|ip|semi|parallel)|start_slave|stop_slave|wait_|master-slave|circular|diff_|"
    r"show_|restart_|shutdown|kill_|start_mysqld|check_slave|assert|galera|save_|setup_fake|force_|is_|"
    r"begin_include|end_include|write_result|innodb_checksum|expect_crash|analyze-|mysqlbinlog|default_mysqld)"
    r"|slave|binlog_events|/galera|backup|debug"
)
#: Statements that would take row events out of the log, end the server, or change what is not the file's own.
_KEPT_BACK = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(?:"
    r"set\b.*\b(sql_log_bin|binlog_format|binlog_row_image|binlog_row_metadata|binlog_legacy|skip_replication|read_only|"
    r"log_bin_compress|server_id|gtid_domain_id|innodb_force|max_connections|innodb_log_file|tmpdir|password|"
    r"event_scheduler|innodb_buffer_pool_size|secure_timestamp|binlog_commit_wait|rpl_semi|wsrep|encrypt|debug|timeout)|"
    r"reset\s+(master|slave|replica)|purge\b|shutdown\b|flush\s+tables\s+with\s+read|flush\s+(binary\s+)?logs|"
    r"change\s+master|(start|stop)\s+(all\s+)?(slave|replica)|binlog\b|(un)?install\b|backup\b|"
    r"(delete|insert|update|replace|drop|truncate|alter|rename|create|lock)\b[^;']*\bmysql\s*\.|use\s+`?mysql\b|"
    r"call\s+mtr\.|drop\s+(database|schema)\s+(if\s+exists\s+)?`?(mtr|mysql|sys)\b|set\s+global\s+binlog|"
    r"kill\b|select\s+(benchmark|sleep)\s*\()",
    re.IGNORECASE | re.DOTALL,
)
_ELSEWHERE = re.compile(r"slave|server_[2-9]|\bserver[2-9]|node_?[2-9]|SLAVE", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{)?(\d|[A-Za-z_]\w*)\}?")
_COMPARED = re.compile(r"(.*?)\s*(==|!=|<=|>=|<|>)\s*(.*)", re.DOTALL)
_ROW_VALUE = re.compile(r"query_get_value\s*\((.*),\s*([^,]+?)\s*,\s*([^,]+?)\s*\)\s*$", re.DOTALL | re.IGNORECASE)
_DEPTH, _TURNS = 16, 300


class EnoughError(Exception):
    """The file ends here. Its text says why; empty where the file itself ends."""


@dataclass
class Interpreter:
    """Runs one file.

    Args:
        home: the suite.
        connect: makes a connection that uses a database.
        before: called with each statement that is about to run.
        variables: of the file at its start.
        deadline_s: on the monotonic clock, when the file is given up.
        left: how many statements may still run.
        ran: how many were accepted and refused, and what was left out.
    """

    home: Path
    connect: Callable[[str], Session]
    before: Callable[[str], None]
    variables: dict[str, str]
    deadline_s: float
    left: int = 20_000
    ran: Counter[str] = field(default_factory=Counter)
    sessions: dict[str, Session | None] = field(default_factory=dict)
    current: str = "default"
    _depth: int = 0

    def run(self, name: str) -> str:
        """Run a file to its end; why it was given up before, or nothing."""
        self.sessions["default"] = self.connect("test")
        try:
            self._file(self.home / name)
        except EnoughError as enough:
            return str(enough)
        except (ValueError, RecursionError) as error:
            return f"the reader of test files: {error}"
        return ""

    def close(self) -> None:
        """Close all connections."""
        for session in self.sessions.values():
            if session is not None:
                session.close()

    def _file(self, path: Path) -> None:
        self._depth += 1
        if self._depth > _DEPTH:
            raise ValueError("files include each other")
        self._steps(read(path.read_bytes().decode("utf-8", "surrogateescape")), path.parent)
        self._depth -= 1

    def _steps(self, steps: tuple[Step, ...], place: Path) -> None:
        for step in steps:
            if clock.monotonic_s() > self.deadline_s:
                raise EnoughError("takes too long")
            if isinstance(step, Block):
                self._block(step, place)
            elif isinstance(step, Sql):
                self._sql(step.text)
            else:
                self._command(step, place)

    def _block(self, block: Block, place: Path) -> None:
        if block.name == "if":
            if self._holds(block.condition):
                self._steps(block.body, place)
            return
        for turn in itertools.count():
            if not self._holds(block.condition):
                return
            if turn == _TURNS:
                self.ran["loops cut short"] += 1
                return
            self._steps(block.body, place)

    # -- values --------------------------------------------------------------------------------------------------------

    def _expanded(self, text: str) -> str:
        return _VARIABLE.sub(lambda name: self._value_of(name[1]), text)

    def _value_of(self, name: str) -> str:
        return self.variables.get(name, "")

    def _value(self, text: str) -> str:
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] == "`":
            answer = self._asked(self._expanded(text[1:-1]))
            return "\t".join(cell or "" for cell in answer.rows[0]) if answer.rows else ""
        one = _ROW_VALUE.match(text)
        if one:
            answer = self._asked(self._expanded(one[1].strip().strip("\"'")))
            names = [name.lower() for name in answer.columns]
            column, row = self._expanded(one[2]).lower(), self._expanded(one[3])
            if column in names and row.isdigit() and 0 < int(row) <= len(answer.rows):
                return answer.rows[int(row) - 1][names.index(column)] or ""
            return "No such row"
        return self._expanded(text)

    def _holds(self, condition: str) -> bool:
        text = condition.strip()
        if text.startswith("!"):
            return not self._holds(text[1:])
        compared = None if text.startswith("`") and text.endswith("`") else _COMPARED.fullmatch(text)
        if compared and (text.startswith("$") or text[0].isdigit() or text[0] in "'\"`"):
            left, right = (_bare(self._value(side)) for side in (compared[1], compared[3]))
            return _compare(left, compared[2], right)
        value = self._value(text).strip()
        return value.lstrip("-").isdigit() and int(value) != 0 if re.match(r"-?\d", value) else bool(value)

    # -- statements ----------------------------------------------------------------------------------------------------

    def _asked(self, sql: str) -> Answer:
        session = self.sessions.get(self.current)
        return session.run(sql) if session is not None and not _KEPT_BACK.match(sql) else Answer()

    def _sql(self, text: str, *, wait: bool = True) -> None:
        session = self.sessions.get(self.current)
        if session is None:
            self.ran["at another server"] += 1
            return
        if _KEPT_BACK.match(text):
            self.ran["left out"] += 1
            return
        self.left -= 1
        if self.left < 0:
            raise EnoughError("has too many statements")
        self.before(text)
        if not wait:
            session.send(text)
            return
        answer = session.run(text)
        self.variables["mysql_errno"] = str(answer.number)
        self.ran["refused" if answer.error else "accepted"] += 1
        if session.dead:
            session.close()
            self.sessions[self.current] = self.connect("test")

    def _command(self, command: Command, place: Path) -> None:
        words = command.words
        match command.name:
            case "let":
                self._let(words)
            case "inc" | "dec":
                name = words.lstrip("$").strip()
                number = re.match(r"-?\d+", self._value_of(name))
                self.variables[name] = str(int(number[0] if number else 0) + (1 if command.name == "inc" else -1))
            case "eval" | "evalp":
                self._sql(self._expanded(words))
            case "query" | "query_vertical" | "query_horizontal":
                self._sql(self._expanded(words))
            case "send" | "send_eval" if words:
                self._sql(self._expanded(words) if command.name == "send_eval" else words, wait=False)
            case "reap":
                session = self.sessions.get(self.current)
                if session is not None:
                    session.reap()
            case "source":
                self._source(self._expanded(words).strip().strip("\"'"), place)
            case "connect":
                self._connect(words)
            case "connection":
                self._connection(self._expanded(words).strip())
            case "disconnect" | "dirty_close":
                session = self.sessions.pop(self._expanded(words).strip(), None)
                if session is not None:
                    session.close()
            case "sync_slave_with_master":
                self.current = "slave"
            case "exit" | "die" | "skip":
                raise EnoughError("" if command.name == "exit" else f"{command.name}: {self._expanded(words)}")
            case "exec" | "execw" | "system" | "shutdown_server" | "perl":
                self.ran["left out"] += 1

    def _let(self, words: str) -> None:
        name, _, value = words.partition("=")
        self.variables[name.strip().lstrip("$").strip()] = self._value(value.rstrip(";"))

    def _source(self, name: str, place: Path) -> None:
        if _LEFT_OUT.search(f"/{name}"):
            return
        for base in (self.home, place, place.parent, place.parent.parent):
            if (base / name).is_file():
                self._file(base / name)
                return
        self.ran["file not there"] += 1

    def _connect(self, words: str) -> None:
        given = [part.strip() for part in self._expanded(words).strip("() \n").split(",")]
        elsewhere = _ELSEWHERE.search(words)
        self.current = given[0]
        schema = given[4] if len(given) > 4 and given[4] not in ("", "*NO-ONE*") else "test"
        self.sessions[self.current] = None if elsewhere else self.connect(schema)

    def _connection(self, name: str) -> None:
        self.current = name
        if name not in self.sessions:
            self.sessions[name] = None if _ELSEWHERE.search(name) else self.connect("test")


def start_variables(home: Path, var: Path, database: Mapping[str, str]) -> dict[str, str]:
    """What the suite's own runner gives to a file."""
    names = {"MYSQL_TEST_DIR": home, "MYSQLTEST_VARDIR": var, "MYSQL_TMP_DIR": var / "tmp", "MYSQLD_DATADIR": var}
    fixed = {"MYSQL_VERSION_MAJOR": "11", "default_storage_engine": "InnoDB", "ENGINE": "InnoDB", "MASTER_MYSOCK": ""}
    return {**fixed, **{name: str(path) for name, path in names.items()}, **database}


def _bare(text: str) -> str:
    return text.strip().strip("'\"")


def _compare(left: str, sign: str, right: str) -> bool:
    if re.fullmatch(r"-?\d+", left) and re.fullmatch(r"-?\d+", right):
        one, two = int(left), int(right)
        return {"==": one == two, "!=": one != two, "<": one < two, ">": one > two}.get(
            sign, one <= two if sign == "<=" else one >= two
        )
    return {"==": left.lower() == right.lower(), "!=": left.lower() != right.lower()}.get(sign, False)
