"""A database of an older version brought to the shape of today, inside the transaction of whoever opens it.

What a table was like is read off the database itself: between two versions there may have been others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.index.schema import TABLES

if TYPE_CHECKING:
    from signet_sync.index.database import Database

_SHAPES = (
    "select s.type, s.name, s.tbl_name, s.sql from sqlite_schema s"
    " left join pragma_table_list t on t.schema = 'main' and t.name = s.name"
    " where s.type in ('table', 'index') and s.sql is not null and s.name not like 'sqlite_%'"
    " and coalesce(t.type, '') <> 'shadow'"
)


class _Shape(NamedTuple):
    kind: str
    name: str
    table: str
    sql: str

    def is_like(self, other: _Shape | None) -> bool:
        """Whether both were made by the same statement, however it was broken into lines."""
        return other is not None and self[:3] == other[:3] and self.sql.split() == other.sql.split()


def clear_the_way(database: Database, today: Database) -> bool:
    """Takes away what differs from `today`, an empty database; what is missing then is the caller's to make.

    Native rows stay: a table that has changed is made anew around them. True where a derived table has changed, or one
    of full text is missing, which needs more than its own statement: all that is derived is to be made anew.
    """
    found, wanted = _shapes(database), _shapes(today)
    for shape in found.values():
        # Texts of sessions may stand in it, and a removal would never come there.
        if shape.kind == "table" and shape.name not in TABLES:
            database.execute(f"drop table {shape.name}")
    changed = [shape for shape in found.values() if shape.table in TABLES and not shape.is_like(wanted.get(shape.name))]
    for shape in changed:
        if TABLES[shape.table] == "native" and shape.kind == "table":
            _recast(database, wanted[shape.name])
    for shape in changed:
        if TABLES[shape.table] == "native" and shape.kind == "index":
            database.execute(f"drop index if exists {shape.name}")
    textless = any(shape.sql.startswith("CREATE VIRTUAL") for name, shape in wanted.items() if name not in found)
    return textless or any(TABLES[shape.table] == "derived" for shape in changed)


def _shapes(database: Database) -> Mapping[str, _Shape]:
    return {row[1]: _Shape(*row) for row in database.execute(_SHAPES)}


def _recast(database: Database, shape: _Shape) -> None:
    """Makes a native table anew, with its rows; one that lacks what no row may lack today is left behind."""
    before = f"{shape.name}_before"
    database.execute(f"alter table {shape.name} rename to {before}")
    database.execute(shape.sql)
    columns = "select name from pragma_table_info(?)"
    kept = {row[0] for row in database.execute(columns, (before,))}
    names = ", ".join(row[0] for row in list(database.execute(columns, (shape.name,))) if row[0] in kept)
    database.execute(f"insert or ignore into {shape.name}({names}) select {names} from {before}")
    database.execute(f"drop table {before}")
