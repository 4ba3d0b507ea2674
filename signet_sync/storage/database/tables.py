"""Declares the tables that a rebuild keeps, and lists all tables. Names are Signet's where they mean the same.

Instants ending in `_us` are microseconds since 1970 UTC. `NODES` and `STATEMENTS` are what to select from for their
rows with names instead of numbers.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Literal

from signet_sync.storage.database.derived import DERIVED
from signet_sync.storage.database.derived import path_of as path_of
from signet_sync.storage.database.table import (
    SESSION,
    Agent,
    Artifact,
    Body,
    Count,
    Day,
    Escaped,
    FileBytes,
    Hash,
    Id,
    Instant,
    Mark,
    MemoryId,
    Micros,
    Number,
    Outside,
    SanitizedLine,
    SweepId,
    Table,
    Text,
    Token,
    When,
    all_of,
    columns,
    native,
)

# Live turns that a harness sent; the others can be read again from the transcript that it writes.
HANDED_OVER = "session_id <> session_key"


# fmt: off
NATIVE: tuple[Table, ...] = (
    native(
        "what each immutable artifact was when it was first seen, and its bytes",
        """create table seals(
        path text primary key, agent_id text not null, session_token text not null, session_id text not null,
        kind text not null, digest text not null, text_sha256 text not null, file_sha256 text not null,
        packed blob, sealed_at text not null)""",
        "create index seals_session on seals(agent_id, session_token, session_id)",
        "create index seals_bytes on seals(length(packed))",
        row=columns(
            # packed: zstd
            path=Artifact, agent_id=Agent, session_token=Token, session_id=Text,
            kind=Literal["summary", "transcript", "compaction"], digest=Hash, text_sha256=Hash, file_sha256=Hash,
            sealed_at=When, packed=FileBytes | None
        ),
        session=SESSION,
        artifact=("path",),
        # A seal that is rewritten gets a new rowid.
        mark="count(*) || ':' || coalesce(max(rowid), 0)",
    ),
    native(
        "sealed files that changed or went, until a person settles them",
        """create table violations(
        path text primary key, code text not null, message text not null, found_at text not null,
        found_sha256 text not null) without rowid""",
        artifact=("path",),
    ),
    native(
        "which changes of sealed files were accepted, or (`gone`) that they went, when and why",
        """create table acceptances(
        path text primary key, gone integer not null, at text not null, reason text not null) without rowid""",
        row=columns(path=Artifact, gone=bool, at=When, reason=SanitizedLine),
        artifact=("path",),
    ),
    native(
        "which sealed files were redacted, when and why. `scrubbed` is 0 until no old byte of them is left",
        """create table redactions(
        path text primary key, at text not null, reason text not null,
        scrubbed integer not null default 1) without rowid""",
        row=columns(
            # reason: rules and counts before it
            path=Artifact, at=When, reason=SanitizedLine
        ),
        artifact=("path",),
    ),
    native(
        "the mirror of the tombstone files",
        """create table memory_artifact_tombstones(
        agent_id text not null, session_token text not null, removed_at text not null, reason text not null,
        removed_paths text not null, session_ids text, scrubbed integer not null default 0,
        primary key(agent_id, session_token)) without rowid""",
        row=columns(agent_id=Agent, session_token=Token, removed_at=When, reason=SanitizedLine,
            removed_paths=Escaped[Artifact], session_ids=Escaped[Text] | None),
        mark="count(*) || ':' || coalesce(max(removed_at), '') || ':' || coalesce(sum(length(removed_paths)), 0)",
    ),
    native(
        "digests of removed lines, until a scrub has taken them out of kept copies (`fresh`: none has run since)",
        "create table removed_lines(digest text primary key, fresh integer not null) without rowid",
    ),
    native(
        "a hash of each handle that only removed sessions had: a page of before may come back and show it",
        """create table removed_handles(
        agent_id text not null, mark text not null, session_token text not null,
        primary key(agent_id, mark, session_token)) without rowid""",
        row=columns(agent_id=Agent, session_token=Token, mark=Mark),
    ),
    native(
        "the lease of each agent's MEMORY.md, and its last revision",
        """create table memory_md_heads(
        agent_id text primary key, content_hash text, lease_owner text, fence integer not null) without rowid""",
    ),
    native(
        "the first answer to every end of a session, as JSON: a replay gets it again. `flow_key` is a hash",
        """create table flow_results(
        agent_id text not null, flow_key text not null, kind text not null, request_sha256 text not null,
        session_token text not null, session_id text not null, answer text not null, at text not null,
        primary key(agent_id, flow_key)) without rowid""",
        "create index flow_results_session on flow_results(agent_id, session_token, session_id)",
        "create index flow_results_id on flow_results(agent_id, session_id)",
        row=columns(agent_id=Agent, flow_key=Text, kind=Text, request_sha256=Text, session_token=Token,
            session_id=Text, answer=dict[str, Any], at=When),
        session=SESSION,
        mark="count(*) || ':' || coalesce(max(at), '')",
    ),
    native(
        "which transcripts of harnesses were read, and as they were then: what did not move is not read again",
        """create table captures(
        harness text not null, path text not null, session_id text not null, size integer not null,
        mtime_ns integer not null, agent_id text not null, outcome text not null, conversation text not null,
        folder text not null default '', at text not null,
        primary key(harness, path, session_id)) without rowid""",
        "create index captures_agents on captures(harness, agent_id, at)",
        row=columns(harness=Text, path=Outside, session_id=Outside, size=Number, mtime_ns=Number,
            agent_id=Agent | Literal[""], outcome=SanitizedLine, conversation=Outside, folder=Outside, at=When),
        mark="count(*) || ':' || coalesce(max(at), '')",
    ),
    native(
        "turns of running sessions until their artifacts are written; `session_id` is empty where only a key is known",
        """create table session_transcripts(
        agent_id text not null, session_key text not null, session_id text not null default '', turn integer not null,
        role text not null, content text not null, at text not null,
        primary key(agent_id, session_key, session_id, turn)) without rowid""",
        row=columns(agent_id=Agent, session_key=Text, session_id=Text, turn=Count, role=SanitizedLine, content=Body,
            at=When),
        only=HANDED_OVER,
        kept="elsewhere",
    ),
    native(
        "the sessions that have live turns: where each works, and whether it is noise",
        """create table live_sessions(
        agent_id text not null, session_key text not null, session_id text not null, project text, harness text,
        repository_root text, repository_origin text, repository_path text, repository_branch text,
        noise integer not null,
        primary key(agent_id, session_key, session_id)) without rowid""",
        row=columns(agent_id=Agent, session_key=Text, session_id=Text, project=Text | None, harness=Text | None,
            repository_root=Text | None, repository_origin=Text | None, repository_path=Text | None,
            repository_branch=Text | None, noise=bool),
        only=HANDED_OVER,
        kept="elsewhere",
    ),
    native(
        "how the files of live turns looked when rows were made of them; turns whose file is not here are rows alone",
        "create table live_files(name text primary key, shape text not null) without rowid",
        salvaged=False,
    ),
    native(
        "transcripts of running sessions as they were when their turns were last read, by the name of the stop marker",
        """create table live_transcripts(
        name text primary key, shape text not null, told_at text not null, rests_until integer not null)
        without rowid""",
    ),
    native(
        "what was asked to be remembered, sanitized; it is in no file. `concept_tags` are made of it (null: not yet)",
        """create table memories(
        agent_id text not null, id text not null, type text not null, content text not null, tags text not null,
        private integer not null, created_at text not null, concept_tags text,
        project text not null default '',
        primary key(agent_id, id)) without rowid""",
        "create index memories_time on memories(agent_id, type, created_at)",
        row=columns(agent_id=Agent, id=MemoryId,
            type=Literal["preference", "decision", "constraint", "person", "blocker", "note"], content=Body,
            tags=list[SanitizedLine], private=bool, created_at=When, concept_tags=list[SanitizedLine] | None,
            project=SanitizedLine | Literal[""]),
        handle="id",
        # The id is made of the words.
        mark=all_of("agent_id", "id", "type", "tags", "private", "created_at", "concept_tags", "project"),
    ),
    native(
        "where a memory is from: a session; (no token and id) a person's own word; (no token) another program",
        """create table memory_sources(
        agent_id text not null, memory_id text not null, session_token text not null, session_id text not null,
        at text not null,
        primary key(agent_id, memory_id, session_token, session_id)) without rowid""",
        "create index memory_sources_session on memory_sources(agent_id, session_token, session_id)",
        row=columns(agent_id=Agent, memory_id=MemoryId, session_token=Token | Literal[""], session_id=Text, at=When),
        session=SESSION,
        handle="memory_id",
    ),
    native(
        "a hash of each memory that was forgotten: a diary may come back and name it, `migrate` does not bring it",
        "create table forgotten_memories(mark text primary key) without rowid",
        row=columns(mark=Mark),
    ),
    native(
        "forgotten memories of which bytes may be left in our files",
        """create table unscrubbed_memories(
        agent_id text not null, memory_id text not null,
        primary key(agent_id, memory_id)) without rowid""",
    ),
    native(
        "how often an id was asked for, up to `last_day`, and up to the day before it, which the page of a day shows",
        """create table node_telemetry(
        agent_id text not null, id text not null, accesses integer not null, last_day text not null,
        before integer not null, before_day text,
        primary key(agent_id, id)) without rowid""",
        "create index node_telemetry_time on node_telemetry(agent_id, last_day)",
        row=columns(agent_id=Agent, id=Id, accesses=Count, last_day=Day, before=Count, before_day=Day | None),
        handle="id",
    ),
    native(
        "every hit of `recall` on a memory: a digest of the query, and 1/rank",
        """create table recall_events(
        id integer primary key, agent_id text not null, memory_id text not null, query text not null,
        score real not null, at_us integer not null)""",
        "create index recall_events_memory on recall_events(agent_id, memory_id, at_us)",
        "create index recall_events_time on recall_events(agent_id, at_us)",
        row=columns(agent_id=Agent, memory_id=MemoryId, query=Mark, score=float, at_us=Instant),
        handle="memory_id",
        mark="count(*) || ':' || coalesce(max(id), 0)",
    ),
    native(
        "every sweep of dreams",
        """create table dream_sweeps(
        agent_id text not null, sweep_id text not null, at_us integer not null, candidates integer not null,
        promoted integer not null, skipped integer not null,
        primary key(agent_id, sweep_id)) without rowid""",
        row=columns(agent_id=Agent, sweep_id=SweepId, at_us=Instant, candidates=Count, promoted=Count, skipped=Count),
        mark="count(*) || ':' || coalesce(max(sweep_id), '')",
    ),
    native(
        "what rose into MEMORY.md, in which sweep and why: its section and the diary are made of these rows",
        """create table memory_promotions(
        agent_id text not null, memory_id text not null, sweep_id text not null, score real not null,
        recall_count integer not null, frequency real not null, relevance real not null, recency real not null,
        diversity real not null, unique_days integer not null, queries integer not null,
        last_us integer not null,
        primary key(agent_id, memory_id)) without rowid""",
        "create index memory_promotions_sweep on memory_promotions(agent_id, sweep_id)",
        row=columns(agent_id=Agent, memory_id=MemoryId, sweep_id=SweepId, score=float, recall_count=Count,
            frequency=float, relevance=float, recency=float, diversity=float, unique_days=Count, queries=Count,
            last_us=Micros),
        handle="memory_id",
    ),
    native(
        "the end of each event log of entities as last known: a log that lost its end does not say so itself",
        """create table garden_chain(
        agent_id text primary key, last_hash text not null, last_id text not null) without rowid""",
        row=columns(agent_id=Agent, last_hash=Text, last_id=Text),
    ),
    native(
        "entity files that are not what their events say, for a maintainer to look at; found again by every look",
        """create table garden_drift(
        path text primary key, agent_id text not null, entity_id text not null, code text not null,
        message text not null, hint text not null, found_at text not null, found_sha256 text not null) without rowid""",
        "create index garden_drift_agent on garden_drift(agent_id, found_at)",
    ),
    native(
        "up to which day the change logs of each agent's entities tell of its events, and its event log as last seen",
        """create table garden_days(
        agent_id text primary key, told_day text not null default '', ledger text not null default '') without rowid""",
    ),
    native(
        "one row: why passes are halted (null: they are not), and what is due (`sync.store.passes`)",
        """create table passes(
        one integer primary key check(one = 1), halted text, unread integer not null default 0,
        manifests_due integer not null default 0,
        wipe_due integer not null default 0, pages_due integer not null default 0, examined_at text)""",
        salvaged=False,
    ),
    native(
        "one row: what was last reported about Signet's database",
        """create table beside_signet(
        one integer primary key check(one = 1), trouble text)""",
        salvaged=False,
    ),
    native(
        "one row: whether native rows are still to be brought back, and the fingerprint of the last backup",
        """create table backups(
        one integer primary key check(one = 1), restore_due integer not null default 0, fingerprint text)""",
        salvaged=False,
    ),
    native(
        "one row: up to which sweep of dreams, and which ends of sessions, the git history tells; `flow_keys` is JSON",
        """create table history_told(
        one integer primary key check(one = 1), sweep_id text, flow_keys text)""",
        salvaged=False,
    ),
)
# fmt: on


# ── all tables, and what identifies the database ──

APPLICATION_ID = 0x53495359  # "SISY"

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
