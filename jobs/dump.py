"""``python jobs/dump.py CONF [--once]``: what ``binlake dump`` does. Needs no Spark."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "dump")
    main()
