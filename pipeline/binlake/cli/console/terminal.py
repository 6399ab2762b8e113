"""The lake page at a terminal: live, sorted by any heading, filtered as one types; works over ssh and inside tmux.

It shows the rows of the lake page, of the same watch. Names come from the source: they are printed as plain text, with
escapes in place of characters that steer a terminal.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Input, Static

from binlake.cli.console.lake_page import ORDERS, WORST_FIRST, LakeRow, lake_rows, matching, stream_head
from binlake.cli.console.watch import StreamWatch
from binlake.cli.text import number, one_line
from binlake.position.in_hand import in_hand_words
from hudilake.wording import counted

_EVERY_S = 1.0
#: Characters by which a cell may grow before all are drawn anew.
_SPARE = 3
#: Lines of what is in hand.
_HAND_LINES = 6
_STYLES = {"unreadable": "red", "stopped": "red", "paused": "yellow", "loading": "yellow", "behind": "yellow"}
_STYLES |= {"ok": "", "unread": "dim"}
_STATES = {"running": "green", "died": "bold red", "failed": "bold red", "stopped": "yellow", "unknown": "yellow"}
#: Columns of narrow terminals; the others follow where there is room.
_HEADINGS = tuple(heading for heading in ORDERS if heading != "table")


def _cells(row: LakeRow) -> list[Text]:
    style = _STYLES[row.state]
    cells = [Text(one_line(cell), style=style, justify="right") for cell in row.cells().values()]
    return [Text(one_line(row.table), style=style), Text(row.state, style=style), *cells]


class LakeTop(App[None]):
    """The tables of one stream.

    Args:
        watch: of the stream; it has been started.
    """

    CSS = """
    #head { height: auto; padding: 0 1; }
    #filter { display: none; height: 3; }
    #filter.shown { display: block; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar = [
        Binding("s", "sort(1)", "next order"),
        Binding("S", "sort(-1)", "former order"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "all", "all tables"),
        Binding("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, watch: StreamWatch) -> None:
        super().__init__()
        self.stream_watch = watch
        self.order = WORST_FIRST
        self.words = ""
        self.shown: list[LakeRow] = []
        self._drawn: list[list[Text]] = []
        self._widths: list[int] = []
        self._drawn_order = ""

    def compose(self) -> ComposeResult:
        """The head, the filter, the table, the keys."""
        yield Static(id="head", markup=False)
        yield Input(placeholder="words of the table's name or state", id="filter")
        yield DataTable(id="tables", cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Show what was seen, and again at intervals."""
        self.table.focus()
        self.show()
        self.set_interval(_EVERY_S, self.show)
        self.watch(self.table, "scroll_y", self._draw_visible, init=False)

    @property
    def table(self) -> DataTable[Text]:
        """The table of tables."""
        widget: DataTable[Text] = self.query_one("#tables", DataTable)
        return widget

    def show(self) -> None:
        """Draw the newest view; the cursor stays on its table."""
        before = self.shown[self.table.cursor_row].table if self.table.cursor_row < len(self.shown) else ""
        rows = lake_rows(self.stream_watch.view, self.stream_watch.settings)
        self.shown = matching(rows, self.words, self.order)
        if self.order != self._drawn_order or len(self.shown) != len(self._drawn):
            self._draw_anew()
        place = next((place for place, row in enumerate(self.shown) if row.table == before), None)
        if place is not None and place != self.table.cursor_row:
            self.table.move_cursor(row=place)
        self._draw_visible()
        self.query_one("#head", Static).update(self._head(len(rows)))

    def _draw_anew(self) -> None:
        """Draw all rows. Columns get the width of their widest cell and some more, so that the table measures no cell
        again, and a number that grows does not move the others."""
        headings = [self._heading(one) for one in ("table", "state", *_HEADINGS)]
        self._drawn, self._drawn_order = [_cells(row) for row in self.shown], self.order
        columns = zip(headings, *self._drawn, strict=True)
        self._widths = [max(one.cell_len for one in column) + _SPARE for column in columns]
        self.table.clear(columns=True)
        for heading, width in zip(headings, self._widths, strict=True):
            self.table.add_column(heading, width=width)
        self.table.add_rows(self._drawn)

    def _draw_visible(self) -> None:
        """Draw the cells that changed of the rows that are seen; the others are drawn when they are scrolled to."""
        first = max(0, int(self.table.scroll_y) - 1)
        for place in range(first, min(len(self.shown), first + self.table.size.height + 2)):
            was, cells = self._drawn[place], _cells(self.shown[place])
            if any(one.cell_len > width for one, width in zip(cells, self._widths, strict=True)):
                self._draw_anew()
                return
            for column, (old, new) in enumerate(zip(was, cells, strict=True)):
                if old != new:
                    self.table.update_cell_at(Coordinate(place, column), new)
            self._drawn[place] = cells

    def action_sort(self, by: int) -> None:
        """Order by the next heading, or the one before."""
        headings = list(ORDERS)
        self.order = headings[(headings.index(self.order) + by) % len(headings)]
        self.show()

    def action_filter(self) -> None:
        """Begin to type words."""
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.focus()

    def action_all(self) -> None:
        """Show all tables again."""
        field = self.query_one("#filter", Input)
        field.value, self.words = "", ""
        field.remove_class("shown")
        self.table.focus()
        self.show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as one types."""
        self.words = event.value
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the tables; the words stay."""
        self.table.focus()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Order by the heading that was clicked."""
        heading = event.label.plain.removesuffix(" *")
        self.order = heading if heading in ORDERS else self.order
        self.show()

    def _heading(self, heading: str) -> Text:
        return Text(f"{heading} *", style="bold") if heading == self.order else Text(heading)

    def _head(self, total: int) -> Text:
        head = stream_head(self.stream_watch.view)
        lag = f"lag {head['lag']}" if head["lag"] is not None else "lag not known"
        words = [f"{head['name']}: ", f"{number(len(self.shown))} of {counted(total, 'table')}, {lag}"]
        text = Text(one_line(words[0]), style="bold")
        text.append(head["words"], style=_STATES[head["state"]])
        text.append(f"  {words[1]}, {number(head['quarantined'])} quarantined")
        if head["said"]:
            text.append(f"\n{one_line(head['said'])}", style="dim")
        for line in in_hand_words(head["in_hand"])[:_HAND_LINES]:
            text.append(f"\n{one_line(line)}", style="dim")
        for line in head["hangs"]:
            text.append(f"\n{one_line(line)}", style="yellow")
        for held in head["held"]:
            text.append(f"\n{one_line(f'{held.state}: {held.table} {held.why}')}", style="yellow")
        return text
