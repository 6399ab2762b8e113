"""``python -m binlake.cli``: the same as ``binlake``."""

from binlake.cli import main

if __name__ == "__main__":
    main()
