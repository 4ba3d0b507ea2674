"""Tables, and for each whether it is derived (a rebuild may drop it) or native (a rebuild must not touch it).

Names are Signet's where they mean the same (`memory_artifacts`, `memory_artifact_tombstones`, `memory_md_heads`).
Instants ending in `_us` are microseconds since 1970 UTC.
"""

from __future__ import annotations

from typing import Literal

VERSION = 1
APPLICATION_ID = 0x53495359  # "SISY"
# While the first index is built without a journal; a file that still says so was left by a crash.
BUILDING_ID = 0x53495342

TABLES: dict[str, Literal["derived", "native"]] = {
    "memory_artifacts": "derived",
    "memory_artifacts_fts": "derived",
    "files": "derived",
    "links": "derived",
    "ledger_rows": "derived",
    "ledger_days": "derived",
    "pages": "derived",
    "seals": "native",
    "violations": "native",
    "memory_artifact_tombstones": "native",
    "artifact_telemetry": "native",
    "memory_md_heads": "native",
    "flow_results": "native",
    "session_transcripts": "native",
    "captures": "native",
    "meta": "native",
}

# What a lost database takes with it unless it is backed up: everything native but the seals' bytes and what is of the
# moment (leases, the last pass).
BACKED_UP: dict[str, tuple[str, ...]] = {
    "seals": (
        "path", "agent_id", "session_token", "session_id", "kind", "digest", "body_sha256", "file_sha256", "sealed_at",
    ),
    "memory_artifact_tombstones": ("agent_id", "session_token", "removed_at", "reason", "removed_paths", "session_ids"),
    "artifact_telemetry": ("agent_id", "source_path", "accesses", "last_accessed_at"),
    "flow_results": (
        "agent_id", "flow_key", "kind", "request_sha256", "session_token", "session_id", "answer", "refused", "at",
    ),
    "captures": (
        "harness", "path", "session_id", "size", "mtime_ns", "agent_id", "outcome", "conversation", "at",
    ),
}  # fmt: skip

DERIVED_DDL: tuple[str, ...] = (
    """create table memory_artifacts(
        id integer primary key,
        agent_id text not null, source_path text not null unique, source_sha256 text not null,
        source_kind text not null, session_id text not null, session_key text, session_token text not null,
        project text, harness text,
        captured_at text not null, started_at text, ended_at text, manifest_path text, source_node_id text,
        memory_sentence text, memory_sentence_quality text, ledger_sentence text, content text not null,
        captured_us integer not null, membership_us integer not null, noise integer not null,
        refs text, revision integer,
        search_content text, search_sentence text, updated_at text not null, source_mtime_ms real)""",
    "create index memory_artifacts_session on memory_artifacts(agent_id, session_token, session_id)",
    "create index memory_artifacts_time on memory_artifacts(agent_id, membership_us)",
    "create index memory_artifacts_told on memory_artifacts(agent_id, membership_us)"
    " where source_kind in ('summary', 'compaction') and noise = 0",
    "create index memory_artifacts_compactions on memory_artifacts(agent_id, membership_us)"
    " where source_kind = 'compaction' and noise = 0",
    "create index memory_artifacts_refs on memory_artifacts(agent_id) where refs is not null and refs <> ''",
    # Contentless: the text stands once, in memory_artifacts. contentless_delete would leak removed words.
    """create virtual table memory_artifacts_fts using fts5(
        content, memory_sentence, content='', tokenize="unicode61 remove_diacritics 2")""",
    "insert into memory_artifacts_fts(memory_artifacts_fts, rank) values('secure-delete', 1)",
    "insert into memory_artifacts_fts(memory_artifacts_fts, rank) values('rank', 'bm25(1.0, 4.0)')",
    """create table files(
        path text primary key, size integer, mtime_ns integer, ctime_ns integer, inode integer,
        verdict text not null, code text not null, message text not null, notes text,
        agent_id text, found_sha256 text, read_us integer not null) without rowid""",
    "create index files_verdict on files(verdict) where verdict <> 'indexed'",
    """create table links(
        source_path text not null, field text not null, target_path text not null, broken integer not null default 0,
        primary key(source_path, field)) without rowid""",
    "create index links_target on links(target_path)",
    "create index links_broken on links(broken) where broken = 1",
    """create table ledger_rows(
        agent_id text not null, session_token text not null, session_id text not null, membership_us integer not null,
        day text not null, line text not null, tokens integer not null, project text, sentence text not null,
        path text not null, kind text not null,
        primary key(agent_id, session_token, session_id)) without rowid""",
    "create index ledger_time on ledger_rows(agent_id, membership_us, session_token, project)",
    "create index ledger_day on ledger_rows(agent_id, day)",
    """create table ledger_days(
        agent_id text not null, day text not null, sessions integer not null,
        primary key(agent_id, day)) without rowid""",
    """create table pages(
        path text primary key, agent_id text not null, size integer, mtime_ns integer, ctime_ns integer, inode integer,
        inputs_sha256 text not null, next_us integer) without rowid""",
)

NATIVE_DDL: tuple[str, ...] = (
    """create table seals(
        path text primary key, agent_id text not null, session_token text not null, session_id text not null,
        kind text not null, digest text not null, body_sha256 text not null, file_sha256 text not null,
        packed blob, sealed_at text not null)""",
    "create index seals_session on seals(agent_id, session_token, session_id)",
    """create table violations(
        path text primary key, code text not null, message text not null, found_at text not null,
        found_sha256 text not null, batch text not null) without rowid""",
    """create table memory_artifact_tombstones(
        agent_id text not null, session_token text not null, removed_at text not null, reason text not null,
        removed_paths text not null, session_ids text, scrubbed integer not null default 0,
        primary key(agent_id, session_token)) without rowid""",
    """create table artifact_telemetry(
        agent_id text not null, source_path text not null, accesses integer not null, last_accessed_at text not null,
        primary key(agent_id, source_path)) without rowid""",
    """create table memory_md_heads(
        agent_id text primary key, content_hash text, revision integer not null default 0, updated_at text,
        lease_token text, lease_owner text, lease_expires_at text, fence integer not null default 0) without rowid""",
    # The first answer of every flow: a replay gets it again. `flow_key` is a hash, `answer` the JSON that was told.
    """create table flow_results(
        agent_id text not null, flow_key text not null, kind text not null, request_sha256 text not null,
        session_token text not null, session_id text not null, answer text not null,
        refused integer not null default 0, at text not null,
        primary key(agent_id, flow_key)) without rowid""",
    "create index flow_results_session on flow_results(agent_id, session_token, session_id)",
    # Which transcripts of harnesses were read, and as they were then: what did not move is not read again.
    """create table captures(
        harness text not null, path text not null, session_id text not null, size integer not null,
        mtime_ns integer not null, agent_id text not null, outcome text not null, conversation text not null,
        at text not null,
        primary key(harness, path, session_id)) without rowid""",
    # Turns of sessions that still run, sanitized; reset when their canonical files are written (seed 000).
    """create table session_transcripts(
        agent_id text not null, session_key text not null, turn integer not null, role text not null,
        content text not null, at text not null,
        primary key(agent_id, session_key, turn)) without rowid""",
    "create table meta(key text primary key, value text not null) without rowid",
)


def derived_tables() -> tuple[str, ...]:
    """Names of the tables that a rebuild drops."""
    return tuple(name for name, kind in TABLES.items() if kind == "derived")


def native_tables() -> tuple[str, ...]:
    """Names of the tables that a rebuild leaves alone."""
    return tuple(name for name, kind in TABLES.items() if kind == "native")
