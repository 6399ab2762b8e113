"""``python -m bench``: ingest speed, large batches and small ones."""

from bench.ingest import main

main()
