"""Reading tables from plain Python: queries, filters, file skipping, Arrow batches."""

from hudilake.read.filters.expressions import (
    And,
    Compare,
    Constant,
    Eq,
    Filter,
    Ge,
    Gt,
    In,
    IsNotNull,
    IsNull,
    Le,
    Lt,
    Ne,
    Not,
    Or,
    StartsWith,
    Unknown,
)
from hudilake.read.plan import PlanStep, ScanPlan, ScanWarning
from hudilake.read.pruning import IndexReads
from hudilake.read.query import Incremental, Query, ReadOptimized, Snapshot, instant_of
from hudilake.read.table_reader import TableReader

__all__ = [
    "And",
    "Compare",
    "Constant",
    "Eq",
    "Filter",
    "Ge",
    "Gt",
    "In",
    "Incremental",
    "IndexReads",
    "IsNotNull",
    "IsNull",
    "Le",
    "Lt",
    "Ne",
    "Not",
    "Or",
    "PlanStep",
    "Query",
    "ReadOptimized",
    "ScanPlan",
    "ScanWarning",
    "Snapshot",
    "StartsWith",
    "TableReader",
    "Unknown",
    "instant_of",
]
