"""SQL over one or several tables: DuckDB over the rows that each table's plan leaves.

::

    with read_sql("SELECT o.id, c.name FROM o JOIN c ON c.id = o.customer_id", {"o": orders, "c": customers}) as rows:
        for batch in rows: ...
"""

# ruff: noqa: E402 - the check for the extra comes before the imports that need it

from hudilake.extras import require_extra

require_extra("hudilake", "sql", "duckdb", "sqlglot")

from hudilake.query.sql.engine import read_sql, run_sql
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.planned import SqlQuery, plan_sql, table_names
from hudilake.query.sql.planned_table import PlannedTable, SqlTable

__all__ = ["Limits", "PlannedTable", "SqlQuery", "SqlTable", "plan_sql", "read_sql", "run_sql", "table_names"]
