"""Consistency checks of a table: ``fsck`` reports, ``hudilake.services.repair`` repairs what is safe."""

from hudilake.services.fsck.check import fsck
from hudilake.services.fsck.content import ContentsReport, check_contents
from hudilake.services.fsck.evidence import GRACE_MS
from hudilake.services.fsck.findings import Check, Finding, Repair, Report, Severity
from hudilake.services.fsck.offsets_check import OffsetKeys

__all__ = [
    "GRACE_MS",
    "Check",
    "ContentsReport",
    "Finding",
    "OffsetKeys",
    "Repair",
    "Report",
    "Severity",
    "check_contents",
    "fsck",
]
