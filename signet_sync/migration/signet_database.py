"""Reads databases of Signet and others, of any version, beside the running program: each is asked what it has."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from signet_sync.capture.stores.files import require_own_file, unreadable
from signet_sync.errors import HarnessError, UsageError
from signet_sync.formats.paths import SIGNET_DATABASES
from signet_sync.migration.signet_rows import COLUMNS
from signet_sync.privacy import signet_tombstones
from signet_sync.storage.database import foreign
from signet_sync.storage.database.foreign import ForeignDatabase


class DatabaseFormat(NamedTuple):
    """What is read of a program's database, and the table and columns by which it is recognised."""

    program: str
    columns: Mapping[str, tuple[str, ...]]
    table: str
    needed: tuple[str, ...]


_COLUMNS = {signet_tombstones.TABLE: signet_tombstones.COLUMNS, **COLUMNS}
SIGNET = DatabaseFormat("Signet", _COLUMNS, "memories", ("id", "content"))


def find_database(root: str, given: str | None) -> str:
    """Returns the path of Signet's database: of the workspace, or of the file or folder that a person gives."""
    where = os.path.realpath(os.path.expanduser(given)) if given is not None else root
    if os.path.isfile(where):
        return where
    for place in SIGNET_DATABASES:
        path = os.path.join(where, place)
        if os.path.lexists(path):
            return path
    hint = "give its place: signet-sync migrate signet PATH (a memories.db, or the folder of a workspace)"
    raise UsageError("there is no database of Signet", path=where, hint=hint, code="no-database")


@contextmanager
def opened(path: str, written: DatabaseFormat = SIGNET) -> Iterator[ForeignDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read. Raises `HarnessError`."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        require_own_file(path, os.lstat(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    with foreign.reading(path, written.program, written.columns) as database:
        # Another program's, an unknown version and a damaged file are refused before anything is brought.
        if not database.columns(written.table) >= {*written.needed}:
            what = f"it has no table `{written.table}` with {' and '.join(written.needed)}"
            hint = f"name {written.program}'s own database; if it is, upgrade signet-sync"
            raise HarnessError(what, path=path, hint=hint, code="database-unknown")
        if not all(database.is_sound(table) for table in database.tables if table in written.columns):
            raise foreign.make_damage_error(path, written.program)
        yield database
