"""MariaDB's own test suite, replayed to equality: ``python -m tests.programs.proofs suite``.

``language.py`` reads a test file, ``interpreter.py`` runs it at a real server, ``recorder.py`` records what Debezium
writes meanwhile, and ``judge.py`` plays the recordings into binlake as the oracle does.
"""
