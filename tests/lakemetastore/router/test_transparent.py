"""All scripted calls of the comparison with real metastores have the same outcome through a router as without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.router.router import Router
from lakemetastore.settings.router import RouterSettings
from tests.hypothesis_profile import usually
from tests.lakemetastore.judged.calls import outcomes
from tests.lakemetastore.judged.normal import Normal
from tests.lakemetastore.judged.ours import our_server
from tests.lakemetastore.judged.recorded import SEED
from tests.lakemetastore.judged.scripts.all import calls_of, scripts_of

SCRIPTS = {*scripts_of("3.1.3"), *scripts_of("4.0.1")}
#: To the router these are one call with many texts.
LONG = {"filters"}


@pytest.mark.first(2)
@pytest.mark.parametrize("script", usually(sorted(SCRIPTS - LONG), sorted(SCRIPTS)))
def test_a_script_has_the_same_outcomes(script: str, tmp_path: Path) -> None:
    calls = calls_of(script, SEED)
    with our_server(tmp_path / "direct") as ours:
        normal = Normal(ours.warehouse)
        direct = [normal.outcome(one) for one in outcomes(ours.host, ours.port, calls)]
    with our_server(tmp_path / "routed") as ours:
        backends = {"lake": {"uri": f"thrift://{ours.host}:{ours.port}"}}
        settings = {"backends": backends, "primary": "lake", "rules": [{"match": "*", "to": "lake"}]}
        router = ThriftServer(Router(RouterSettings.model_validate(settings)).answer, listener=listen("127.0.0.1", 0))
        router.start()
        normal = Normal(ours.warehouse)
        routed = [normal.outcome(one) for one in outcomes(*router.address, calls)]
        router.stop(drain_seconds=1.0)
    differing = [(made, one, other) for made, one, other in zip(calls, direct, routed, strict=True) if one != other]
    assert differing == []
    assert len(calls) > 10
