"""``spark-submit jobs/replay.py CONF --from URI``: what ``binlake replay`` does, as with jobs/ingest.py."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "replay")
    main()
