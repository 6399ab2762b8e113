"""Geometries as text: a column at once gives what each text alone gives."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from binlake.decode.types import wkt

TEXTS = [
    "POINT (1.5 -2)",
    " POINT ( 1e5 .5 ) ",
    "LINESTRING(0 0,1 1)",
    "LINESTRING EMPTY",
    "POLYGON((0 0,1 1,2 2,0 0),(1 1,2 2))",
    "MULTIPOINT(1 1,2 2)",
    "MULTIPOINT((1 1),(2 2))",
    "MULTIPOLYGON(((0 0,1 1,2 2,0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(1 2,3 4))",
]
PIECES = [*"(), +-Ex0", "1", "-2.5", "1e5", ".5", "5.", "((", "POINT", "EMPTY", "MULTIPOINT", "\u0663", ""]


def one_by_one(texts: list[str | None]) -> list[bytes | None] | None:
    try:
        return [None if text is None else wkt.ewkb(text) for text in texts]
    except ValueError:
        return None


def at_once(texts: list[str | None]) -> list[bytes | None] | None:
    try:
        found: list[bytes | None] = wkt.ewkb_column(pa.array(texts, pa.string())).to_pylist()
    except ValueError:
        return None
    return found


def mangled(dice: random.Random, text: str) -> str:
    for _ in range(dice.randrange(3)):
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(PIECES) + text[at + dice.randrange(3) :]
    return text


def test_good_texts() -> None:
    texts = [*TEXTS, None, *TEXTS]
    assert at_once(texts) == one_by_one(texts)
    assert at_once([]) == []
    assert at_once([None, None]) == [None, None]
    assert at_once([*texts, "POINT(1-2)"]) == one_by_one([*texts, "POINT(1-2)"])
    sliced = wkt.ewkb_column(pa.array(texts).slice(3, 12))
    assert sliced.to_pylist() == one_by_one(texts[3:15])


def test_texts_of_more_layouts_than_are_kept() -> None:
    texts: list[str | None] = [f"LINESTRING ({','.join(['1 2'] * n)})" for n in range(1, 200)]
    assert at_once(texts) == one_by_one(texts)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_mangled_texts(seed: int) -> None:
    dice = random.Random(seed)
    good = 0
    for _ in range(2_000):
        texts: list[str | None] = [mangled(dice, dice.choice(TEXTS)) for _ in range(dice.choice([1, 1, 3]))]
        texts += [None] * dice.randrange(2)
        expected = one_by_one(texts)
        assert at_once(texts) == expected, texts
        good += expected is not None
    assert 200 < good < 1_800


def test_a_number_at_a_wrong_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    layout = wkt._layout
    monkeypatch.setattr(wkt, "_layout", lambda text: (layout(text)[0], layout(text)[1][::-1]))
    texts: list[str | None] = list(TEXTS)
    assert at_once(texts) != one_by_one(texts)
