"""The verdicts of a part: a run's own as JSON lines, in the order in which they came; those that the repository has.

``tests/data/proofs/PART.txt`` keeps the verdicts of a part whose run takes longer than a machine lives. Verdicts of one
outcome and reason stand together: a line ``outcome, reason, tags`` with tabs between, and an indented line for each
input, with the detail where it is not equal. A part has the file if it is there: an empty one will do at first.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.paths import DATA
from tests.programs.proofs.part import Outcome, Verdict

#: The directory of files that the repository has.
KEPT = DATA / "proofs"
_LENGTH = 400
_TOLD = (Outcome.REFUSED, Outcome.LOST, Outcome.WRONG)


def load(file: Path) -> list[Verdict]:
    """The newest verdict of each input. A last line that a killed run left unfinished is removed."""
    if not file.exists():
        return []
    whole, _, rest = file.read_text().rpartition("\n")
    if rest:
        file.write_text(whole + "\n" * bool(whole))
    newest: dict[str, Verdict] = {}
    for line in whole.splitlines():
        document = json.loads(line)
        typed = {"outcome": Outcome(document["outcome"]), "tags": tuple(document.get("tags", ()))}
        newest[document["source"]] = Verdict(**document | typed)
    return list(newest.values())


def kept(part: str) -> Path:
    """Where the repository has the verdicts of a part."""
    return KEPT / f"{part}.txt"


def known(part: str, place: Path) -> list[Verdict]:
    """The newest verdict of each input of a part: of runs at a place, else of the repository."""
    verdicts = [*load_kept(kept(part)), *load(place / f"{part}.jsonl")]
    return list({verdict.source: verdict for verdict in verdicts}.values())


def add(file: Path, verdict: Verdict) -> None:
    """Keep one more."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(verdict), ensure_ascii=False) + "\n")


def load_kept(file: Path) -> list[Verdict]:
    """The verdicts that the repository has in a file; none if it is not there."""
    verdicts: list[Verdict] = []
    outcome, reason, tags = Outcome.SKIPPED, "", tuple[str, ...]()
    for line in file.read_text().splitlines() if file.exists() else ():
        first, *rest = line.split("\t")
        if first.startswith(" "):
            verdicts.append(Verdict(first.strip(), outcome, reason, "".join(rest), tags))
        else:
            outcome, reason, tags = Outcome(first), rest[0], tuple(rest[1:])
    return verdicts


def keep(file: Path, verdicts: Sequence[Verdict]) -> None:
    """Write them for the repository, where the file is there."""
    if not file.exists():
        return
    groups: dict[tuple[int, str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[list(Outcome).index(verdict.outcome), _line(verdict.reason), verdict.tags].append(verdict)
    lines: list[str] = []
    for (number, reason, tags), ones in sorted(groups.items()):
        lines.append("\t".join((list(Outcome)[number].value, reason, *tags)))
        for one in sorted(ones, key=lambda verdict: verdict.source):
            lines.append(f"  {one.source}" + f"\t{_line(one.detail)[:_LENGTH]}" * (one.outcome in _TOLD))
    file.write_text("".join(f"{line}\n" for line in lines))


def _line(text: str) -> str:
    return " ".join(text.encode(errors="backslashreplace").decode().split())


def counted(verdicts: Sequence[Verdict]) -> Counter[Outcome]:
    """How many there are of each outcome."""
    return Counter(verdict.outcome for verdict in verdicts)
