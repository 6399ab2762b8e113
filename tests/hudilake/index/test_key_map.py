"""The index by key against a dict, with keys of equal hashes."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.java_hash import java_string_hash
from hudilake.index.key_map import KeyMap

#: "Aa" and "BB" have one hash, and so have all words of them of one length.
WORDS = ["".join(parts) for parts in itertools.product(("Aa", "BB"), repeat=5)]


@given(puts=st.lists(st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), st.integers(-9, 9), max_size=40)))
def test_the_last_value_of_every_key_is_found(puts: list[dict[str, int]]) -> None:
    index, model = KeyMap(2), dict[str, int]()
    for entries in puts:
        values = np.array([list(entries.values()), [-v for v in entries.values()]], dtype=np.int64).reshape(2, -1)
        index.put(pa.array(list(entries), pa.string()), values)
        model |= entries
    asked = sorted({*WORDS, *model, "absent"})
    found = index.get(pa.array(asked, pa.string()), 77)
    assert found[0].tolist() == [model.get(key, 77) for key in asked]
    assert found[1].tolist() == [-model[key] if key in model else 77 for key in asked]
    assert sum(len(run.keys) for run in index.runs) <= 2 * len(model) + 40


def test_the_words_have_one_hash() -> None:
    assert len(set(java_string_hash(pa.array(WORDS)).tolist())) == 1
