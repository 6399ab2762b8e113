"""Checks SQL expressions of the settings: they use one row only, and give the same result every time."""

from __future__ import annotations

#: Functions that DuckDB marks as not consistent, and sqlglot's names of such functions.
_CHANGING = frozenset(
    [
        "current_connection_id",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query",
        "current_query_id",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "currval",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "getenv",
        "getvariable",
        "in_search_path",
        "localtime",
        "localtimestamp",
        "nextval",
        "now",
        "rand",
        "random",
        "setseed",
        "sleep_ms",
        "stats",
        "today",
        "transaction_timestamp",
        "txid_current",
        "uuid",
        "uuidv4",
        "uuidv7",
        "version",
        "write_log",
    ]
)
_SEVERAL_ROWS = frozenset(["unnest", "explode", "posexplode", "inline", "generate_subscripts"])


def check_expression(text: str) -> str | None:
    """The fault of an expression in DuckDB's dialect; None if it is valid.

    An event may be computed twice (redelivered, as a before image, in a replay), so an expression that depends on more
    than the row itself is refused.
    """
    import sqlglot  # imported here: it takes a tenth of a second, and few settings have expressions
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    try:
        tree = sqlglot.parse_one(text, read="duckdb", into=exp.Condition)
    except ParseError as error:
        return f"is no SQL expression: {error.errors[0]['description'] if error.errors else 'it is empty'}"
    except TokenError as error:
        return f"is no SQL expression: {error}"
    if tree.find(exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter, exp.Star):
        return "must be an expression over the columns of one row"
    for called in tree.find_all(exp.Func, exp.Unnest):
        name = (called.name if isinstance(called, exp.Anonymous) else called.sql_name()).lower()
        if name in _SEVERAL_ROWS:
            return f"{name} makes several rows of one"
        if name in _CHANGING:
            return f"{name} does not give the same answer every time"
    return None
