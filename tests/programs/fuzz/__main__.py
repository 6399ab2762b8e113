"""``python -m tests.programs.fuzz``: fuzz for a given time, and keep what fails."""

from __future__ import annotations

import argparse
import sys

from tests.programs.fuzz.campaign import TARGETS, fuzz, keep


def main() -> int:
    """Fuzz the targets one after the other; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for target in options.target or TARGETS:
        outcome = fuzz([target], options.seed, options.seconds)
        keep(outcome)
        failed += len(outcome.failures)
        print(f"{target}: {outcome.done} inputs, {len(outcome.failures)} failures", flush=True)
        for failure in outcome.failures[:5]:
            print(failure, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
