"""Stores rows of entity files, the known end of each event log, and the maintainer's queue of drift."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from signet_sync.formats.entity_paths import KINDS, File, Finding, Kind
from signet_sync.formats.snapshot import Signature
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.sync.store import texts
from signet_sync.sync.store.texts import Line

TIER = "entity"
SHORTEST = 6  # the shortest beginning of an id that is accepted for it, in characters

_COLUMNS = (
    "path, agent_id, kind, id, slug, file, title, status, type, line, participants, text, sha256, updated_us, size,"
    " mtime_ns, ctime_ns, inode"
)
_SELECT = f"select {_COLUMNS} from garden_files where {{}} order by path"
_PUT = f"insert or replace into garden_files({_COLUMNS}) values({placeholders(18)})"
_DRIFT = "code, message, hint, path, entity_id, agent_id, found_at, found_sha256"


class EntityFile(NamedTuple):
    """A profile or notes file as last read, sanitized. Keyed by `path`.

    `type` is the free word of the frontmatter, `line` one sentence for the page section of MEMORY.md, `participants`
    ids of entities. `text` is what `recall` searches besides the title: the core sections of a profile; empty for
    notes, which are not searched. `sha256` is the hash of the file's bytes; `signature` is None where the file has to
    be read again. `updated_us` is microseconds since 1970 UTC.
    """

    path: str
    agent_id: str
    kind: Kind
    id: str
    slug: str
    file: File
    title: str
    status: str
    type: str | None
    line: str
    participants: tuple[str, ...]
    text: str
    sha256: str
    updated_us: int
    signature: Signature | None = None

    def document(self) -> dict[str, Any]:
        """Returns the entity as a list of entities shows it."""
        return {name: getattr(self, name) for name in ("id", "kind", "title", "status", "type", "path", "line")}


_PARTICIPANTS = EntityFile._fields.index("participants")


# ── files ──


def put_files(database: Database, files: Iterable[EntityFile], gone: Iterable[str] = ()) -> None:
    """Writes rows, replacing those with the same paths, deletes those of paths that are gone; then the `recall` lines.

    In the caller's transaction. An entity without a profile has no line.
    """
    owners = set[tuple[str, str]]()
    for path in gone:
        owners.update(database.execute("delete from garden_files where path = ? returning agent_id, id", (path,)))
    for one in files:
        owners.update(database.execute("select agent_id, id from garden_files where path = ?", (one.path,)))
        owners.add((one.agent_id, one.id))
        values: list[Any] = list(one[:-1])
        values[_PARTICIPANTS] = json.dumps(one.participants, ensure_ascii=False)
        database.execute(_PUT, [*values, *(one.signature or (None, None, None, None))])
    for agent_id, entity_id in sorted(owners):
        found = lines(database, agent_id, [entity_id])
        if found:
            texts.put(database, found)
        else:
            texts.drop(database, agent_id, [entity_id])


def ids(database: Database) -> list[tuple[str, str]]:
    """Lists agent and id of every entity that has a profile."""
    return list(database.execute("select distinct agent_id, id from garden_files where file = 'profile'"))


def lines(database: Database, agent_id: str | None = None, some: Iterable[str] = ()) -> list[Line]:
    """Returns the lines by which `recall` finds entities: of all agents, or `some` entities of one agent."""
    if agent_id is None:
        found = _profiles(database, "1")
    else:
        found = [one for key in some for one in _profiles(database, "agent_id = ? and id = ?", agent_id, key)]
    words = ("\n".join(filter(None, (one.title, one.text))) for one in found)
    return [
        Line(one.agent_id, TIER, one.id, said, one.updated_us, private=True)
        for one, said in zip(found, words, strict=True)
    ]


def signatures(database: Database, agent_id: str | None = None) -> dict[str, Signature | None]:
    """Returns path and signature of every known file, of all agents or one; unchanged files need not be read again."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    rows = database.execute(
        f"select path, size, mtime_ns, ctime_ns, inode from garden_files{where} order by path", bindings
    )
    return {path: _signature(signature) for path, *signature in rows}


def forget_signatures(database: Database) -> None:
    """Clears all signatures, so that the next look reads every file. In the caller's transaction."""
    database.execute("update garden_files set size = null, mtime_ns = null, ctime_ns = null, inode = null")


def entities(database: Database, agent_id: str) -> list[EntityFile]:
    """Lists an agent's profiles by kind (user, part, relationship), title and id; of a copied folder only the first."""
    found = _profiles(database, "agent_id = ?", agent_id)
    return sorted(found, key=lambda one: (KINDS.index(one.kind), fold(one.title), one.id))


def page_inputs(database: Database, agent_id: str) -> frozenset[tuple[Any, ...]]:
    """Returns what a page shows of an agent's entities; if it has not changed, the page is up to date."""
    sql = "select path, title, status, type, line from garden_files where agent_id = ? and file = 'profile'"
    queued = database.execute("select path from garden_drift where agent_id = ?", (agent_id,))
    return frozenset(database.execute(sql, (agent_id,))) | frozenset(queued)


