"""The process that reads fuzzed inputs. ``tests.programs.fuzz.campaign`` starts it.

Before each input it writes it to a file, so that the input that kills or hangs the process is known.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.programs.fuzz import events, files
from tests.programs.fuzz.mutations import mutated

#: Events are decoded so many at once, as the product does.
BATCH = 25


def main(place: Path, target: str, seed: int, seconds: float, count: int, kept: Sequence[Path]) -> int:
    """Run one target, and print a JSON line for each failure; the number of inputs."""
    (place / "target").write_text(target)
    run, seeds, text, several = _target(target)
    dice = random.Random(f"{target} {seed}")
    began, done = time.monotonic(), 0
    for path in kept:
        _one(place, run, [path.read_bytes()])
        done += 1
    while time.monotonic() - began < seconds and done < count:
        inputs = [mutated(dice, seeds, text=text) for _ in range(BATCH if several else 1)]
        _one(place, run, inputs)
        done += len(inputs)
    return done


def _target(name: str) -> tuple[Callable[[Sequence[bytes]], None], Sequence[bytes], bool, bool]:
    if name in events.TARGETS:
        found = events.TARGETS[name]()
        return found.run, found.seeds, found.json, True
    target = files.TARGETS[name]()
    return lambda inputs: target.run(inputs[0]), target.seeds, target.text, False


def _one(place: Path, run: Callable[[Sequence[bytes]], None], inputs: Sequence[bytes]) -> None:
    current = place / "current"
    current.write_bytes(b"".join(len(data).to_bytes(8, "big") + data for data in inputs))
    try:
        run(inputs)
    except Exception:
        if len(inputs) > 1:
            for data in inputs:
                _one(place, run, [data])
        else:
            (place / f"failed-{time.monotonic_ns()}").write_bytes(inputs[0])
            told = f"{(place / 'target').read_text()}: {traceback.format_exc()[-1500:]}"
            print(json.dumps({"failed": told}), flush=True)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    where = Path(arguments["place"])
    inputs_read = sum(
        main(where, target, arguments["seed"], arguments["seconds"], arguments["count"], [Path(path) for path in kept])
        for target, kept in arguments["targets"].items()
    )
    print(json.dumps({"done": inputs_read}), flush=True)
