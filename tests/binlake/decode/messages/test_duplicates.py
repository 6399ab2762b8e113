"""Members that an envelope names twice are found wherever they stand; what looks like one is none."""

from __future__ import annotations

import pytest

from binlake.decode.messages.duplicates import with_duplicate_members
from binlake.decode.messages.envelopes import _ENVELOPE

_SOURCE = '{"db":"d","table":"t","file":"bin.1","pos":4}'


def _message(note: str, extra: str = "", first: str = "before") -> bytes:
    image = f'{{"id":1,"note":"{note}"}}'
    images = [f'"before":{image}', f'"after":{image}']
    text = ",".join(images if first == "before" else images[::-1])
    return f'{{{text},"source":{_SOURCE},"op":"u"{extra}}}'.encode()


def _found(messages: list[bytes]) -> list[int]:
    return with_duplicate_members(messages, [_ENVELOPE(m) for m in messages])


@pytest.mark.parametrize("first", ["before", "after"])
@pytest.mark.parametrize("shift", range(8))
@pytest.mark.parametrize("extra", [',"op":"c"', ',"before":null', ',"after":null', f',"source":{_SOURCE}'])
def test_a_member_twice_is_found_at_any_place(extra: str, shift: int, first: str) -> None:
    messages = [_message("x" * (3 * n + shift), first=first) for n in range(9)]
    assert _found(messages) == []  # the control
    messages[5] = _message("x" * shift, extra, first)
    assert _found(messages) == [5]


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("note", ["before", "thereafter", "source", "resource", "forest", 'op\\":'])
def test_text_that_looks_like_a_member_is_none(note: str, shift: int) -> None:
    messages = [_message("x" * shift + note) for _ in range(5)]
    assert _found(messages) == []
    assert _found([*messages, _message(note, ',"op":"c"')]) == [5]


@pytest.mark.parametrize(
    ("old", "new"), [('"after":', '"after" :'), ('"after":', '"after"\n:'), ('"after"', '"\\u0061fter"')]
)
def test_a_member_that_is_spelled_otherwise_hides_none(old: str, new: str) -> None:
    """Counted together, a message with an odd spelling and one with a member twice have the right number of members."""
    odd = _message("x").replace(old.encode(), new.encode())
    assert _found([_message("x"), odd]) == []  # the control
    assert _found([odd, _message("x", ',"after":null')]) == [1]
    assert _found([_message("x"), odd[:-1] + b',"after":null}']) == [1]
