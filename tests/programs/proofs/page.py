"""The page of the proofs. A run replaces the rows and sections of the parts that it ran; the others stay."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.paths import ROOT
from tests.programs.proofs.part import Outcome, Part, Verdict
from tests.programs.proofs.rules import rule_of
from tests.programs.proofs.verdicts import counted

PAGE = ROOT / "docs" / "proofs.md"
_COLUMNS = (*[outcome.value for outcome in Outcome],)
_HEAD = f"""# Proofs

Inputs that nobody here wrote. `make proofs` runs all parts, which takes hours, and writes this page;
`python -m tests.programs.proofs NAME` runs one of them, `--limit` a piece of it. A run goes on where the last one
ended: its verdicts are in `build/proofs`, those of a part that takes long also in `tests/data/proofs`; the program's
help says how to judge anew; "last run" is the day of the last one. "Refused" has a reason that this documentation
gives; "lost by the connector" means that the connector's topic or log shows it; "wrong" is a fault of binlake.

| part | whose | inputs | how many | {" | ".join(_COLUMNS)} | last run |
| --- | --- | --- | ---{" | ---" * len(_COLUMNS)} | --- |
"""
_EXAMPLES, _LENGTH = 3, 160


def page(previous: str, ran: Mapping[Part, Sequence[Verdict]], day: dt.date) -> str:
    """The text of the page.

    Args:
        previous: the page as it is; empty if there is none.
        ran: parts and all their verdicts.
        day: on which they ran.
    """
    rows = dict(re.findall(r"^\| \[(\w+)\]\(#\w+\)( \|.*)$", previous, re.MULTILINE))
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", previous, re.MULTILINE | re.DOTALL))
    for part, verdicts in ran.items():
        rows[part.name], sections[part.name] = _row(part, verdicts, day), "\n".join(_section(part, verdicts))
    table = "".join(f"| [{name}](#{name}){row}\n" for name, row in sorted(rows.items()))
    return _HEAD + table + "".join(f"\n## {name}\n\n{text.strip()}\n" for name, text in sorted(sections.items()))


def _row(part: Part, verdicts: Sequence[Verdict], day: dt.date) -> str:
    counts = counted(verdicts)
    numbers = [len(verdicts), *(counts[outcome] for outcome in Outcome)]
    return f" | {part.owner} | {part.inputs} | " + " | ".join(f"{number:,}" for number in numbers) + f" | {day} |"


def _section(part: Part, verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield part.about
    reasons: dict[tuple[Outcome, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.reason:
            reasons[verdict.outcome, verdict.reason].append(verdict.source)
    if reasons:
        yield "\n| outcome | reason | inputs | for example |\n| --- | --- | --- | --- |"
    order = list(Outcome)
    for (outcome, reason), sources in sorted(reasons.items(), key=lambda one: (order.index(one[0][0]), -len(one[1]))):
        examples = ", ".join(f"`{_example(part, source)}`" for source in sources[:_EXAMPLES])
        rule = rule_of(reason) if outcome is Outcome.REFUSED else None
        where = f" ([{rule.page}]({rule.page}))" if rule is not None else ""
        yield f"| {outcome.value} | {_cell(reason)}{where} | {len(sources):,} | {examples} |"
    yield from _tags(verdicts)


def _example(part: Part, source: str) -> str:
    """An input that is called as a file of ours would be is told from it."""
    return f"{part.name}/{source}" if (ROOT / source.partition("/")[0]).is_dir() else source


def _tags(verdicts: Sequence[Verdict]) -> Iterator[str]:
    tags = sorted({tag for verdict in verdicts for tag in verdict.tags})
    if tags:
        yield f"\n| inputs with | how many | {' | '.join(_COLUMNS)} |\n| --- | ---{' | ---' * len(_COLUMNS)} |"
    for tag in tags:
        tagged = [verdict for verdict in verdicts if tag in verdict.tags]
        counts = counted(tagged)
        shares = (f"{counts[o]:,} ({100 * counts[o] / len(tagged):.0f} %)" if counts[o] else "0" for o in Outcome)
        yield f"| {tag} | {len(tagged):,} | {' | '.join(shares)} |"


def _cell(text: str) -> str:
    return re.sub(r"[|`<>\s]+", " ", text)[:_LENGTH]
