"""``spark-submit jobs/check.py CONF``: what ``binlake check`` does, seen from where the driver will run."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "check")
    main()
