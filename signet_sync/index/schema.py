"""Tables, and for each whether it is derived (a rebuild may drop it) or native (a rebuild must not touch it).

Names are Signet's where they mean the same (`memory_artifacts`, `memory_artifact_tombstones`, `memory_md_heads`).
Instants ending in `_us` are microseconds since 1970 UTC.
"""

from __future__ import annotations

from typing import Literal

VERSION = 5
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
    "session_summaries": "derived",
    "session_summary_children": "derived",
    "thread_sessions": "derived",
    "memory_thread_heads": "derived",
    "entities": "derived",
    "entity_mentions": "derived",
    "entity_attributes": "derived",
    "attribute_sources": "derived",
    "relations": "derived",
    "recall_lines": "derived",
    "recall_lines_fts": "derived",
    "garden_files": "derived",
    "history_files": "derived",
    "derivers": "derived",
    "outbox": "derived",
    "seals": "native",
    "violations": "native",
    "memory_artifact_tombstones": "native",
    "artifact_telemetry": "native",
    "memory_md_heads": "native",
    "flow_results": "native",
    "session_transcripts": "native",
    "captures": "native",
    "memories": "native",
    "memory_sources": "native",
    "pins": "native",
    "node_telemetry": "native",
    "node_wordings": "native",
    "extractions": "native",
    "recall_events": "native",
    "dream_sweeps": "native",
    "memory_promotions": "native",
    "garden_chain": "native",
    "garden_drift": "native",
    "meta": "native",
}

