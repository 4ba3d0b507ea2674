"""Stores rows of artifacts and files: bulk reads, batched writes, full text kept in step with the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from types import MappingProxyType
from typing import Any

from signet_sync.formats.body import text_sha256
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso
from signet_sync.storage.database.batches import LISTED, pack_values, rows_with_values
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.sync.index_records import Judgement, Known, Row, Seal
from signet_sync.sync.store import passes, texts
from signet_sync.sync.store.texts import keep, text_of

_COLUMNS = ", ".join(Row._fields).replace("ledger_sentence", "built_sentence")
_ROW_SQL = f"insert into memory_artifacts(id, {_COLUMNS}) values({placeholders(len(Row._fields) + 1)})"
# The columns of a `Row`, as selected from the database.
_ROW = ", ".join(text_of() if name == "content" else name for name in Row._fields)


def _make_known(row: Sequence[Any], seen: Signature | None = None) -> Known:
    # `tuple.__new__` takes a third of the time: a full pass makes one or two of these for every file of the vault.
    stored = None if row[1] is None else tuple.__new__(Signature, row[1:5])
    return tuple.__new__(Known, (seen if seen == stored else stored, intern(row[5]), row[6]))


def sanitizer_of_rows(database: Database) -> str | None:
    """Returns the stamp of the sanitizer that every row passed; None if some rows may have passed another one."""
    return passes.find_version(database, "artifacts")


def set_sanitizer_of_rows(database: Database, stamp: str) -> None:
    """Records that every row has passed this sanitizer."""
    passes.set_version(database, "artifacts", stamp)


def list_known_files(
    database: Database, paths: Iterable[str] | None, *, seen: Mapping[str, Signature] = MappingProxyType({})
) -> dict[str, Known]:
    """Returns what the last pass knew of every path, or of some; signatures are shared with those that were `seen`."""
    columns = "path, size, mtime_ns, ctime_ns, inode, verdict, code"
    if paths is None:
        return {row[0]: _make_known(row, seen.get(row[0])) for row in database.execute(f"select {columns} from files")}
    return {row[0]: _make_known(row) for row in rows_with_values(database, columns, "files", "path", paths)}


def knows_files(database: Database) -> bool:
    """Returns whether any file was judged yet."""
    return bool(database.value("select exists(select 1 from files)"))


def invalid_paths(database: Database) -> list[str]:
    """Returns the files that no artifact could be read from."""
    return database.column("select path from files where verdict <> 'indexed' and verdict = 'invalid'")


def list_manifest_copies(database: Database) -> list[str]:
    """Returns the conflict copies that may be of a manifest."""
    copies = "verdict = 'ignored' and code = 'conflict-copy' and path like '%--manifest%.md'"
    return database.column(f"select path from files where {copies}")


def forget_signatures(database: Database, paths: Sequence[str]) -> None:
    """Makes the next pass that looks at some files read them again, even if they did not change."""
    database.executemany(
        "update files set size = null, mtime_ns = null, ctime_ns = null, inode = null where path = ?",
        [(path,) for path in paths],
    )


def next_row_id(database: Database) -> int:
    """Returns the first row id that was never used in this table."""
    top: int | None = database.value("select max(id) from memory_artifacts")
    return (top or 0) + 1


def delete_rows(database: Database, paths: Sequence[str]) -> list[tuple[str, str, str]]:
    """Deletes rows with their full text and links; returns their sessions (agent, token, id).

    FTS5 must get exactly the text that it indexed; otherwise it would not delete every word of it.
    """
    if not paths:
        return []
    columns = "id, agent_id, session_token, session_id"
    rows = list(rows_with_values(database, columns, "memory_artifacts", "source_path", paths))
    if rows:
        ids = [row[0] for row in rows]
        texts.drop_artifacts(database, ids)
        database.execute(f"delete from memory_artifacts where id {LISTED}", (pack_values(ids),))
    return [(agent, token, session) for _, agent, token, session in rows]


def _find_left_to_seals(database: Database, rows: Sequence[Row]) -> set[str]:
    """Returns the paths of rows whose seals give their texts: the sealed body is the text, letter by letter."""
    sealed = dict(
        database.execute(
            "select path, text_sha256 from seals where length(packed) > 0 and path in (select value from json_each(?))",
            (json.dumps([row.source_path for row in rows]),),
        )
    )
    return {
        row.source_path
        for row in rows
        if sealed.get(row.source_path) == row.source_sha256 and text_sha256(row.content) == row.source_sha256
    }


def insert_rows(database: Database, judgements: Sequence[Judgement], first_id: int) -> None:
    """Writes rows, full text and links of judgements (old rows deleted, seals written before)."""
    left = _find_left_to_seals(database, [judgement.row for judgement in judgements if judgement.row is not None])
    rows: list[tuple[Any, ...]] = []
    said: list[tuple[int, Row]] = []
    links: list[tuple[int, str, str]] = []
    row_id = first_id
    for judgement in judgements:
        row = judgement.row
        if row is None:
            continue
        said.append((row_id, row))
        stored = row._replace(content=None) if row.source_path in left else row  # type: ignore[arg-type]
        if row.ledger_sentence == row.memory_sentence:
            stored = stored._replace(ledger_sentence=None)
        rows.append((row_id, *stored))
        links.extend((row_id, field, target) for field, target in judgement.links)
        row_id += 1
    database.executemany(_ROW_SQL, rows)
    texts.add_artifacts(database, said)
    database.executemany("insert into links(source, field, target_path) values(?, ?, ?)", links)


def find_covered_until(database: Database, agent_id: str, token: str, session_id: str | None) -> int:
    """Returns when the last content artifact of a session ends (None: of any of the token's), in µs; 0 without one."""
    until: int | None = database.value(
        "select max(membership_us) from memory_artifacts where agent_id = ?1 and session_token = ?2"
        " and (?3 is null or session_id = ?3) and source_kind <> 'manifest'",
        (agent_id, token, session_id),
    )
    return until or 0


def store_files(database: Database, judgements: Sequence[Judgement]) -> None:
    """Writes the verdicts of a pass."""
    database.executemany(
        "insert or replace into files(path, size, mtime_ns, ctime_ns, inode, verdict, code, message, notes, agent_id,"
        " found_sha256) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                j.path,
                *(j.signature if j.signature is not None else (None, None, None, None)),
                j.verdict,
                j.code,
                j.message,
                json.dumps(j.notes) if j.notes else None,
                j.row.agent_id if j.row is not None else None,
                j.found_sha256,
            )
            for j in judgements
        ],
    )


