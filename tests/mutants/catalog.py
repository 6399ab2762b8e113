"""All mutants, and the control."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.of_derivation import DERIVATION
from tests.mutants.of_merging import MERGING
from tests.mutants.of_streams import STREAMS
from tests.mutants.of_tables import TABLES

MUTANTS = (*TABLES, *MERGING, *STREAMS, *DERIVATION)
#: Changes nothing: it must survive, or the copied tree itself fails.
CONTROL = Mutant(
    "control",
    "none",
    "nothing",
    "pipeline/hudi/actions/commit.py",
    "_PARALLEL_CREATES = 8\n",
    "_PARALLEL_CREATES = 8  # as before\n",
    ("tests/hudi/files/test_view.py", "tests/upsert/test_route.py", "tests/hudi/table/test_table.py"),
)
