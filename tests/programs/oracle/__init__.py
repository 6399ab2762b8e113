"""The oracle: random schemas, rows and DDL at a real server; the lake must end with the server's own rows.

``python -m tests.programs.oracle --help`` lists what can be done by hand. A *script* is a list of statements of one
seed. It is run at an embedded MariaDB that an embedded Debezium follows; what came is a *recording*. Each recording is
played into binlake in several *ways* (``play.py``), and each table is compared with ``SELECT *`` (``comparison.py``).
"""
