"""The verdicts of a part, kept as JSON lines in the order in which they came."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.programs.proofs.part import Outcome, Verdict


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


def add(file: Path, verdict: Verdict) -> None:
    """Keep one more."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(verdict), ensure_ascii=False) + "\n")


def counted(verdicts: Sequence[Verdict]) -> Counter[Outcome]:
    """How many there are of each outcome."""
    return Counter(verdict.outcome for verdict in verdicts)
