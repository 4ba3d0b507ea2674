"""Finds sessions by key, id, token or unambiguous prefix, and the files of a session. Imports nothing heavy."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.ids import token_of
from signet_sync.storage.database.batches import WHOLE, rows_with_values
from signet_sync.storage.database.connection import Database
from signet_sync.text.stored_names import session_name


class SessionRef(NamedTuple):
    """One session of an agent."""

    agent_id: str
    session_token: str
    session_id: str
    session_key: str | None


class SessionFile(NamedTuple):
    """One artifact of a session as the index has it."""

    source_path: str
    source_kind: str
    project: str | None
    harness: str | None
    captured_at: str
    ended_at: str | None
    captured_us: int
    manifest_path: str | None
    sentence: str | None
    session_key: str | None


def every(database: Database) -> list[SessionRef]:
    """Returns every session of the index, the newest last."""
    found = database.execute(
        "select agent_id, session_token, session_id, max(session_key) from memory_artifacts group by 1, 2, 3"
        " order by max(captured_us), 2, 3"
    )
    return [SessionRef(*row) for row in found]


def find(database: Database, agent_id: str, name: str, *, sealed: bool = False) -> list[SessionRef]:
    """Returns sessions of an agent that a name means: exact id, key or token, else a prefix of one of them.

    `sealed` looks among seals too, so that a session whose files have vanished is found.
    """
    name = session_name(name)
    columns = "agent_id, session_token, session_id, max(session_key)"
    group = "group by agent_id, session_token, session_id order by 2, 3"
    exact = list(
        database.execute(
            f"select {columns} from memory_artifacts where agent_id = ?1"
            " and (session_id = ?2 or session_key = ?2 or trim(session_key) = ?2 or session_token = ?2"
            f" or source_path = ?2) {group}",
            (agent_id, name),
        )
    )
    if not exact and sealed:
        exact = list(
            database.execute(
                "select agent_id, session_token, session_id, null from seals where agent_id = ?1"
                " and (session_id = ?2 or session_token = ?2 or path = ?2) group by 1, 2, 3 order by 2, 3",
                (agent_id, name),
            )
        )
    if exact or len(name) < 3:
        return [SessionRef(*row) for row in exact]
    prefix = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    return [
        SessionRef(*row)
        for row in database.execute(
            f"select {columns} from memory_artifacts where agent_id = ?1 and (session_id like ?2 escape '\\'"
            f" or session_key like ?2 escape '\\' or session_token like ?2 escape '\\') {group}",
            (agent_id, prefix),
        )
    ]


def find_exact(database: Database, agent_id: str, token: str, session_id: str) -> SessionRef | None:
    """Finds the session of this token and id among artifacts or, if all of these vanished, among seals."""
    for columns, table in (("max(session_key)", "memory_artifacts"), ("null", "seals")):
        for row in database.execute(
            f"select agent_id, session_token, session_id, {columns} from {table}"
            " where agent_id = ? and session_token = ? and session_id = ? group by 1, 2, 3",
            (agent_id, token, session_id),
        ):
            return SessionRef(*row)
    return None


def make_unknown_error(agent_id: str, name: str) -> UsageError:
    """Returns what is raised where a name means no session."""
    return UsageError(
        f"no session of agent {agent_id} is called {name!r}",
        hint="signet-sync recall finds sessions by their words; --agent chooses another agent",
        code="unknown-session",
    )


def ambiguous(name: str, found: Sequence[SessionRef], hint: str) -> UsageError:
    """Returns what is raised where a name means several sessions."""
    shown = ", ".join(f"{ref.session_id} ({ref.session_token})" for ref in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return UsageError(f"{name!r} means {len(found)} sessions: {shown}{more}", hint=hint, code="ambiguous-session")


def _refuse_removed(database: Database, agent_id: str, name: str) -> UsageError | None:
    """Returns what is raised where a name means a session that was removed; None if it means none."""
    name = session_name(name)
    for token, at, ids, paths in database.execute(
        "select session_token, removed_at, session_ids, removed_paths from memory_artifact_tombstones"
        " where agent_id = ?",
        (agent_id,),
    ):
        if token in (name, token_of(agent_id, name)) or name in (*json.loads(ids or "[]"), *json.loads(paths)):
            import shlex  # only for errors

            return UsageError(
                f"session {name} was removed {at}; its text is deleted",
                hint=f"to let it return from a harness: signet-sync remove --undo {shlex.quote(name)}; what was deleted"
                " stays deleted",
                code="unknown-session",
            )
    return None


def one(database: Database, agent_id: str, name: str) -> SessionRef:
    """Returns the one session that a name means. Raises `UsageError` with the candidates if none or several."""
    found = find(database, agent_id, name)
    if not found:
        raise _refuse_removed(database, agent_id, name) or make_unknown_error(agent_id, name)
    if len(found) > 1:
        hidden = find_doubled(database, [ref[:3] for ref in found])
        found = [ref for ref in found if ref[:3] not in hidden]
    if len(found) > 1:
        raise ambiguous(name, found, "use a session id in full")
    return found[0]


# What two programs capture of one session under two tokens, by agent and id: Signet names a session by its id, we by
# its key. The one with more kinds of content is shown, of equal ones that which has the latest.
_CAPTURED = """
    select agent_id, session_id, session_token, max(harness), count(distinct source_kind), max(captured_us)
    from (select distinct value->>0 as agent_id, value->>2 as session_id from json_each(?))
    cross join memory_artifacts indexed by memory_artifacts_id using (agent_id, session_id)
    where source_kind <> 'manifest' group by 1, 2, 3"""


_ENDED = f"""
    select distinct a.agent_id, a.session_token, a.session_id from json_each(?) cross join memory_artifacts a
    on a.agent_id = value->>0 and a.session_token = value->>1 and a.session_id = value->>2 where {WHOLE} is not null"""


def find_doubled(database: Database, sessions: Iterable[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Returns those sessions that are shown under another token or id, as one of the same harness."""
    wanted = list(sessions)
    captured: dict[tuple[str, str], dict[str, tuple[str | None, int, int]]] = {}
    for agent_id, session_id, token, *rest in database.execute(_CAPTURED, (json.dumps(wanted),)):
        captured.setdefault((agent_id, session_id), {})[token] = tuple(rest)
    endings = [session for session in wanted if session[2].startswith("session-end:")]
    found = {(*row,) for row in database.execute(_ENDED, (json.dumps(endings),))} if endings else set()
    for agent_id, token, session_id in wanted:
        tokens = captured.get((agent_id, session_id), {})
        if token not in tokens:
            continue
        harness, *own = tokens[token]
        others = ((*rest, other) for other, (theirs, *rest) in tokens.items() if other != token and theirs == harness)
        if harness is not None and any(one > (*own, token) for one in others):
            found.add((agent_id, token, session_id))
    return found


