"""``spark-submit jobs/inspect_table.py TABLE``: what ``binlake inspect`` does, seen from where the driver will run."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "inspect")
    main()
