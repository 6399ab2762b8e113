"""The examples of polars and Ray run where these are installed, beside hudilake: the project depends on neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributions.build import build
from tests.hudilake.api.examples import ROWS
from tests.hudilake.api.test_pages import ABSENT, INTEGRATIONS, examples
from tests.whole.packages.environment import Environment

_WORLD = f"""
import sys
import pyarrow as pa
import hudilake

schema = pa.schema({{"id": pa.int64(), "qty": pa.int64(), "day": pa.string(), "updated_at": pa.int64()}})
orders = hudilake.create_table(
    sys.argv[1], schema, key="id", order_by="updated_at", partition_by="day", buckets=2
)
orders.upsert({ROWS!r})
"""
#: What each example must have made.
_SHOWN = {
    "import polars": """
assert sorted(frame["id"]) == [1, 2, 3, 8]
assert sorted(lazy.collect()["id"]) == [2, 8]
""",
    "import ray": """
assert sorted(dataset.to_pandas()["id"]) == [1, 2, 3]
""",
}
#: Ray takes what the machine has otherwise, and an address of the network.
_RAY = "import ray\nray.init(num_cpus=1, include_dashboard=False, object_store_memory=100 << 20)\n"


def program() -> str:
    """The examples of the page, each followed by what it must have made."""
    shown = [block.text for block in examples(INTEGRATIONS) if block.text.startswith(ABSENT)]
    assert len(shown) == len(ABSENT) == len(_SHOWN)
    parts = [_WORLD]
    for text in shown:
        library = next(name for name in ABSENT if text.startswith(name))
        parts += [_RAY if library == "import ray" else "", text, _SHOWN[library]]
    return "\n".join(parts)


@pytest.mark.packages
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_polars_and_ray(tmp_path: Path) -> None:
    hudilake, *_ = build(tmp_path / "wheels")
    environment = Environment(tmp_path / "environment", tmp_path / "wheels")
    environment.install(hudilake)
    environment.add("sqlglot", "polars>=1", "ray[data]>=2.40")
    (tmp_path / "shown.py").write_text(program())
    environment.run(["python", "shown.py", str(tmp_path / "orders")], tmp_path)
