"""``spark-submit jobs/compact.py CONF [TABLE...]``: what ``binlake compact --spark`` does, as with jobs/ingest.py."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["compact", "--spark"]
    main()
