"""``python -m binlake.cli``: the same as ``binlake``. It stands alone because Python asks for a module of this name."""

from binlake.cli import main

if __name__ == "__main__":
    main()
