"""``spark-submit jobs/backfill.py CONF TABLE --from FILES --columns NAMES``: what ``binlake backfill`` does."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "backfill")
    main()
