"""The exit codes of all commands, in the words of their help.

It stands alone: each list of commands needs them, and imports nothing else.
"""

from __future__ import annotations

#: What docs/runbooks/index.md says at length.
EXIT_CODES = {
    0: "success",
    1: "declined, or an unexpected error",
    2: "settings or arguments are wrong",
    65: "bad input",
    66: "corrupt data",
    69: "not supported",
    70: "somebody else took over",
    75: "an outage that may pass",
    80: "single tables are stopped",
    81: "tables were not compared",
}

#: How the help of each command ends.
EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + "."
