"""Consistency checks of a table: ``fsck`` reports, ``pipeline.hudi.services.repair`` repairs what is safe."""

from pipeline.hudi.services.fsck.check import fsck
from pipeline.hudi.services.fsck.evidence import GRACE_MS
from pipeline.hudi.services.fsck.findings import Check, Finding, Repair, Report, Severity
from pipeline.hudi.services.fsck.offsets_check import OffsetKeys

__all__ = ["GRACE_MS", "Check", "Finding", "OffsetKeys", "Repair", "Report", "Severity", "fsck"]
