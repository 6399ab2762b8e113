"""The SQL of TiDB's replication tools (``pingcap/tiflow``) as files that run at a server.

A test there is a directory with files for one or two upstream servers: what is loaded (``db1.prepare.sql``), and what
is replicated (``db1.increment.sql``, ``db1.increment2.sql``). Those of one upstream become one input, in this order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.programs.proofs.checkouts import checkout_of, sql_files
from tests.programs.proofs.part import Task

_UPSTREAM = re.compile(r"((?:\w+\.)?db\d+)[.\w-]*\.sql")


def tiflow_home(task: Task) -> Path | None:
    """The directory with an input for each upstream, made of the checkout that is an option of the task; None without.

    Raises ConfigError as ``checkout_of`` and ``sql_files``.
    """
    checkout = checkout_of(task.options)
    if checkout is None:
        return None
    home = task.place / "files"
    inputs: dict[str, list[str]] = defaultdict(list)
    for name, text in sql_files(checkout):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        upstream = _UPSTREAM.fullmatch(file.name)
        inputs[f"{Path(name).parent}/{upstream[1]}" if upstream else name.removesuffix(".sql")].append(name)
    for name, members in inputs.items():
        members.sort(key=lambda member: ("prepare" not in member, member))
        (home / f"{name}.test").write_text("".join(f"--source {member}\n" for member in members))
    return home
