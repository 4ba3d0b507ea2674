"""Declares the tables that a rebuild drops and refills. Instants ending in `_us` are microseconds since 1970 UTC."""

from signet_sync.formats.paths import RUNNING
from signet_sync.storage.database.table import NUMBER, SESSION, JoinedRows, Table, declare_derived

MOST_PIECES = 64


def _options(table: str, **options: int | str) -> tuple[str, ...]:
    """Returns the statements that set the options of a table of full text.

    Its segments are merged when the database is idle (`batches`); a commit merges only if there are too many.
    """
    options |= {"automerge": 0, "usermerge": 8, "crisismerge": MOST_PIECES}
    return tuple(
        f"insert into {table}({table}, rank) values('{name.replace('_', '-')}', {value!r})"
        for name, value in options.items()
    )


_WORDS = """words, content='', detail=none, columnsize=0, tokenize="porter unicode61 remove_diacritics 2\""""
# Columns and joins that give a row path and names for the numbers that it holds; a deleted file has no rows.
_OF = "n.session_token, n.session_id"
_JOINED = "join sessions n on n.session = {0}.session"


def path_of(artifact: str) -> str:
    """Returns an expression for the path of an artifact by its number; of a running session, that of its source."""
    return (
        f"(select source_path from memory_artifacts where id = {artifact}"
        f" union all select '{RUNNING}' || session_id from sessions where session = -{artifact})"
    )


