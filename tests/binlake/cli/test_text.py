import pytest

from binlake.cli.text import duration, number, size


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (999.4, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (90_000, "1.5 min"),
        (7_200_000, "2.0 h"),
        (432_000_000, "5.0 d"),
        (-1500, "-1.5 s"),
    ],
)
def test_durations(millis: float | None, text: str) -> None:
    assert duration(millis) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2_000_000, "2.0 MB"), (3 * 10**13, "30.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_numbers() -> None:
    assert number(1234567) == "1,234,567"
