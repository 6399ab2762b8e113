"""The parts of the proofs."""

from __future__ import annotations

from tests.programs.proofs.fixtures import Fixtures
from tests.programs.proofs.model.part import Model
from tests.programs.proofs.part import Part
from tests.programs.proofs.spark.part import SparkTables
from tests.programs.proofs.statements import StatementsPart
from tests.programs.proofs.suite.binlog_part import BinlogPart
from tests.programs.proofs.suite.part import SUITE, FilesPart
from tests.programs.proofs.suite.tiflow import tiflow_home
from tests.programs.proofs.tables import ForeignTables
from tests.programs.proofs.turns.part import Turns
from tests.programs.simulation.part import SimulationPart
from tests.programs.tpcc.part import TpccPart

_READ = """Each statement goes through binlake's reader of statements; a file is equal if none raises anything.
{repository} is not fetched: name a clone (a bare one will do),
`python -m tests.programs.proofs {name} --option {name}=/absolute/path/of/the/clone`."""

PARTS: tuple[Part, ...] = (
    ForeignTables(),
    SparkTables(),
    Fixtures(),
    Turns(),
    SUITE,
    BinlogPart(),
    FilesPart(
        "tiflow",
        "PingCAP",
        "upstreams of tests of TiDB's replication tools",
        """Judged as [suite](#suite), each upstream's files in turn. `pingcap/tiflow` is not fetched: name a clone,
`python -m tests.programs.proofs tiflow --option tiflow=/absolute/path/of/the/clone` (a bare one will do).""",
        tiflow_home,
    ),
    StatementsPart(
        "debezium",
        "Red Hat",
        "files of Debezium's own tests of its parsers",
        _READ.format(repository="`debezium/debezium`", name="debezium"),
        "debezium-ddl-parser/src/test/resources/",
    ),
    StatementsPart(
        "flink",
        "Apache Flink CDC",
        "SQL files of its tests",
        _READ.format(repository="`apache/flink-cdc`", name="flink"),
    ),
    StatementsPart(
        "tiflowread",
        "PingCAP",
        "SQL files of TiDB's replication tools",
        _READ.format(repository="`pingcap/tiflow`", name="tiflowread"),
    ),
    Model(),
    SimulationPart(),
    TpccPart(),
)
