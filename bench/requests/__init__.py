"""How many requests a commit asks of an object store, and how many of them one after the other. See README.md."""
