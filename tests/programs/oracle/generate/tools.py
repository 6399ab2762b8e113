"""How the tools for online schema changes alter a table: a copy under another name, then a swap."""

from __future__ import annotations

from tests.programs.oracle.catalog import Table
from tests.programs.oracle.generate.columns import CLAUSES
from tests.programs.oracle.generate.draw import Draw, Kind
from tests.programs.oracle.generate.rows import change

_FITTING = ("add column", "drop column", "widen column", "retype column", "index")


def _chosen(draw: Draw) -> tuple[Table, str, str] | None:
    """A table with a key, a clause for it, and the columns that it has before and after."""
    table = draw.table(lambda t: bool(t.key) and t.method is None)
    if table is None:
        return None
    name = draw.of(_FITTING)
    clause = CLAUSES[name][1](draw, table)
    if clause is None or "CHANGE" in clause:
        return None
    kept = [c.name for c in table.plain if not (name == "drop column" and c.name in clause)]
    return table, clause, ", ".join(f"`{column}`" for column in kept)


def _percona(draw: Draw) -> list[str] | None:
    """pt-online-schema-change: triggers carry changes over while rows are copied."""
    chosen = _chosen(draw)
    if chosen is None:
        return None
    table, clause, columns = chosen
    base, at = f"`{table.database}`.`{table.name}`", f"`{table.database}`"
    new, old = f"{at}.`_{table.name}_new`", f"{at}.`_{table.name}_old`"
    news = ", ".join(f"NEW.{column}" for column in columns.split(", "))
    hit = " AND ".join(f"{new}.`{key}` <=> OLD.`{key}`" for key in table.key)
    trigger = f"{at}.`pt_osc_{table.name}"
    inside = [text for text in (change(draw) for _ in range(2)) if text is not None]
    return [
        f"CREATE TABLE {new} LIKE {base}",
        f"ALTER TABLE {new} {clause}",
        f"CREATE TRIGGER {trigger}_del` AFTER DELETE ON {base} FOR EACH ROW DELETE IGNORE FROM {new} WHERE {hit}",
        f"CREATE TRIGGER {trigger}_ins` AFTER INSERT ON {base} FOR EACH ROW"
        f" REPLACE INTO {new} ({columns}) VALUES ({news})",
        *inside[:1],
        f"INSERT LOW_PRIORITY IGNORE INTO {new} ({columns}) SELECT {columns} FROM {base} LOCK IN SHARE MODE"
        " /*pt-online-schema-change 4711 copy table*/",
        f"RENAME TABLE {base} TO {old}, {new} TO {base}",
        f"DROP TRIGGER IF EXISTS {trigger}_del`",
        f"DROP TRIGGER IF EXISTS {trigger}_ins`",
        f"DROP TABLE IF EXISTS {old}",
        *inside[1:],
    ]


def _ghost(draw: Draw) -> list[str] | None:
    """gh-ost: a change log table, rows copied in chunks, an atomic cut-over."""
    chosen = _chosen(draw)
    if chosen is None:
        return None
    table, clause, columns = chosen
    base, at = f"`{table.database}`.`{table.name}`", f"`{table.database}`"
    ghost, log, gone = (f"{at}.`_{table.name}_{end}`" for end in ("gho", "ghc", "del"))
    inside = change(draw)
    return [
        f"create /* gh-ost */ table {log} (id bigint unsigned auto_increment, last_update timestamp not null"
        " DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null,"
        " value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256",
        f"insert /* gh-ost */ into {log} (id, hint, value) values (2, 'state', 'GhostTableMigrated')",
        f"create /* gh-ost */ table {ghost} like {base}",
        f"alter /* gh-ost */ table {ghost} {clause}",
        f"insert /* gh-ost {base} */ ignore into {ghost} ({columns})"
        f" (select {columns} from {base} force index (`PRIMARY`) lock in share mode)",
        f"rename /* gh-ost */ table {base} to {gone}, {ghost} to {base}",
        f"drop /* gh-ost */ table if exists {log}",
        f"drop /* gh-ost */ table if exists {gone}",
        *([inside] if inside is not None else []),
    ]


KINDS = (Kind("pt-osc", 1.2, _percona), Kind("gh-ost", 1.2, _ghost))