DERIVED: tuple[Table, ...] = (
    declare_derived(
        "one row for each artifact; `content` is null where a seal gives it, `built_sentence` null where its own does",
        """create table memory_artifacts(
        id integer primary key,
        agent_id text not null, source_path text not null unique, source_sha256 text not null,
        source_kind text not null, session_id text not null, session_key text, session_token text not null,
        project text, harness text,
        captured_at text not null, started_at text, ended_at text, manifest_path text, source_node_id text,
        memory_sentence text, memory_sentence_quality text, built_sentence text,
        ledger_sentence text generated always as (coalesce(built_sentence, memory_sentence)) virtual, content text,
        captured_us integer not null, membership_us integer not null, noise integer not null,
        refs text, revision integer, repository_root text, repository_origin text, repository_path text,
        repository_branch text)""",
        "create index memory_artifacts_session on memory_artifacts(agent_id, session_token, session_id)",
        "create index memory_artifacts_id on memory_artifacts(agent_id, session_id)",
        "create index memory_artifacts_ended on memory_artifacts(agent_id, session_key)"
        " where session_id glob 'session-end:*'",
        "create index memory_artifacts_time on memory_artifacts(agent_id, membership_us)",
        "create index memory_artifacts_compactions on memory_artifacts(agent_id, membership_us)"
        " where source_kind = 'compaction' and noise = 0",
        "create index memory_artifacts_repository on memory_artifacts(agent_id, repository_root, repository_origin)"
        " where repository_root is not null",
        "create index memory_artifacts_refs on memory_artifacts(agent_id) where refs is not null and refs <> ''",
        session=SESSION,
        key=("source_path",),
        local=("id",),
    ),
    declare_derived(
        "whose the numbers of `texts` are, and how many of them there are",
        """create table text_owners(
        number integer primary key, agent_id text not null unique, texts integer not null default 0)""",
    ),
    declare_derived(
        "what `recall` finds; passages have the numbers `first` to `last`: agent, kind and time (`sync.store.texts`)",
        """create table texts(
        first integer primary key, last integer not null, agent_id text not null, tier text not null,
        name text, artifact integer, text text, at_us integer not null, private integer not null default 0,
        about text not null default '')""",
        "create unique index texts_name on texts(agent_id, name) where name is not null",
        "create unique index texts_artifact on texts(artifact) where artifact is not null",
        key=("agent_id", "name"),
        local=("first", "last", "artifact"),
        only="tier not in ('memory', 'session')",
    ),
    declare_derived(
        "where in a body each passage is: characters, turn, voice; with a `size` it begins a row of full text",
        """create table passages(
        id integer primary key, start integer not null, end integer not null, turn integer not null,
        voice text not null, size integer not null)""",
    ),
    declare_derived(
        "full text of what is said, contentless: `contentless_delete` would leak removed words (`text.index_words`)",
        f"create virtual table said using fts5({_WORDS})",
        *_options("said", secure_delete=1),
    ),
    declare_derived(
        "full text of what tools printed, each word of an artifact once",
        f"create virtual table printed using fts5({_WORDS})",
        *_options("printed", secure_delete=1),
    ),
    declare_derived(
        "signature and verdict of every path",
        """create table files(
        path text primary key, size integer, mtime_ns integer, ctime_ns integer, inode integer,
        verdict text not null, code text not null, message text not null, notes text,
        agent_id text, found_sha256 text) without rowid""",
        "create index files_verdict on files(verdict) where verdict <> 'indexed'",
        key=("path",),
        local=("size", "mtime_ns", "ctime_ns", "inode", "agent_id", "found_sha256"),
    ),
    declare_derived(
        "link fields of manifests, and which of them lead nowhere",
        """create table links(
        source integer not null references memory_artifacts(id) on delete cascade, field text not null,
        target_path text not null, broken integer not null default 0, primary key(source, field)) without rowid""",
        "create index links_target on links(target_path)",
        "create index links_broken on links(broken) where broken = 1",
        joined=JoinedRows(
            "a.source_path, l.field, l.target_path, l.broken", "links l join memory_artifacts a on a.id = l.source"
        ),
        key=("source_path", "field"),
    ),
    declare_derived(
        "one finished line for each session; empty where no person spoke: pages have one line for these on a day",
        """create table ledger_rows(
        agent_id text not null, session_token text not null, session_id text not null, membership_us integer not null,
        day text not null, line text not null, tokens integer not null, project text, sentence text not null,
        path text not null, kind text not null,
        primary key(agent_id, session_token, session_id)) without rowid""",
        "create index ledger_time on ledger_rows(agent_id, membership_us, session_token, project)",
        "create index ledger_headless on ledger_rows(agent_id, membership_us) where line = ''",
        "create index ledger_day on ledger_rows(agent_id, day)",
        session=SESSION,
        key=SESSION,
    ),
    declare_derived(
        "how many sessions a day has",
        """create table ledger_days(
        agent_id text not null, day text not null, sessions integer not null,
        primary key(agent_id, day)) without rowid""",
    ),
    declare_derived(
        "generated files as they were last written, and what they were made of",
        """create table pages(
        path text primary key, agent_id text not null, size integer, mtime_ns integer, ctime_ns integer, inode integer,
        inputs_sha256 text not null, next_us integer) without rowid""",
    ),
    declare_derived(
        "nodes of the temporal graph (`graph.nodes.GraphNode`), of a transcript one",
        """create table session_summaries(
        agent_id text not null, id text not null, kind text not null, source_type text not null, depth integer not null,
        artifact integer, thread_id text, session integer, earliest_us integer not null,
        latest_us integer not null, end integer not null,
        label text not null, content text,
        unique(agent_id, id))""",
        "create index session_summaries_session on session_summaries(session) where session is not null",
        "create index session_summaries_thread on session_summaries(agent_id, thread_id, depth, latest_us)",
        "create index session_summaries_time on session_summaries(agent_id, depth > 0, latest_us)"
        " where source_type <> 'chunk' and thread_id is not null",
        "create index session_summaries_source on session_summaries(artifact) where artifact is not null",
        session=NUMBER,
        joined=JoinedRows(
            "n.agent_id, n.id, n.kind, n.source_type, n.depth, a.source_path as source_ref, n.thread_id,"
            " s.session_token, s.session_id, n.earliest_us, n.latest_us, 0 as start, n.end, n.label,"
            " n.content",
            "session_summaries n left join memory_artifacts a on a.id = n.artifact"
            " left join sessions s on s.session = n.session",
        ),
        handle="id",
        key=("agent_id", "id"),
    ),
    declare_derived(
        "its edges",
        """create table session_summary_children(
        agent_id text not null, parent_id text not null, child_id text not null,
        primary key(agent_id, parent_id, child_id)) without rowid""",
        "create index session_summary_parents on session_summary_children(agent_id, child_id)",
        key=("agent_id", "parent_id", "child_id"),
    ),
    declare_derived(
        "which session goes on which thread (`graph.threads`), and the branch and worktree that it worked in last",
        """create table thread_sessions(
        agent_id text not null, session_token text not null, session_id text not null, thread_id text not null,
        earliest_us integer not null, latest_us integer not null, week text not null, node_id text not null,
        source_ref text not null, sentence text not null, status text, harness text, branch text, tree text,
        unique(agent_id, session_token, session_id))""",
        "create index thread_sessions_time on thread_sessions(agent_id, thread_id, latest_us)",
        "create index thread_sessions_week on thread_sessions(agent_id, thread_id, week)",
        session=SESSION,
        handle="thread_id",
        key=SESSION,
    ),
    declare_derived(
        "the newest sessions of each thread: deeds, commands that worked, and as JSON quotes (`digest.quotes`)",
        """create table session_notes(
        session integer primary key, agent_id text not null, thread_id text not null,
        deeds text not null, worked text not null, quotes text not null)""",
        "create index session_notes_thread on session_notes(agent_id, thread_id)",
        session=NUMBER,
        joined=JoinedRows(
            f"n.agent_id, {_OF}, q.thread_id, q.deeds, q.worked, q.quotes",
            f"session_notes q {_JOINED.format('q')}",
        ),
        key=SESSION,
    ),
    declare_derived(
        "the folders that each session worked in, with repository and project (`graph.nodes`); an empty text is none",
        """create table session_projects(
        agent_id text not null, session_token text not null, session_id text not null, folder text not null,
        root text not null, origin text not null, identity text not null,
        primary key(agent_id, session_token, session_id, folder, root, origin)) without rowid""",
        "create index session_projects_root on session_projects(agent_id, root, origin)",
        "create index session_projects_folder on session_projects(agent_id, folder) where root = ''",
        session=SESSION,
        key=(*SESSION, "folder", "root", "origin"),
    ),
    declare_derived(
        "the summary of each thread",
        """create table memory_thread_heads(
        agent_id text not null, thread_id text not null, label text not null, project text,
        session_key text, harness text, status text not null, sessions integer not null, earliest_us integer not null,
        latest_us integer not null, node_id text not null, source_ref text not null, sample text not null,
        unique(agent_id, thread_id))""",
        "create index memory_thread_heads_time on memory_thread_heads(agent_id, latest_us)",
        handle="thread_id",
        key=("agent_id", "thread_id"),
    ),
    declare_derived(
        "what sessions state, a row for each artifact (or below 0 running session) that says it; the `newest` is shown",
        """create table statements(
        statement integer primary key, agent_id text not null, id text not null, kind text not null, text text not null,
        speaker text not null, thread_id text not null, project text not null, at_us integer not null,
        artifact integer not null, line integer not null, done integer not null, session integer not null,
        newest integer not null, status text not null default 'open', replaced_by text)""",
        "create index statements_id on statements(agent_id, id, newest, at_us)",
        "create index statements_session on statements(session)",
        "create index statements_thread on statements(agent_id, thread_id, kind, at_us) where newest = 1",
        "create index statements_ended on statements(agent_id, thread_id) where newest = 1"
        " and status <> iif(done, 'done', 'open')",
        "create index statements_open on statements(agent_id, kind, at_us) where newest = 1 and status = 'open'",
        "create index statements_running on statements(agent_id, project) where artifact < 0",
        session=NUMBER,
        joined=JoinedRows(
            f"f.agent_id, f.id, f.kind, f.text, f.speaker, f.thread_id, f.project, f.at_us,"
            f" {path_of('f.artifact')} as source_path, f.line, f.done, {_OF}, f.newest, f.status, f.replaced_by",
            f"statements f {_JOINED.format('f')}",
        ),
        handle="id",
        key=("agent_id", "id", "source_path", "at_us"),
        local=("statement",),
    ),
    declare_derived(
        "what a person or agent said last of a statement (`formats.statement`): done, not true, open again",
        """create table statement_marks(
        agent_id text not null, id text not null, kind text not null, words text not null, status text not null,
        at_us integer not null, session_token text not null, session_id text not null,
        primary key(agent_id, id)) without rowid""",
        "create index statement_marks_session on statement_marks(agent_id, session_token, session_id)",
        session=SESSION,
        key=("agent_id", "id"),
    ),
    declare_derived(
        "what is pinned",
        """create table pins(
        agent_id text not null, id text not null, pinned_at text not null,
        primary key(agent_id, id)) without rowid""",
        key=("agent_id", "id"),
    ),
    declare_derived(
        "vectors of texts, for `recall` by meaning: of each the rows of full text, by one model (`embeddings.vectors`)",
        """create table vectors(
        made integer primary key, text integer not null references texts(first) on delete cascade,
        model text not null, rows blob not null, unique(text, model))""",
    ),
    declare_derived(
        "entity files as last seen, and the words by which `recall` finds a profile; without a signature: to be read",
        """create table garden_files(
        path text primary key, agent_id text not null, kind text not null, id text not null, slug text not null,
        file text not null, title text not null, status text not null, type text, line text not null,
        participants text not null, text text not null, sha256 text not null, updated_us integer not null,
        size integer, mtime_ns integer, ctime_ns integer, inode integer) without rowid""",
        "create index garden_files_id on garden_files(agent_id, file, id)",
        handle="id",
        key=("path",),
        local=("size", "mtime_ns", "ctime_ns", "inode"),
    ),
    declare_derived(
        "numbers of sessions, by which wide tables name them",
        """create table sessions(
        session integer primary key, agent_id text not null, session_token text not null, session_id text not null,
        unique(agent_id, session_token, session_id))""",
        session=SESSION,
    ),
    declare_derived(
        "by which version each deriver made its rows, and whether it still does; so of `artifacts`, `vectors`, `words`",
        """create table derivers(
        name text primary key, version text not null, rebuilding integer not null default 0) without rowid""",
    ),
    declare_derived(
        "what derivers still have to follow, and the first that has to: a session by token and id, else an id",
        """create table outbox(
        deriver text not null, kind text not null, agent_id text not null, session_token text not null,
        session_id text not null, at_us integer not null,
        primary key(kind, agent_id, session_token, session_id)) without rowid""",
        "create index outbox_time on outbox(deriver, kind, at_us desc)",
        session=SESSION,
    ),
)
