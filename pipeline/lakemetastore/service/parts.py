"""The parts of the service, made in their own processes. The parent that starts them imports none of their code: the
imports take most of the time until the first answer (measured)."""

from __future__ import annotations

from lakemetastore.service.part import Part
from lakemetastore.service.ports import Ports
from lakemetastore.settings.service import MetastoreSettings


def serving(settings: MetastoreSettings, ports: Ports) -> Part:
    """A process that answers. Arguments as for ``Serving``."""
    from lakemetastore.service.serving import Serving

    return Serving(settings, ports)


def reconciling(settings: MetastoreSettings) -> Part:
    """The process that looks after the lakes. Arguments as for ``Reconciling``."""
    from lakemetastore.service.reconciling import Reconciling

    return Reconciling(settings)