def forget_files(database: Database, paths: Sequence[str]) -> None:
    """Deletes what was known of paths that are gone."""
    if paths:
        database.execute(f"delete from files where path {LISTED}", (pack_values(paths),))


def store_seals(database: Database, seals: Sequence[Seal]) -> None:
    """Writes seals. A row whose text depends on a replaced seal keeps its text."""
    keep(database, [seal.path for seal in seals])
    database.executemany(f"insert or replace into seals values({placeholders(len(Seal._fields))})", seals)


def seal_of(database: Database, path: str) -> Seal | None:
    """Returns the seal of a path."""
    for row in database.execute("select * from seals where path = ?", (path,)):
        return Seal(*row)
    return None


def list_unresolved_targets(database: Database, targets: Iterable[str] | None) -> list[str]:
    """Returns distinct link targets that are no known file, of all links or among some targets."""
    sql = (
        "select distinct l.target_path from links l"
        " left join files f on f.path = l.target_path and f.code <> 'vanished' where f.path is null"
    )
    if targets is None:
        return database.column(sql)
    return database.column(f"{sql} and l.target_path {LISTED}", (pack_values(sorted(targets)),))


def targets_of(database: Database, sources: Sequence[str]) -> set[str]:
    """Returns the link targets of some files."""
    sql = "select target_path from memory_artifacts cross join links on source = id where source_path"
    return {*database.column(f"{sql} {LISTED}", (pack_values(sources),))}


