"""Python's codecs read what the server reads: each character of each set, asked one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from binlake.source.binlog.charsets import BINARY_COLLATION, CODECS, charsets_of
from embedded.mariadb import EmbeddedMariaDB

_SINGLE = [
    "ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1257", "cp850", "cp852", "koi8r", "tis620",
]  # fmt: skip
_PAIRS = ["gbk", "gb2312", "cp932", "euckr"]
_UNICODE = {"utf8", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"}


def read_by_server(server: EmbeddedMariaDB, name: str, codes: list[bytes]) -> Iterator[tuple[bytes, str]]:
    """The bytes that the set has as they are, and the text that the server makes of them."""
    values = ", ".join(f"(CONVERT(UNHEX('{code.hex()}') USING {name}))" for code in codes)
    made = f"CREATE TEMPORARY TABLE codes (t VARCHAR(4) CHARACTER SET {name}); INSERT IGNORE INTO codes VALUES {values}"
    asked = "SELECT HEX(t), HEX(CONVERT(t USING utf8mb4)) FROM codes"
    wanted = set(codes)
    for line in server.execute(f"CREATE DATABASE IF NOT EXISTS sets; USE sets; SET sql_mode = ''; {made}; {asked}"):
        stored, text = (bytes.fromhex(part) for part in line.split("\t"))
        if stored in wanted:
            yield stored, text.decode()


def differing(server: EmbeddedMariaDB, name: str, codes: list[bytes], codec: str) -> tuple[int, list[bytes]]:
    """How many codes the server reads, and those that the codec reads as another character."""
    read, wrong = 0, []
    for code, text in read_by_server(server, name, codes):
        read += 1
        try:
            if code.decode(codec) != text:
                wrong.append(code)
        except UnicodeDecodeError:  # refused, whatever the server makes of it
            continue
    return read, wrong


@pytest.mark.first(4)
@pytest.mark.parametrize("name", _SINGLE)
def test_every_byte(server: EmbeddedMariaDB, name: str) -> None:
    charsets_of({BINARY_COLLATION: ("binary", 1)})
    read, wrong = differing(server, name, [bytes([byte]) for byte in range(256)], CODECS[name])
    assert read >= 128
    assert wrong == []


@pytest.mark.full
@pytest.mark.parametrize("name", _PAIRS)
def test_every_pair_of_bytes(server: EmbeddedMariaDB, name: str) -> None:
    codes = [bytes([first, second]) for first in range(0x80, 0x100) for second in range(0x40, 0x100)]
    read, wrong = differing(server, name, codes, CODECS[name])
    assert read >= 5_000
    assert wrong == []


def test_a_codec_that_differs_is_noticed(server: EmbeddedMariaDB) -> None:
    """Why cp866 is not there."""
    _, wrong = differing(server, "cp866", [bytes([byte]) for byte in range(256)], "cp866")
    assert wrong
    assert "cp866" not in CODECS


def test_all_sets_were_asked_about() -> None:
    assert CODECS.keys() == {*_SINGLE, *_PAIRS} | _UNICODE
