"""What a program writes where its output is a terminal, a pipe or a file."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.paths import ROOT

ROWS, COLUMNS = 50, 180
#: What libraries ask when they decide on colours and widths; a test sets each itself.
_ASKED = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES", "TERM", "COLORTERM")
_ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def in_terminal(arguments: Sequence[str], **environment: str) -> str:
    """The output of a Python process whose standard streams are a terminal of 50 lines and 180 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(environment)
    ) as process:
        os.close(theirs)
        pieces = []
        while piece := _read(ours):
            pieces.append(piece)
    os.close(ours)
    text = b"".join(pieces).decode().replace("\r\n", "\n")
    assert process.returncode == 0, text
    return text


def in_pipe(arguments: Sequence[str], **environment: str) -> str:
    """The output of a Python process whose standard output and error are a pipe."""
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(environment),
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.decode()


def in_file(file: Path, arguments: Sequence[str], **environment: str) -> str:
    """The output of a Python process whose standard output and error are a file."""
    with file.open("wb") as opened:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, stdout=opened, stderr=subprocess.STDOUT, env=_environment(environment), check=False
        )
    assert done.returncode == 0, file.read_text()
    return file.read_text()


def plain(text: str) -> str:
    """The text without what steers the terminal."""
    return _ESCAPE.sub("", text)


def colours(text: str) -> set[str]:
    """The colours that the text sets: SGR codes 30 to 37, 90 to 97, 38 and the same of the background."""
    codes = {code for codes, kind in _ESCAPE.findall(text) if kind == "m" for code in codes.split(";")}
    return {code for code in codes if code and (30 <= int(code) <= 49 or 90 <= int(code) <= 107) and int(code) != 39}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO when the last process has closed its side
        return b""


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _ASKED}
    paths = os.pathsep.join(str(path) for path in (ROOT / "pipeline", ROOT))
    return {**kept, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8", "TERM": "xterm-256color", **more}
