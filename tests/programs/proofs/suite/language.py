"""The language of test files: statements for the server and commands for the client, in blocks.

Source of the rules: the manual of mysqltest, and its behaviour. Text is decoded so that every byte survives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: What the client understands; anything else is for the server.
_COMMAND = re.compile(
    r"(enable|disable)_\w+|append_file|cat_file|change_user|character_set|chmod|connect|connection|copy_file|"
    r"copy_files_wildcard|dec|delimiter|die|diff_files|dirty_close|disconnect|echo|end_timer|error|eval|evalp|"
    r"exec|execw|exit|file_exists|force-cpdir|force-rmdir|horizontal_results|inc|let|list_files|"
    r"list_files_append_file|list_files_write_file|lowercase_result|mkdir|move_file|optimizer_trace|perl|ping|"
    r"query|query_attributes|query_horizontal|query_vertical|real_sleep|reap|remove_file|remove_files_wildcard|"
    r"replace_column|replace_numeric_round|replace_regex|replace_result|require|reset_connection|result|"
    r"result_format|rmdir|save_master_pos|send|send_eval|send_quit|send_shutdown|shutdown_server|skip|sleep|"
    r"sorted_result|source|start_timer|sync_slave_with_master|sync_with_master|system|vertical_results|"
    r"wait_for_slave_to_stop|write_file"
)
_BLOCK = re.compile(r"(if|while)\s*(?=\()", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_HEREDOC = {"write_file": 1, "append_file": 1, "perl": 0, "list_files_write_file": None}
_QUOTES = "'\"`"


@dataclass(frozen=True)
class Sql:
    """A statement for the server, without its delimiter."""

    text: str


@dataclass(frozen=True)
class Command:
    """A command for the client: its name in lower case, and the rest of it."""

    name: str
    words: str


@dataclass(frozen=True)
class Block:
    """``if`` or ``while``, its condition, and what it runs."""

    name: str
    condition: str
    body: tuple[Sql | Command | Block, ...]


Step = Sql | Command | Block


def read(text: str, *, plain: bool = False) -> tuple[Step, ...]:
    """The steps of a file. ``plain``: it has statements alone. Raises ValueError if a block does not end."""
    return tuple(_Reader(text, plain).steps(inside=False))


class _Reader:
    def __init__(self, text: str, plain: bool) -> None:
        self._text, self._plain = text.replace("\r\n", "\n"), plain
        self._place = 0
        self._delimiter = ";"

    def steps(self, *, inside: bool) -> Iterator[Step]:
        while self._skip():
            if self._text[self._place] == "}" and not self._plain:
                self._place += 1
                if inside:
                    return
                continue
            step = self._step()
            if step is not None:
                yield step
        if inside:
            raise ValueError("a block does not end")

    def _skip(self) -> bool:
        """Whether anything is left after space, comments and lone delimiters."""
        text = self._text
        while self._place < len(text):
            if text[self._place].isspace():
                self._place += 1
            elif text[self._place] == "#":
                self._line()
            elif text.startswith(self._delimiter, self._place):
                self._place += len(self._delimiter)
            else:
                return True
        return False

    def _line(self) -> str:
        end = self._text.find("\n", self._place)
        end = len(self._text) if end < 0 else end
        line, self._place = self._text[self._place : end], end + 1
        return line

    def _step(self) -> Step | None:
        dashes = self._text.startswith("--", self._place)
        first = self._place + 2 * dashes
        if dashes:
            first += len(self._text[first:]) - len(self._text[first:].lstrip(" \t"))
        block = None if self._plain else _BLOCK.match(self._text, first)
        if block:
            self._place = block.end()
            return self._block(block[1].lower())
        if dashes:
            self._place = first
            return self._command(self._line().strip(), one_line=True)
        return self._command(self._until_delimiter(), one_line=False)

    def _block(self, name: str) -> Block:
        condition = self._in_brackets()
        self._skip()
        if not self._text.startswith("{", self._place):
            raise ValueError(f"{name} has no block")
        self._place += 1
        return Block(name, condition, tuple(self.steps(inside=True)))

    def _in_brackets(self) -> str:
        start, depth, quote = self._place, 0, ""
        while self._place < len(self._text):
            sign = self._text[self._place]
            self._place += 1
            if quote:
                quote = "" if sign == quote else quote
            elif sign in _QUOTES:
                quote = sign
            elif sign in "()":
                depth += 1 if sign == "(" else -1
                if not depth:
                    return self._text[start + 1 : self._place - 1].strip()
        raise ValueError("a condition does not end")

    def _until_delimiter(self) -> str:
        text, start, quote = self._text, self._place, ""
        while self._place < len(text):
            sign = text[self._place]
            if quote:
                if sign == "\\" and quote != "`":
                    self._place += 1
                elif sign == quote:
                    quote = ""
            elif text.startswith(self._delimiter, self._place):
                end = self._place
                self._place += len(self._delimiter)
                return text[start:end].strip()
            elif sign in _QUOTES:
                quote = sign
            self._place += 1
        return text[start:].strip()

    def _command(self, text: str, *, one_line: bool) -> Step | None:
        word = _WORD.match(text)
        name = word[0].lower() if word else ""
        if not _COMMAND.fullmatch(name):
            return None if one_line or not text else Sql(text)
        words = text[len(name) :].strip()
        if one_line and words.endswith(";") and name not in ("let", "delimiter", "eval"):
            words = words[:-1].rstrip()
        if name == "delimiter":
            self._delimiter = words or ";"
            return None
        if name in _HEREDOC:
            self._heredoc(name, words)
        if name in ("disable_parsing", "disable_testcase"):
            self._to_command(name.replace("disable", "enable", 1))
        return Command(name, words)

    def _heredoc(self, name: str, words: str) -> None:
        given, place = words.split(), _HEREDOC[name]
        if place is None:
            return
        mark = given[place] if len(given) > place else "EOF"
        if self._text[self._place - 1 : self._place] != "\n":
            self._line()
        while self._place < len(self._text):
            if self._line().rstrip().rstrip(";") == mark.rstrip(";"):
                return

    def _to_command(self, name: str) -> None:
        while self._place < len(self._text):
            if self._line().strip().lstrip("-").strip().rstrip(";").split(" ")[0] == name:
                return
