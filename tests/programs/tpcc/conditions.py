"""The consistency conditions 3.3.2.1 to 3.3.2.12 of the TPC-C specification, as SQL that finds what breaks them.

Each statement gives the rows for which the condition does not hold. 3.3.2.11 is one of the tables as they are loaded;
here it counts the deliveries since, which the customers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb
import pyarrow as pa

from tests.programs.tpcc.workload import DELIVERED_AT_FIRST

_DELIVERED = """(SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount FROM orders
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE ol_delivery_d IS NOT NULL GROUP BY ALL)"""
_PAID = """(SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS amount FROM history GROUP BY ALL)"""

CONDITIONS: Final[Mapping[str, str]] = {
    "3.3.2.1": """SELECT w_id, w_ytd, ytd FROM warehouse
        JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) ON d_w_id = w_id WHERE w_ytd <> ytd""",
    "3.3.2.2": """SELECT d_w_id, d_id, d_next_o_id, newest, newest_new FROM district
        LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY ALL)
            ON o_w_id = d_w_id AND o_d_id = d_id
        LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest_new FROM new_order GROUP BY ALL)
            ON no_w_id = d_w_id AND no_d_id = d_id
        WHERE newest IS DISTINCT FROM d_next_o_id - 1 OR coalesce(newest_new, newest) <> newest""",
    "3.3.2.3": """SELECT no_w_id, no_d_id, count(*) FROM new_order GROUP BY ALL
        HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    "3.3.2.4": """SELECT * FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS said FROM orders GROUP BY ALL)
        FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS lines FROM order_line GROUP BY ALL) USING (w, d)
        WHERE said IS DISTINCT FROM lines""",
    "3.3.2.5": """SELECT * FROM orders
        FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
        WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)""",
    "3.3.2.6": """SELECT * FROM orders
        FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines FROM order_line GROUP BY ALL)
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
        WHERE lines IS DISTINCT FROM o_ol_cnt""",
    "3.3.2.7": """SELECT * FROM order_line
        LEFT JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
        WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)""",
    "3.3.2.8": """SELECT w_id, w_ytd, paid FROM warehouse
        LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY ALL) ON h_w_id = w_id
        WHERE w_ytd IS DISTINCT FROM paid""",
    "3.3.2.9": """SELECT d_w_id, d_id, d_ytd, paid FROM district
        LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY ALL)
            ON h_w_id = d_w_id AND h_d_id = d_id
        WHERE d_ytd IS DISTINCT FROM paid""",
    "3.3.2.10": f"""SELECT c_w_id, c_d_id, c_id, c_balance, got.amount, paid.amount FROM customer
        LEFT JOIN {_DELIVERED} AS got ON got.w = c_w_id AND got.d = c_d_id AND got.c = c_id
        LEFT JOIN {_PAID} AS paid ON paid.w = c_w_id AND paid.d = c_d_id AND paid.c = c_id
        WHERE c_balance <> coalesce(got.amount, 0) - coalesce(paid.amount, 0)""",
    "3.3.2.11": f"""SELECT * FROM (SELECT o_w_id AS w, o_d_id AS d, count(*) AS made FROM orders GROUP BY ALL)
        LEFT JOIN (SELECT no_w_id AS w, no_d_id AS d, count(*) AS waiting FROM new_order GROUP BY ALL) USING (w, d)
        FULL JOIN (SELECT c_w_id AS w, c_d_id AS d, sum(c_delivery_cnt) AS delivered FROM customer GROUP BY ALL)
            USING (w, d)
        WHERE made - coalesce(waiting, 0) IS DISTINCT FROM {DELIVERED_AT_FIRST} + delivered""",
    "3.3.2.12": f"""SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, got.amount FROM customer
        LEFT JOIN {_DELIVERED} AS got ON got.w = c_w_id AND got.d = c_d_id AND got.c = c_id
        WHERE c_balance + c_ytd_payment <> coalesce(got.amount, 0)""",
}


def broken(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """The conditions that do not hold, each with one of the rows that break it.

    Args:
        tables: the rows of each table by its name in the specification's spelling; ``orders`` for ORDER.
    """
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        first = {name: connection.execute(sql).fetchone() for name, sql in CONDITIONS.items()}
    return {name: str(row) for name, row in first.items() if row is not None}
