"""Java properties text, as Hudi keeps it in ``hoodie.properties`` and ``.hoodie_partition_metadata``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

PROPERTIES_PATH = ".hoodie/hoodie.properties"
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SPECIAL = {
    "\\": "\\\\",
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}


def dump_properties(values: Mapping[str, str], comment: str) -> bytes:
    """Properties -> ASCII bytes in the given order, escaped as ``java.util.Properties.store`` does."""
    lines = [f"#{comment}"]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}" for key, value in values.items()]
    return ("\n".join(lines) + "\n").encode("ascii")


def load_properties(data: bytes) -> dict[str, str]:
    """Bytes -> properties, as ``java.util.Properties.load`` reads them (comments, continued lines, escapes)."""
    values: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        end = _key_end(line)
        rest = line[end:].lstrip(" \t\f")
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(" \t\f")
        values[_unescape(line[:end])] = _unescape(rest)
    return values


def _escape(text: str, *, key: bool) -> str:
    out = []
    for i, char in enumerate(text):
        if char == " ":
            out.append("\\ " if key or i == 0 else " ")
        elif char in _SPECIAL:
            out.append(_SPECIAL[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[j] << 8 | units[j + 1]:04X}" for j in range(0, len(units), 2)]
    return "".join(out)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda m: _one(m.group(1)), text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _one(code: str) -> str:
    return chr(int(code[1:], 16)) if len(code) == 5 else _UNESCAPED.get(code, code)


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        line = pending + line
        pending = ""
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
    if pending:
        yield pending


def _key_end(line: str) -> int:
    escaped = False
    for i, char in enumerate(line):
        if not escaped and char in "=: \t\f":
            return i
        escaped = char == "\\" and not escaped
    return len(line)