def files_of(database: Database, agent_id: str, entity_id: str) -> list[EntityFile]:
    """Lists the files of an entity by path; more than two where its folder was copied."""
    where = "agent_id = ? and file in ('profile', 'notes') and id = ?"
    return [_file_of(row) for row in database.execute(_SELECT.format(where), (agent_id, entity_id))]


def find(database: Database, agent_id: str, ref: str) -> list[EntityFile]:
    """Finds profiles by name: by id, else by slug, else by title (case is ignored), else by the beginning of an id.

    More than one result means that the name is ambiguous. The beginning must have at least six characters.
    """
    wanted, folded = ref.strip(), fold(ref)
    profiles = _profiles(database, "agent_id = ?", agent_id)
    return (
        [one for one in profiles if one.id == wanted]
        or [one for one in profiles if one.slug == wanted]
        or [one for one in profiles if fold(one.title) == folded]
        or [one for one in profiles if len(wanted) >= SHORTEST and one.id.startswith(wanted)]
    )


def neighbours(database: Database, profile: EntityFile) -> list[str]:
    """Returns the ids of a relationship's participants, as its profile names them, or of an entity's relationships."""
    if profile.kind == "relationship":
        return list(profile.participants)
    edges = _profiles(database, "agent_id = ? and kind = 'relationship'", profile.agent_id)
    return [edge.id for edge in edges if profile.id in edge.participants]


def fold(name: str) -> str:
    """Normalises a title for comparison: Unicode form, case and runs of white space."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _profiles(database: Database, where: str, *bindings: str) -> list[EntityFile]:
    """Returns one profile for each entity, by agent and id; where its folder was copied, the first by path."""
    files = map(_file_of, database.execute(_SELECT.format(f"file = 'profile' and {where}"), bindings))
    found = {(one.agent_id, one.id): one for one in reversed(list(files))}
    return [found[key] for key in sorted(found)]


def _file_of(row: Sequence[Any]) -> EntityFile:
    values: list[Any] = [*row[:-4], _signature(row[-4:])]
    values[_PARTICIPANTS] = tuple(json.loads(values[_PARTICIPANTS]))
    return EntityFile(*values)


def _signature(row: Sequence[Any]) -> Signature | None:
    return None if row[0] is None else Signature(*row)


# ── the event log ──


def log_end(database: Database, agent_id: str) -> tuple[str, str]:
    """Returns hash and id of the last event of an agent's log as last written or read; empty where there is none."""
    sql = "select last_hash, last_id from garden_chain where agent_id = ?"
    return next(iter(database.execute(sql, (agent_id,))), ("", ""))


def set_log_end(database: Database, agent_id: str, last_hash: str, last_id: str) -> None:
    """Records the end of an agent's event log. In the caller's transaction."""
    sql = "insert or replace into garden_chain(agent_id, last_hash, last_id) values(?, ?, ?)"
    database.execute(sql, (agent_id, last_hash, last_id))


# ── drift ──


def drift(database: Database, agent_id: str | None = None) -> list[Finding]:
    """Returns the files that wait for a maintainer, of all agents or one, oldest first."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    found = database.execute(f"select {_DRIFT} from garden_drift{where} order by found_at, path", bindings)
    return [
        Finding(code, message, hint, path, entity_id, agent_id=owner, found_at=found_at, sha256=sha256)
        for code, message, hint, path, entity_id, owner, found_at, sha256 in found
    ]


def put_drift(database: Database, one: Finding) -> None:
    """Queues a file. In the caller's transaction."""
    values = (*one[:5], one.agent_id, one.found_at, one.sha256)
    database.execute(f"insert or replace into garden_drift({_DRIFT}) values({placeholders(8)})", values)


def clear_drift(database: Database, paths: Iterable[str]) -> None:
    """Removes files from the queue. In the caller's transaction."""
    database.executemany("delete from garden_drift where path = ?", [(path,) for path in paths])


# ── days ──


# What is remembered of an agent's entities: the last day summarised in their change logs (`told_day`), and the
# fingerprint of the event log when it was last read (`ledger`).
Remembered = Literal["told_day", "ledger"]


def read_remembered(database: Database, agent_id: str, what: Remembered) -> str:
    """Returns a remembered value; empty where there is none."""
    found: str | None = database.value(f"select {what} from garden_days where agent_id = ?", (agent_id,))
    return found or ""


def remember(database: Database, agent_id: str, what: Remembered, value: str) -> None:
    """Stores a value. In the caller's transaction."""
    database.execute(
        f"insert into garden_days(agent_id, {what}) values(?, ?)"
        f" on conflict(agent_id) do update set {what} = excluded.{what}",
        (agent_id, value),
    )
