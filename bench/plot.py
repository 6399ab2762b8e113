"""Draws bars with their spread as an SVG picture, without a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT = 720, 150, 110
_BAR, _GAP, _HEAD = 18, 6, 34
_OURS, _THEIRS, _SPREAD = "#2166ac", "#b2b2b2", "#333333"


@dataclass(frozen=True)
class Bar:
    """A writer's median, and the least and the greatest value of its rounds."""

    name: str
    value: float
    least: float
    most: float


@dataclass(frozen=True)
class Panel:
    """One workload."""

    title: str
    unit: str
    bars: Sequence[Bar]

    @property
    def height(self) -> int:
        """The height in pixels."""
        return _HEAD + len(self.bars) * (_BAR + _GAP) + 14


def draw(panels: Sequence[Panel]) -> str:
    """The panels below each other, each with its own scale from zero."""
    parts, top = [], 10
    for panel in panels:
        parts += _panel(panel, top)
        top += panel.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{top}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _panel(panel: Panel, top: int) -> list[str]:
    parts = [
        f'<text x="10" y="{top + 16}" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{_LEFT}" y="{top + 16}" fill="#666666">{escape(panel.unit)}</text>',
    ]
    scale = (_WIDTH - _LEFT - _RIGHT) / max((bar.most for bar in panel.bars), default=1.0)
    for number, bar in enumerate(panel.bars):
        y = top + _HEAD - 6 + number * (_BAR + _GAP)
        colour = _OURS if bar.name == "binlake" else _THEIRS
        middle, low, high = y + _BAR / 2, _LEFT + bar.least * scale, _LEFT + bar.most * scale
        parts += [
            f'<text x="{_LEFT - 6}" y="{y + 13}" text-anchor="end">{escape(bar.name)}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{bar.value * scale:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{_SPREAD}" stroke-width="1.5"/>',
            f'<text x="{high + 6:.1f}" y="{y + 13}">{_number(bar.value)}</text>',
        ]
    return parts


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
