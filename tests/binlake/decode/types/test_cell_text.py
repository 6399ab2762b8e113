"""The text form of row keys and qualifiers, against HBase's rule written out byte by byte."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.types.cell_text import bytes_of, text_of

VALUES = st.lists(
    st.none() | st.binary(max_size=6) | st.sampled_from([b"__empty__", b"__null__", b"a,b", b"\\x2C", b"_"])
)


def written(value: bytes) -> str:
    text = "".join(chr(b) if 0x20 <= b <= 0x7E and chr(b) not in "\\," else f"\\x{b:02X}" for b in value)
    return f"\\x5F{text[1:]}" if text in ("__empty__", "__null__") else text


@given(VALUES, st.integers(0, 3))
def test_every_value_has_one_text(values: list[bytes | None], start: int) -> None:
    array = pa.array(values, pa.binary()).slice(start)
    texts = text_of(array)
    assert texts.to_pylist() == [None if value is None else written(value) for value in values[start:]]
    assert bytes_of(texts).equals(array)


@given(st.text(alphabet="\\x5FA2C_emptynul,a\0é", max_size=12))
def test_a_text_is_read_only_if_a_value_has_it(text: str) -> None:
    try:
        (value,) = bytes_of(pa.array([text])).to_pylist()
    except ValueError:
        return
    assert written(value) == text


@pytest.mark.parametrize("text", ["\\", "\\x", "\\x4", "\\x5f", "\\x41", "\\X00", "a,b", "é", "__null__", "\\x5Fx"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"text|escape|digits|backslash"):
        bytes_of(pa.array(["fine", text, "\\x00"]))
