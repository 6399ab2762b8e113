"""Patterns of LIKE beside Python's regular expressions, over random patterns and values."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lakemetastore.catalog.filters.patterns import like

TEXTS = st.text("ab.*%_\\\n[é", max_size=6)


def expected(pattern: str) -> re.Pattern[str]:
    is_expression = ".*" in pattern or not set("%_") & set(pattern)
    forms = {".*": ".*", ".": "."} if is_expression else {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|\.\*|." if is_expression else r"\\.|.", pattern, re.DOTALL)
    read = [re.escape(t[1]) if len(t) == 2 and t[0] == "\\" else forms.get(t) or re.escape(t) for t in tokens]
    return re.compile("".join(read), re.DOTALL)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=6))
@example("%\\", ["*b\\", "\\", "bb"])
@example("%\\\\", ["\\", "b\\", "b"])
@example("\\\\.*", ["\\", "\\b", "b"])
def test_a_pattern_matches_whole_values(pattern: str, values: list[str]) -> None:
    met = like(pattern).matches(pa.array(values, pa.string())).to_pylist()
    assert met == [expected(pattern).fullmatch(value) is not None for value in values]
