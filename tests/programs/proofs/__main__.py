"""``python -m tests.programs.proofs [PART...]``: judge what others wrote, and write docs/proofs.md.

Without names all parts run. Ends with exit code 1 if a verdict is "wrong".
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from hudilake.clock import now_ms
from tests.paths import ROOT
from tests.programs.proofs.catalog import PARTS
from tests.programs.proofs.page import PAGE, page
from tests.programs.proofs.part import ComparingPart, Outcome, Part, Task, Verdict
from tests.programs.proofs.verdicts import add, counted, keep, kept, known


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code."""
    given = _arguments().parse_args(argv)
    unknown = set(given.parts) - {part.name for part in PARTS}
    if unknown:
        print(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in PARTS)}")
        return 2
    warnings.simplefilter("ignore")
    chosen = [part for part in PARTS if not given.parts or part.name in given.parts]
    options = [option.partition("=")[::2] for option in given.option]
    ran: dict[Part, list[Verdict]] = {}
    for part in chosen:
        words = tuple(value for name, value in options if name == part.name)
        ran[part] = run(part, given.place, given.limit, given.start, words, again=given.again)
    print("\n".join(line for part, verdicts in ran.items() for line in told(part, verdicts)))
    if given.page:
        for part in chosen:
            keep(kept(part.name), known(part.name, given.place))
        before, judged = PAGE.read_text() if PAGE.exists() else "", {part: v for part, v in ran.items() if v}
        PAGE.write_text(page(before, judged, dt.datetime.fromtimestamp(now_ms() / 1000, dt.UTC).date()))
    return int(any(verdict.outcome is Outcome.WRONG for verdicts in ran.values() for verdict in verdicts))


def run(
    part: Part,
    place: Path,
    limit: int | None = None,
    start: int = 0,
    options: tuple[str, ...] = (),
    *,
    again: bool = False,
) -> list[Verdict]:
    """Judge inputs of a part that have no verdict yet; all its verdicts, those of earlier runs too.

    Args:
        part: that is run.
        place: of verdicts and of what parts keep.
        limit, start, options: see Task.
        again: whether inputs that have a verdict are judged, too.
    """
    file = place / f"{part.name}.jsonl"
    judged = frozenset(verdict.source for verdict in known(part.name, place) if not again)
    own = place / part.name
    own.mkdir(parents=True, exist_ok=True)
    with closing(part.run(Task(own, limit, start, judged, options))) as verdicts:  # type: ignore[type-var]
        for verdict in verdicts:
            add(file, verdict)
            print(f"{part.name}: {verdict.source}: {verdict.outcome.value} {verdict.reason}".rstrip(), flush=True)
    verdicts_of_all = known(part.name, place)
    return part.compared(verdicts_of_all, place) if isinstance(part, ComparingPart) else verdicts_of_all


def told(part: Part, verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts of a part in words: how many, and each that is wrong."""
    counts = counted(verdicts)
    numbers = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome)
    wrong = [f"  {v.source}: {v.reason}: {v.detail}" for v in verdicts if v.outcome is Outcome.WRONG]
    return [f"{part.name}: {len(verdicts)} {part.inputs} of {part.owner}: {numbers}", *wrong]


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.proofs", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(part.name for part in PARTS)}; all by default")
    parser.add_argument("--limit", type=int, help="how many inputs of each part")
    parser.add_argument("--start", type=int, default=0, help="the first seed, or the number of the first input")
    parser.add_argument("--option", action="append", default=[], help="PART=WORD: what only this part understands")
    parser.add_argument("--again", action="store_true", help="judge inputs that have a verdict, too")
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "proofs", help="of verdicts; removed: all anew")
    parser.add_argument("--page", action=argparse.BooleanOptionalAction, default=True, help="write docs/proofs.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
