"""``spark-submit jobs/cluster.py CONF [TABLE...]``: what ``binlake cluster --spark`` does, as with jobs/ingest.py."""

import sys

from binlake.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["cluster", "--spark"]
    main()
