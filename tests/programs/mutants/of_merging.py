"""Mutants of the guards of tables that are merged by their writer."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_TABLE = "tests/binlake/rows/merging/test_stitched_table.py"
_MEMORY = "tests/binlake/rows/merging/test_row_memory.py"

MERGING = (
    Mutant(
        "group-order", "an older event of a column group changes nothing", "it applies",
        "pipeline/binlake/rows/merging/group_orders.py",
        "    applied = came & (orders >= reached)\n",
        "    applied = came\n",
        ("tests/binlake/rows/merging/test_stitch.py",),
    ),
    Mutant(
        "group-forgets", "two groups that forget a row side by side delete it", "each writes a partial row",
        "pipeline/binlake/rows/merging/stitch.py",
        "return can & ~forgets.any(axis=0) & ",
        "return can & ",
        (_TABLE,),
    ),
    Mutant(
        "row-memory", "the memory of row states is brought forward by new log files", "they are not read",
        "pipeline/binlake/rows/merging/row_states.py",
        "            if further:\n",
        "            if not further:\n",
        (_TABLE,),
    ),
    Mutant(
        "kept-rows", "rows that are kept are brought forward by new log files", "they are not read",
        "pipeline/binlake/rows/merging/row_states.py",
        "        if not further:\n",
        "        if further or not further:\n",
        (_MEMORY,),
    ),
    Mutant(
        "kept-rows-foreign", "a row that no merging writer wrote is read with its whole slice", "it is taken as it is",
        "pipeline/binlake/rows/merging/row_states.py",
        "            return None\n",
        "            pass\n",
        (_MEMORY,),
    ),
    Mutant(
        "kept-written", "a log file with partial rows is read by who wrote it", "they are taken for none",
        "pipeline/binlake/rows/merging/state_cache.py",
        "    if entry is None or write.partials or len(results) != 1",
        "    if entry is None or len(results) != 1",
        (_MEMORY,),
    ),
    Mutant(
        "tombstone-instant", "a tombstone counts if its instant is completed", "it always counts",
        "pipeline/binlake/rows/merging/tombstones.py",
        "        kept = np.flatnonzero(counts[places])\n",
        "        kept = np.arange(len(places))\n",
        ("tests/binlake/rows/merging/test_tombstones.py",),
    ),
    Mutant(
        "key-hash", "keys of one hash are told apart", "the first one of the hash is taken",
        "pipeline/hudilake/index/key_map.py",
        "            entry_indexes[open_[same]] = candidates[open_[same]]\n",
        "            entry_indexes[open_] = candidates[open_]\n",
        ("tests/hudilake/index/test_key_map.py",),
    ),
)  # fmt: skip
