"""Lists all tables, and what identifies the database. Names are Signet's where they mean the same.

`NODES` and `STATEMENTS` are what to select from for their rows with names instead of numbers.
"""

from __future__ import annotations

import re
from hashlib import sha256

from signet_sync.storage.database.derived import DERIVED
from signet_sync.storage.database.derived import path_of as path_of
from signet_sync.storage.database.native import NATIVE
from signet_sync.storage.database.table import Id, Table

APPLICATION_ID = 0x53495359  # "SISY"
# Set while the first index is built without a journal; a file that still has it was left by a crash.
BUILDING_ID = 0x53495342

TABLES: dict[str, Table] = {table.name: table for table in (*NATIVE, *DERIVED)}
# Names the schema: another number with each change of a statement.
VERSION = int.from_bytes(sha256("\n".join(s for t in TABLES.values() for s in t.ddl).encode()).digest()[:4]) >> 1 or 1


def native_tables() -> tuple[str, ...]:
    """Names the tables that a rebuild keeps."""
    return tuple(name for name, table in TABLES.items() if table.kind == "native")


def list_derived() -> tuple[str, ...]:
    """Names the tables that a rebuild drops."""
    return tuple(name for name, table in TABLES.items() if table.kind == "derived")


def full_text() -> tuple[str, ...]:
    """Names the tables of full text."""
    return tuple(name for name, table in TABLES.items() if table.is_full_text)


def statements(*names: str) -> tuple[str, ...]:
    """Returns the statements that create some tables."""
    return tuple(statement for name in names for statement in TABLES[name].ddl)


def list_backed_up() -> tuple[Table, ...]:
    """Lists the tables that are backed up; first those that are in every backup."""
    found = (table for table in TABLES.values() if table.row)
    return tuple(sorted(found, key=lambda table: table.kept != "always"))


def list_of_memories() -> tuple[str, ...]:
    """Names the tables that hold something about a memory, including the memory itself."""
    return tuple(name for name in native_tables() if TABLES[name].handle)


def list_by_ids() -> tuple[str, ...]:
    """Names the tables that hold what a person or an agent did with an id, whatever has that id."""
    return tuple(name for name in list_of_memories() if TABLES[name].types.get(TABLES[name].handle or "") is Id)


def list_identified() -> tuple[Table, ...]:
    """Lists the derived tables in which ids that a page may show are found at once."""
    found = (table for table in TABLES.values() if table.kind == "derived" and table.handle)
    # An index by more than the id finds it, too.
    return tuple(t for t in found if any(re.search(rf"\(agent_id, {t.handle}[,)]", one) for one in t.ddl))


def list_distilled() -> tuple[Table, ...]:
    """Lists the tables of rows that are derived from sessions and have an id that a page may show."""
    return tuple(table for table in TABLES.values() if table.kind == "derived" and table.session and table.handle)


NODES, STATEMENTS = (TABLES[name].rows for name in ("session_summaries", "statements"))
