"""``spark-submit jobs/ingest.py CONF [--once]``: what ``binlake run`` does. Set ``spark.master: null`` in CONF."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "run")
    main()
