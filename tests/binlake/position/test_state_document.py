"""Documents of a stream's state: what was written is read, and a damaged one names itself and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.position.state_document import StateDocument
from hudilake.errors import CorruptDataError
from hudilake.storage import open_storage

DOCUMENT = StateDocument("notes.json", "the notes", "delete the file", version=3)


def _names(fields: dict[str, Any]) -> list[str]:
    return [str(name) for name in fields["names"]]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    state = open_storage(str(tmp_path))
    assert DOCUMENT.read(state, _names) is None
    DOCUMENT.write(state, {"names": ["ä", "b"]})
    assert DOCUMENT.read(state, _names) == ["ä", "b"]
    assert (tmp_path / "notes.json").read_text(encoding="utf-8") == '{"version": 3, "names": ["ä", "b"]}'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Expecting value"),
        (b"[1]", "cannot be interpreted as an integer"),
        (b"7", "has no attribute"),
        (json.dumps({"version": 2, "names": []}).encode(), "version 2"),
        (json.dumps({"names": []}).encode(), "version"),
        (json.dumps({"version": 3}).encode(), "names"),
        (json.dumps({"version": 3, "names": 1}).encode(), "not iterable"),
    ],
)
def test_a_damaged_document_says_what_to_do(content: bytes, why: str, tmp_path: Path) -> None:
    state = open_storage(str(tmp_path))
    state.write(DOCUMENT.path, content)
    with pytest.raises(CorruptDataError, match=why) as raised:
        DOCUMENT.read(state, _names)
    assert raised.value.what.startswith("the notes cannot be read: ")
    assert (raised.value.do_next, str(raised.value.where["path"])) == ("delete the file", f"{state.uri}/notes.json")