def mark_broken(database: Database, broken: Iterable[str], checked: Iterable[str] | None) -> None:
    """Stores which targets are broken: among all links, or among the checked targets."""
    lost = list(broken)
    if checked is None:
        checked = {*lost, *database.column("select distinct target_path from links where broken = 1")}
    database.execute(
        f"update links set broken = not broken where target_path {LISTED} and broken <> (target_path {LISTED})",
        (pack_values(checked), pack_values(lost)),
    )


def sessions_without_manifest(database: Database) -> list[tuple[str, str, str]]:
    """Returns sessions (agent, token, id) with content but no valid manifest."""
    return list(
        database.execute(
            "select agent_id, session_token, session_id from memory_artifacts group by 1, 2, 3"
            " having sum(source_kind = 'manifest') = 0 order by 1, 2, 3"
        )
    )


def identities(database: Database, agent_id: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Yields path, token, session id and key of every artifact of an agent."""
    yield from database.execute(
        "select source_path, session_token, session_id, session_key from memory_artifacts where agent_id = ?",
        (agent_id,),
    )


def list_shown_manifests(database: Database, agent_id: str) -> list[str]:
    """Returns an agent's manifests that list a heading."""
    sql = "select source_path from memory_artifacts where agent_id = ? and refs is not null and refs <> ''"
    return database.column(sql, (agent_id,))


def manifest_of(database: Database, agent_id: str, token: str, session_id: str) -> tuple[str, str] | None:
    """Returns path and refs of a session's newest manifest."""
    for path, refs in database.execute(
        "select source_path, refs from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?"
        " and source_kind = 'manifest' order by captured_us desc, source_path desc limit 1",
        (agent_id, token, session_id),
    ):
        return path, refs or ""
    return None


def session_rows(database: Database, agent_id: str, token: str, session_id: str) -> list[Row]:
    """Returns every row of a session, oldest first."""
    return [
        Row(*row)
        for row in database.execute(
            f"select {_ROW} from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?"
            " order by captured_us, source_path",
            (agent_id, token, session_id),
        )
    ]


def transcripts(database: Database, agent_id: str, token: str, session_id: str | None) -> list[tuple[str, int]]:
    """Returns text and end (µs since 1970 UTC) of the transcripts of a session, or of a whole token, oldest first."""
    one = "" if session_id is None else " and session_id = ?3"
    return list(
        database.execute(
            f"select {text_of()}, membership_us from memory_artifacts where agent_id = ?1 and session_token = ?2"
            f" and source_kind = 'transcript'{one} order by captured_us, source_path",
            (agent_id, token, session_id) if one else (agent_id, token),
        )
    )


def transcripts_at(database: Database, agent_id: str, at_us: int, but: str) -> dict[str, str]:
    """Returns by path the texts of transcripts that cover an instant, of an agent's sessions other than one."""
    rows = database.execute(
        f"select source_path, {text_of()} from memory_artifacts where agent_id = ?1"
        " and membership_us >= ?2 / 1000 * 1000 and source_kind = 'transcript' and session_id <> ?3"
        " and coalesce(started_at, captured_at) <= ?4",
        (agent_id, at_us, but, iso(at_us)),
    )
    return dict(rows)


def compactions_at(database: Database, agent_id: str, at_us: int, but: str) -> list[str]:
    """Returns the texts of an agent's compactions of one millisecond, of sessions other than one."""
    return database.column(
        f"select {text_of()} from memory_artifacts where agent_id = ? and membership_us = ?"
        " and source_kind = 'compaction' and session_id <> ?",
        (agent_id, at_us // 1000 * 1000, but),
    )


def read_every_row(database: Database) -> Iterator[tuple[int, Row]]:
    """Yields number and row of every artifact, each read when it is asked for."""
    for (number,) in list(database.execute("select id from memory_artifacts order by id")):
        for row in database.execute(f"select {_ROW} from memory_artifacts where id = ?", (number,)):
            yield number, Row(*row)


def rows_by_path(database: Database, paths: Sequence[str]) -> Mapping[str, Row]:
    """Returns the rows of some paths."""
    return {row[1]: Row(*row) for row in rows_with_values(database, _ROW, "memory_artifacts", "source_path", paths)}