def find_under_other_names(database: Database, sessions: Iterable[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Returns the others that are shown or not depending on some: of the same id, and endings with it as key."""
    wanted = {*sessions}
    found = database.execute(
        """with named(agent_id, name) as materialized (select distinct value->>0, value->>2 from json_each(?))
        select m.agent_id, session_token, session_id from named n cross join memory_artifacts m
            indexed by memory_artifacts_id on m.agent_id = n.agent_id and session_id = name
        union select m.agent_id, session_token, session_id from named n cross join memory_artifacts m
            indexed by memory_artifacts_ended
            on m.agent_id = n.agent_id and session_key = name and session_id glob 'session-end:*'""",
        (json.dumps([*wanted]),),
    )
    return {(*row,) for row in found} - wanted


def files(database: Database, ref: SessionRef) -> list[SessionFile]:
    """Returns the artifacts of a session, oldest first."""
    return [
        SessionFile(*row)
        for row in database.execute(
            "select source_path, source_kind, project, harness, captured_at, ended_at, captured_us, manifest_path,"
            " ledger_sentence, session_key from memory_artifacts"
            " where agent_id = ? and session_token = ? and session_id = ? order by captured_us, source_path",
            ref[:3],
        )
    ]


def find_of_paths(database: Database, agent_id: str, paths: list[str]) -> dict[str, SessionRef]:
    """Returns whose artifacts some paths are, by path; those of other agents and of nobody are left out."""
    columns = "source_path, agent_id, session_token, session_id, session_key"
    rows = rows_with_values(database, columns, "memory_artifacts", "source_path", paths)
    return {path: SessionRef(owner, *row) for path, owner, *row in rows if owner == agent_id}


def is_half_enforced(database: Database) -> bool:
    """Returns whether rows exist that a tombstone covers: a removal is running, or was interrupted."""
    found: int = database.value(
        "select exists(select 1 from memory_artifact_tombstones t cross join memory_artifacts a"
        " on a.agent_id = t.agent_id and a.session_token = t.session_token"
        " where t.session_ids is null or a.session_id in (select value from json_each(t.session_ids)))"
    )
    return bool(found)


def projects(database: Database, paths: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    """Returns by path of an artifact the id of its session and the project that this recorded."""
    columns = "source_path, session_id, project"
    found = rows_with_values(database, columns, "memory_artifacts", "source_path", paths)
    return {path: (session_id, project) for path, session_id, project in found}


def verdicts(database: Database, paths: list[str]) -> dict[str, str]:
    """Returns the verdict's code (`indexed` where all is well) of some paths."""
    rows = rows_with_values(database, "path, verdict, code", "files", "path", paths)
    return {path: code or verdict for path, verdict, code in rows}
