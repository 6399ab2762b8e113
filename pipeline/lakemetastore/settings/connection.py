"""The stream's ``metastore`` section: where the metastore's service is, and what the stream tells it.

It stands alone: the stream's settings have it, and the metastore's client, which may not import binlake, reads it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from hudilake.validation import Amount, Section, Text, mistake


def _addresses(text: str) -> str:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.startswith(("http://", "https://")) for part in parts):
        raise mistake("must be addresses that begin with http:// or https://, with commas between them")
    return ",".join(part.rstrip("/") for part in parts)


class MetastoreConnection(Section):
    """The metastore's service. Neither ingest nor a read fails when it is down: both go on by the table's own files."""

    uri: Annotated[Text, AfterValidator(_addresses)] | None = None
    """Addresses of the service's HTTP side, such as ``http://host-a:9084,http://host-b:9084``; null asks none."""
    timeout_seconds: float = Field(default=5.0, gt=0)
    """How long an answer may take."""
    max_age_ms: Amount = 0
    """How old the state may be by which the service plans a read; 0: it has every commit completed before the read."""
    register_commits: bool = True
    """Tell the metastore of each commit after it completes. What is not told, the service takes in later by itself."""
    ca_file: Text | None = None
    """Certificates (PEM) of the authorities to trust with https; null takes the system's."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses, in the order of the settings; empty without a service."""
        return tuple(self.uri.split(",")) if self.uri else ()
