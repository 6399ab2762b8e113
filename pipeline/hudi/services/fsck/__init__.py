"""Checking a table against itself: ``fsck`` finds, ``pipeline.hudi.services.repair`` mends what is safe to mend."""

from pipeline.hudi.services.fsck.check import fsck
from pipeline.hudi.services.fsck.evidence import GRACE_MS
from pipeline.hudi.services.fsck.findings import Check, Finding, Repair, Report, Severity
from pipeline.hudi.services.fsck.offsets_check import OffsetKeys

__all__ = ["GRACE_MS", "Check", "Finding", "OffsetKeys", "Repair", "Report", "Severity", "fsck"]
