"""Tells states of the disk apart by what a process that starts afterwards can see of them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.\d+\.tmp")
# How long a run took; what SQLite makes again from the log.
SIGNS = re.compile(r"\b\d{19}\b|\b\d{13}(?:\.\d+)?\b|\b\d{6,9}\b")
BUT = ("-shm", "last-pass.json")


def state_of(root: Path, state: Path, words: Sequence[bytes], scratch: Path) -> str:
    """A digest of names, modes, contents and rows; and where some words are, in whatever part of a file."""
    found, signs = sha256(), signs_of(root, state)
    for place in (root, state):
        for path, status in below(place):
            name = TEMPORARY.sub(".tmp", os.path.relpath(path, place))
            if name.endswith(BUT):
                continue
            found.update(f"{name} {status.st_mode} ".encode())
            if os.path.islink(path):
                found.update(os.readlink(path).encode())
            elif os.path.isfile(path):
                raw = Path(path).read_bytes()
                found.update(repr([word for word in words if word in raw]).encode())
                if ".tmp-" in name or name.endswith("-wal"):
                    continue
                if raw.startswith(b"SQLite format 3") and ".tmp" not in name:
                    for row in rows(Path(path), scratch):
                        found.update(
                            SIGNS.sub(
                                lambda sign: signs.get(
                                    sign[0].partition(".")[0], "stale" if len(sign[0]) == 19 else sign[0]
                                ),
                                repr(row),
                            ).encode()
                        )
                else:
                    found.update(sha256(raw).digest())
    return found.hexdigest()


def below(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            yield path, os.lstat(path)


def signs_of(*places: Path) -> dict[str, str]:
    """What stands for the times and inodes of files: no two runs have the same."""
    found = {}
    for place in places:
        for path, status in below(place):
            found[str(status.st_ino)] = f"inode of {TEMPORARY.sub('', os.path.relpath(path, place))}"
            for time in (status.st_mtime_ns, status.st_ctime_ns):
                found[str(time)] = found[str(time // 1_000_000)] = "a time of a file"
    return found


def rows(database: Path, scratch: Path) -> Iterator[tuple[Any, ...]]:
    """Every row of a copy; the bytes of one that is damaged."""
    copy = scratch / "copy.db"
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if suffix != "-shm" and Path(f"{database}{suffix}").exists():
            shutil.copyfile(f"{database}{suffix}", f"{copy}{suffix}")
    connection = apsw.Connection(str(copy))
    try:
        yield (connection.pragma("user_version"), connection.pragma("application_id"))
        for name, sql in list(connection.execute("select name, sql from sqlite_master order by 1")):
            yield (name, sql)
            if sql and sql.startswith("CREATE TABLE") and not name.endswith("_fts"):
                yield from connection.execute(f"select * from {name}")
    except apsw.Error as error:
        yield (str(error), sha256(database.read_bytes()).hexdigest())
    finally:
        connection.close()
