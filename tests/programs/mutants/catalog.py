"""All mutants, and the control."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant
from tests.programs.mutants.of_compiled import COMPILED
from tests.programs.mutants.of_derivation import DERIVATION
from tests.programs.mutants.of_formats import FORMATS
from tests.programs.mutants.of_history import HISTORY
from tests.programs.mutants.of_merging import MERGING
from tests.programs.mutants.of_streams import STREAMS
from tests.programs.mutants.of_tables import TABLES

MUTANTS = (*TABLES, *MERGING, *HISTORY, *STREAMS, *FORMATS, *COMPILED, *DERIVATION)
#: Changes nothing: it must survive, or the copied tree itself fails.
CONTROL = Mutant(
    "control",
    "none",
    "nothing",
    "pipeline/hudilake/commit/commit.py",
    "_BEGIN_ATTEMPTS = 5\n",
    "_BEGIN_ATTEMPTS = 5  # as before\n",
    (
        "tests/hudilake/format/files/test_view.py",
        "tests/binlake/rows/upsert/test_route.py",
        "tests/binlake/schema/test_definitions.py",
        "tests/hudilake/table/test_table.py",
    ),
)
