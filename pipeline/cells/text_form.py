"""The text form of row keys and qualifiers back to their bytes (``decode.cells`` says what the form is)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.cells.buffers import binary_array, bytes_of

_BACKSLASH: Final = ord("\\")
_ESCAPE: Final = 4  # characters of \xHH
_NO_DIGIT: Final = 16


def _hex_digits() -> npt.NDArray[np.uint8]:
    digits = np.full(256, _NO_DIGIT, dtype=np.uint8)
    digits[np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)] = np.arange(16)
    return digits


_DIGITS: Final = _hex_digits()


def bytes_of_text(texts: pa.Array) -> pa.Array:
    """Texts of n row keys or qualifiers -> binary array of n; nulls stay null.

    Raises ValueError for a text with a backslash that starts no ``\\xHH``, which the text form never has.
    """
    if not pc.any(pc.match_substring(texts, "\\"), min_count=0).as_py():
        return texts.cast(pa.binary())
    data, bounds = bytes_of(texts)
    at = np.flatnonzero(data == _BACKSLASH)
    ends = bounds[np.searchsorted(bounds, at, side="right")]
    if (at + _ESCAPE > ends).any():
        raise ValueError("a text form ends within an escape")
    high, low = _DIGITS[data[at + 2]], _DIGITS[data[at + 3]]
    if (data[at + 1] != ord("x")).any() or (high == _NO_DIGIT).any() or (low == _NO_DIGIT).any():
        raise ValueError("a backslash in a text form starts no \\xHH")
    out = data.copy()
    out[at] = high << 4 | low
    kept = np.ones(len(data), dtype=bool)
    for place in range(1, _ESCAPE):
        kept[at + place] = False
    lengths = np.diff(np.concatenate([[0], np.cumsum(kept)])[bounds])
    return binary_array(out[kept], lengths, texts.is_valid().to_numpy(zero_copy_only=False))
