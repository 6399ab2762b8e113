"""A settings file as text: YAML with the line of every value, and references to secrets.

``${env:NAME}`` and ``${file:/path}`` may stand anywhere in a string; ``$${`` writes a literal ``${``. A file's last
line break is not part of the secret; a relative path starts at the directory of the settings file.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hudilake.errors import ConfigError

KeyPath = tuple[str | int, ...]

_REFERENCE = re.compile(r"\$(?P<literal>\$)?\{(?:(?P<kind>\w+):)?(?P<name>[^}]*)\}")
#: Far more than any settings need. An alias counts each time, so aliases of aliases cannot fill the memory.
_MAX_NODES = 100_000
_MAX_DEPTH = 50
_TOO_LARGE = f"it holds more than {_MAX_NODES} values, or is nested deeper than {_MAX_DEPTH}, aliases followed"
#: Numbers that YAML 1.1 reads in another base than they look: 012 is 10, and 1:30 is 90.
_MISREAD = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
_TAG = "tag:yaml.org,2002:"
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """One mistake: its place in the file, and its message. The message never contains a value of the file."""

    path: KeyPath
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line else ""
        return f"{format_path(self.path)}: {self.message}{place}"


def format_path(path: KeyPath) -> str:
    """``("tables", "overrides", 1, "buckets")`` -> ``tables.overrides[1].buckets``; odd keys as ``["a.b"]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text or "(whole file)"


@dataclass
class Document:
    """A parsed file.

    ``values``: the tree with resolved references; keys are texts as they are written, also ``no`` and ``1``.
    ``written``: the original text of every string with a reference. ``problems``: duplicate keys, references that
    cannot be resolved, and numbers that look like others.
    """

    values: Any
    written: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[SettingsProblem] = field(default_factory=list)
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line_of(self, path: KeyPath) -> int | None:
        """The line of a value, or of the nearest enclosing element in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read_text(file: Path) -> str:
    """The text of a settings file. Raises ConfigError."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        do_next = _like(file) or "give the path of a YAML file"
        raise ConfigError(f"cannot read the settings file: {why}", do_next=do_next, path=file) from error


def _like(file: Path) -> str:
    """A question with the settings file of the same folder whose name is like this one; "" if there is none."""
    names = [other.name for end in ("yaml", "yml") for other in file.parent.glob(f"*.{end}") if other != file]
    near = difflib.get_close_matches(file.name, names, n=1)
    return f"did you mean {file.with_name(near[0])}?" if near else ""


def document_of(text: str, origin: str, directory: Path, environ: Mapping[str, str] | None = None) -> Document:
    """The same as ``parse``, but raises ConfigError, which names the file (``origin``) and quotes nothing of it."""
    try:
        return parse(text, directory, environ)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{origin} is not YAML: {_explained(error)}", do_next="correct the file; ${...} needs quotes inside { }"
        ) from None  # the parser's own error quotes the line, which may hold a secret


def _explained(error: yaml.YAMLError) -> str:
    """The parser's complaint and its line, without the text of the file."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{problem} (line {mark.line + 1})" if mark is not None else str(problem)


def parse(text: str, directory: Path, environ: Mapping[str, str] | None = None) -> Document:
    """Parse YAML and resolve its references.

    Args:
        text: the YAML.
        directory: the base of relative ``${file:...}`` paths.
        environ: variables for ``${env:...}``; the process's environment if None.

    Raises:
        yaml.YAMLError: the text is not YAML.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        document = Document(values=None)
        if node is not None:
            _note_lines(node, (), document)
            document.values = loader.construct_document(node)
    except RecursionError as error:
        raise yaml.YAMLError(_TOO_LARGE) from error
    finally:
        loader.dispose()
    resolver = _Resolver(directory, os.environ if environ is None else environ, document)
    document.values = resolver.resolve(document.values, ())
    return document


def _note_lines(node: yaml.Node, path: KeyPath, document: Document) -> None:
    document.lines[path] = node.start_mark.line + 1
    if len(path) > _MAX_DEPTH or len(document.lines) > _MAX_NODES:
        raise yaml.YAMLError(_TOO_LARGE)
    if (
        isinstance(node, yaml.ScalarNode)
        and node.tag in (f"{_TAG}int", f"{_TAG}float")
        and _MISREAD.fullmatch(node.value)
    ):
        why = "YAML reads it as another number: write it in decimal digits, or in quotes for a text"
        document.problems.append(SettingsProblem(path, why, node.start_mark.line + 1))
    seen: set[str | int] = set()
    for part, child, line in _children(node):
        if part in seen and part != "<<":
            document.problems.append(SettingsProblem((*path, part), "is given twice", line))
        seen.add(part)
        _note_lines(child, (*path, part), document)
        document.lines[(*path, part)] = line


def _children(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                key.tag = f"{_TAG}str"  # the name of a column, also where YAML has another value for the word
            yield str(key.value), value, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield i, value, value.start_mark.line + 1


@dataclass
class _Resolver:
    directory: Path
    environ: Mapping[str, str]
    document: Document

    def resolve(self, value: Any, path: KeyPath) -> Any:  # noqa: ANN401 - any YAML tree
        if isinstance(value, dict):
            return {str(k): self.resolve(v, (*path, str(k))) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolve(v, (*path, i)) for i, v in enumerate(value)]
        if isinstance(value, str) and _REFERENCE.search(value):
            return self._resolve_text(value, path)
        return value

    def _resolve_text(self, text: str, path: KeyPath) -> str:
        self.document.written[path] = text
        try:
            return _REFERENCE.sub(self._look_up, text)
        except LookupError as error:
            line = self.document.line_of(path)
            self.document.problems.append(SettingsProblem(path, str(error.args[0]), line))
            return text

    def _look_up(self, match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"]
        if match["literal"]:
            return match[0][1:]
        if kind == "env":
            if name not in self.environ:
                raise LookupError(f"environment variable {name} is not set")
            return self.environ[name]
        if kind == "file":
            return self._read(self.directory / name)
        raise LookupError("a reference is ${env:NAME} or ${file:/path}; write $${ for a literal ${")

    @staticmethod
    def _read(path: Path) -> str:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise LookupError(f"file {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LookupError(f"file {path} is not UTF-8 text") from error
        return text.removesuffix("\n").removesuffix("\r")
