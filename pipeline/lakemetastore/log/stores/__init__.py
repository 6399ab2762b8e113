"""Where logs of versions and their snapshots are kept: files of any storage, SQL databases, a key-value library."""