# What a lost database takes with it unless it is backed up: everything native but the seals' bytes and what is of the
# moment (leases, the last pass, files that drifted: they are found again). Live turns stand in files beside the
# database: only a backup that is taken elsewhere holds them.
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
    "memories": ("agent_id", "id", "type", "content", "tags", "private", "created_at", "concept_tags"),
    "memory_sources": ("agent_id", "memory_id", "session_token", "session_id", "at"),
    "pins": ("agent_id", "id", "pinned_at"),
    "node_telemetry": ("agent_id", "id", "accesses", "last_day", "before", "before_day"),
    "recall_events": ("agent_id", "memory_id", "query", "score", "at_us"),
    "dream_sweeps": ("agent_id", "sweep_id", "at_us", "candidates", "promoted", "skipped"),
    "memory_promotions": (
        "agent_id", "memory_id", "sweep_id", "score", "recall_count", "frequency", "relevance", "recency", "diversity",
        "consolidation", "unique_days", "queries", "last_us",
    ),
    "garden_chain": ("agent_id", "last_hash", "last_id", "events"),
    "session_transcripts": ("agent_id", "session_key", "session_id", "turn", "role", "content", "at"),
}  # fmt: skip
# Of live turns those that were handed over: the others are read from a transcript of a harness again.
HANDED_OVER = "session_id <> session_key"

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
    # The temporal graph (`temporal.nodes.Node`, `Edge`; `temporal.threads`).
    """create table session_summaries(
        agent_id text not null, id text not null, kind text not null, source_type text not null, depth integer not null,
        source_ref text, thread_id text, session_token text, session_id text, earliest_us integer not null,
        latest_us integer not null, token_count integer not null, start integer not null, end integer not null,
        label text not null, content text,
        primary key(agent_id, id)) without rowid""",
    "create index session_summaries_session on session_summaries(agent_id, session_token, session_id)",
    "create index session_summaries_thread on session_summaries(agent_id, thread_id, depth, latest_us)",
    "create index session_summaries_time on session_summaries(agent_id, depth > 0, latest_us)"
    " where source_type <> 'chunk' and thread_id is not null",
    "create index session_summaries_source on session_summaries(source_ref) where source_ref is not null",
    """create table session_summary_children(
        agent_id text not null, parent_id text not null, child_id text not null,
        primary key(agent_id, parent_id, child_id)) without rowid""",
    "create index session_summary_parents on session_summary_children(agent_id, child_id)",
    """create table thread_sessions(
        agent_id text not null, session_token text not null, session_id text not null, thread_id text not null,
        earliest_us integer not null, latest_us integer not null, week text not null, node_id text not null,
        source_type text not null, source_ref text not null, sentence text not null, status text, told text not null,
        primary key(agent_id, session_token, session_id)) without rowid""",
    "create index thread_sessions_time on thread_sessions(agent_id, thread_id, latest_us)",
    "create index thread_sessions_week on thread_sessions(agent_id, thread_id, week)",
    """create table memory_thread_heads(
        agent_id text not null, thread_id text not null, thread_key text not null, label text not null, project text,
        session_key text, harness text, status text not null, sessions integer not null, earliest_us integer not null,
        latest_us integer not null, node_id text not null, source_type text not null, source_ref text not null,
        sample text not null, next_action text, told text not null,
        primary key(agent_id, thread_id)) without rowid""",
    "create index memory_thread_heads_time on memory_thread_heads(agent_id, latest_us)",
    # What is distilled (`facts.records`): each row from at least one source, `path` and `line` in its body.
    """create table entities(
        agent_id text not null, id text not null, kind text not null, norm text not null, name text not null,
        mentions integer not null, latest_us integer not null,
        primary key(agent_id, id)) without rowid""",
    """create table entity_mentions(
        agent_id text not null, entity_id text not null, source_path text not null, line integer not null,
        name text not null, session_token text not null, session_id text not null, at_us integer not null,
        primary key(agent_id, entity_id, at_us, source_path)) without rowid""",
    "create index entity_mentions_session on entity_mentions(agent_id, session_token, session_id)",
    """create table entity_attributes(
        agent_id text not null, id text not null, entity_id text not null, aspect text not null, slot text,
        text text not null, status text not null, superseded_by text, sources integer not null,
        earliest_us integer not null, latest_us integer not null, source_path text not null, line integer not null,
        thread_id text,
        primary key(agent_id, id)) without rowid""",
    "create index entity_attributes_time on entity_attributes(agent_id, aspect, latest_us) where status = 'active'",
    "create index entity_attributes_slot on entity_attributes(agent_id, entity_id, aspect, slot)",
    """create table attribute_sources(
        agent_id text not null, attribute_id text not null, source_path text not null, line integer not null,
        text text not null, done integer not null, thread_id text, session_token text not null,
        session_id text not null, at_us integer not null, entity_id text not null, aspect text not null, slot text,
        primary key(agent_id, attribute_id, at_us, source_path)) without rowid""",
    "create index attribute_sources_session on attribute_sources(agent_id, session_token, session_id)",
    """create table relations(
        agent_id text not null, from_id text not null, kind text not null, to_id text not null,
        source_path text not null, line integer not null, session_token text not null, session_id text not null,
        primary key(agent_id, from_id, kind, to_id, source_path)) without rowid""",
    "create index relations_to on relations(agent_id, to_id)",
    "create index relations_session on relations(agent_id, session_token, session_id)",
    # One short text for each thing that `recall` finds besides artifacts: memories, facts, thread heads, condensations,
    # profiles of entities.
    """create table recall_lines(
        rowid integer primary key, agent_id text not null, tier text not null, id text not null, text text not null,
        search_text text)""",
    "create unique index recall_lines_id on recall_lines(agent_id, id)",
    """create virtual table recall_lines_fts using fts5(
        text, content='', tokenize="unicode61 remove_diacritics 2")""",
    "insert into recall_lines_fts(recall_lines_fts, rank) values('secure-delete', 1)",
    # Entity files (`contracts.gardens`). `text` is what `recall` finds a profile by; a file without a signature is
    # to be read again.
    """create table garden_files(
        path text primary key, agent_id text not null, kind text not null, id text not null, slug text not null,
        file text not null, title text not null, status text not null, type text, line text not null,
        participants text not null, text text not null, sha256 text not null, updated_us integer not null,
        size integer, mtime_ns integer, ctime_ns integer, inode integer) without rowid""",
    "create index garden_files_id on garden_files(agent_id, file, id)",
    # What the history took of each file when it last looked, so that only what moved is read again.
    """create table history_files(
        path text primary key, size integer not null, mtime_ns integer not null, ctime_ns integer not null,
        inode integer not null, oid text, skipped text) without rowid""",
    # By which version of its rules each deriver made its rows (`sync.stages.Deriver`), and whether it is still at it.
    "create table derivers(name text primary key, version text not null, rebuilding integer not null) without rowid",
    # What derivers still have to follow. Of a session its token and id, of anything else an id and nothing.
    """create table outbox(
        deriver text not null, kind text not null, agent_id text not null, session_token text not null,
        session_id text not null, at_us integer not null,
        primary key(deriver, kind, agent_id, session_token, session_id)) without rowid""",
    "create index outbox_time on outbox(deriver, at_us)",
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
    "create index flow_results_id on flow_results(agent_id, session_id)",
    # Which transcripts of harnesses were read, and as they were then: what did not move is not read again.
    """create table captures(
        harness text not null, path text not null, session_id text not null, size integer not null,
        mtime_ns integer not null, agent_id text not null, outcome text not null, conversation text not null,
        at text not null,
        primary key(harness, path, session_id)) without rowid""",
    # Turns of sessions that still run, sanitized; reset when their canonical files are written (seed 000).
    # `session_id` is empty where whoever streams knows the key alone.
    """create table session_transcripts(
        agent_id text not null, session_key text not null, session_id text not null default '', turn integer not null,
        role text not null, content text not null, at text not null,
        primary key(agent_id, session_key, session_id, turn)) without rowid""",
    # What somebody asked to be remembered: it stands nowhere else. `content` is sanitized. `concept_tags` are made of
    # it (null: not yet).
    """create table memories(
        agent_id text not null, id text not null, type text not null, content text not null, tags text not null,
        private integer not null, created_at text not null, concept_tags text,
        primary key(agent_id, id)) without rowid""",
    "create index memories_time on memories(agent_id, type, created_at)",
    # Where a memory comes from: sessions, or (token and id empty) a person's own word.
    """create table memory_sources(
        agent_id text not null, memory_id text not null, session_token text not null, session_id text not null,
        at text not null,
        primary key(agent_id, memory_id, session_token, session_id)) without rowid""",
    "create index memory_sources_session on memory_sources(agent_id, session_token, session_id)",
    """create table pins(
        agent_id text not null, id text not null, pinned_at text not null,
        primary key(agent_id, id)) without rowid""",
    # How often a node, fact, thread or memory was asked for, up to the UTC day `last_day`, and up to the day before it
    # (`before_day`): a page shows what counted when its day began.
    """create table node_telemetry(
        agent_id text not null, id text not null, accesses integer not null, last_day text not null,
        before integer not null, before_day text,
        primary key(agent_id, id)) without rowid""",
    "create index node_telemetry_time on node_telemetry(agent_id, last_day)",
    # A model's words for a condensation, beside the deterministic ones, for as long as `content_sha256` is theirs.
    """create table node_wordings(
        agent_id text not null, id text not null, content_sha256 text not null, text text not null, model text not null,
        at text not null,
        primary key(agent_id, id)) without rowid""",
    # What a model distilled from an artifact, as JSON, for as long as the artifact's body is the same.
    """create table extractions(
        agent_id text not null, source_path text not null, source_sha256 text not null, items text not null,
        model text not null, at text not null,
        primary key(agent_id, source_path)) without rowid""",
    # Every hit of `recall` on a memory (seed 004). `query` is sanitized, `score` is 1/rank.
    """create table recall_events(
        id integer primary key, agent_id text not null, memory_id text not null, query text not null,
        score real not null, at_us integer not null)""",
    "create index recall_events_memory on recall_events(agent_id, memory_id, at_us)",
    "create index recall_events_time on recall_events(agent_id, at_us)",
    # What rose into MEMORY.md, in which sweep and why: its section and the diary are made of these rows alone.
    """create table dream_sweeps(
        agent_id text not null, sweep_id text not null, at_us integer not null, candidates integer not null,
        promoted integer not null, skipped integer not null,
        primary key(agent_id, sweep_id)) without rowid""",
    """create table memory_promotions(
        agent_id text not null, memory_id text not null, sweep_id text not null, score real not null,
        recall_count integer not null, frequency real not null, relevance real not null, recency real not null,
        diversity real not null, consolidation real not null, unique_days integer not null, queries integer not null,
        last_us integer not null,
        primary key(agent_id, memory_id)) without rowid""",
    "create index memory_promotions_sweep on memory_promotions(agent_id, sweep_id)",
    # The end of each ledger of entities as last known: a ledger that lost its end does not say so itself.
    """create table garden_chain(
        agent_id text primary key, last_hash text not null, last_id text not null,
        events integer not null) without rowid""",
    # Entity files that are not what their events say, for a maintainer to look at.
    """create table garden_drift(
        path text primary key, agent_id text not null, entity_id text not null, file text not null, code text not null,
        message text not null, hint text not null, found_at text not null, found_sha256 text not null) without rowid""",
    "create index garden_drift_agent on garden_drift(agent_id, found_at)",
    "create table meta(key text primary key, value text not null) without rowid",
)


# Native tables that schema 1 lacks, or has without a column (of live turns, which nothing wrote yet): a backup may lack
# them, too.
LATER: tuple[str, ...] = (
    "memories", "memory_sources", "pins", "node_telemetry", "node_wordings", "extractions", "session_transcripts",
    "recall_events", "dream_sweeps", "memory_promotions", "garden_chain",
)  # fmt: skip
LATER_COLUMNS = frozenset({"concept_tags"})


def kept_rows(table: str) -> str:
    """Those rows of a table that are worth keeping, to be selected from."""
    return f"(select * from {table} where {HANDED_OVER})" if table == "session_transcripts" else table


def derived_tables() -> tuple[str, ...]:
    """Names of the tables that a rebuild drops."""
    return tuple(name for name, kind in TABLES.items() if kind == "derived")


def native_tables() -> tuple[str, ...]:
    """Names of the tables that a rebuild leaves alone."""
    return tuple(name for name, kind in TABLES.items() if kind == "native")
