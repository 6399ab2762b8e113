"""What decides the wide rows of given cells, as a text that can be compared: rows of another text are derived anew."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Final

from binlake.hbase.settings.rules import CellsRule, WideRule

#: Raised when a version of binlake reads the same declaration in another way.
_READING: Final = 1


def fingerprint(wide: WideRule, cells: CellsRule) -> str:
    """32 hexadecimal digits: the same for declarations that make the same wide rows of the same cells.

    The order of columns and families, families that are declared with their defaults, the lateness and the rhythm of
    sweeps do not count.
    """
    columns = sorted((asdict(column) for column in wide.columns), key=lambda column: str(column["name"]))
    kept = CellsRule(by_sequence=cells.by_sequence)
    families = sorted((one for one in cells.families if one != kept.family(one.name)), key=lambda one: one.name)
    said = {
        "reading": _READING,
        "columns": columns,
        "undeclared": wide.undeclared,
        "families": [asdict(family) for family in families],
        "by_sequence": cells.by_sequence,
        "ticks": cells.ticks_per_ms,
    }
    text = json.dumps(said, sort_keys=True, default=bytes.hex)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
