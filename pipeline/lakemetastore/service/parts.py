"""The parts of the service, made in their own processes. It stands alone: the parent that starts them imports none of
their code, for the imports take most of the time until the first answer (measured)."""

from __future__ import annotations

from lakemetastore.service.part import Part
from lakemetastore.service.ports import Ports
from lakemetastore.settings.service import MetastoreSettings


def serving(settings: MetastoreSettings, ports: Ports) -> Part:
    """A process that answers. Arguments as for ``ServingPart``."""
    from lakemetastore.service.serving import ServingPart

    return ServingPart(settings, ports)


def reconciling(settings: MetastoreSettings) -> Part:
    """The process that looks after the lakes. Arguments as for ``ReconcilerPart``."""
    from lakemetastore.service.reconciling import ReconcilerPart

    return ReconcilerPart(settings)
