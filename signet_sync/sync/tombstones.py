"""Keeps track of removals: which sessions are removed, and what keeps their files and rows from coming back.

A tombstone file is written once, durably, before anything is deleted. An undo must reach other machines like a removal
does, and a missing file proves nothing: it might be lost. So a lifted tombstone is kept in a folder of its own; this
removal, and earlier states of it, then no longer count on any machine. Where two machines removed at once, conflict
copies of tombstones are merged: no removal is lost.

`decide` is the rule: what files, copies and mirror say together; `read_in_force` asks it and writes what follows. Who
wants to know of one session asks `is_removed`, of what is no file yet `names_removed`, of all `all_tombstones`; `put`
and `lift` write what a person decides, `remove_covered` deletes rows. The mirror is in `sync.store.tombstones`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.artifact import FieldProblem, Tombstone
from signet_sync.formats.filename import find_carried_token, is_copy_mark, tombstone_file_name, tombstone_name
from signet_sync.formats.frontmatter import HEAD_LIMIT, FrontmatterProblem, parse, write
from signet_sync.formats.ids import token_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT, TOMBSTONES
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT, Found, Snapshot, Trouble
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files, writing
from signet_sync.storage.database.batches import drop_artifacts, drop_session
from signet_sync.storage.database.connection import Database
from signet_sync.sync import planner
from signet_sync.sync.index_records import Judgement, Known
from signet_sync.sync.planner import JudgeContext, Plan, Tombstones, judge_tombstone
from signet_sync.sync.reading import unlink
from signet_sync.sync.store import artifacts
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Outcome, Workspace

LIFTED = f"{TOMBSTONES}/lifted"


def path_of(agent_id: str, token: str, folder: str = TOMBSTONES) -> str:
    """Returns the path of the tombstone of an agent's token, in force or in another folder."""
    return f"{folder}/{tombstone_file_name(agent_id, token)}"


def text_of(tombstone: Tombstone) -> bytes:
    """Formats a tombstone: fields only, `session_ids` only if it is limited to some.

    Raises `UsageError` if these are more than the head of a file holds.
    """
    fields: dict[str, Any] = tombstone.fields()
    if not tombstone.session_ids:
        del fields["session_ids"]
    data = write(fields, "")
    if len(data) <= HEAD_LIMIT:
        return data
    # A tombstone that cannot be read would cover every session of its token; the removal works without the names, too.
    data = write({**fields, "removed_paths": []}, "")
    if len(data) > HEAD_LIMIT:
        raise UsageError(
            "the ids of the sessions that were removed of this key are too long for one tombstone",
            path=path_of(*tombstone.key),
            hint=f"remove all sessions of the key: signet-sync remove {tombstone.session_token}",
        )
    return data


def put(root: str, tombstone: Tombstone) -> str:
    """Writes a tombstone durably, unless an equal one exists; returns its path.

    An earlier lifted tombstone of the same token no longer counts, so that it cannot be taken for this removal.
    """
    if tombstone_file_name(*tombstone.key) in files.list_names(root, LIFTED, ""):
        writing.unlink(root, path_of(*tombstone.key, LIFTED))
    path = _put(root, path_of(*tombstone.key), text_of(tombstone))
    writing.remove_empty_folders(root, LIFTED)
    return path


def lift(root: str, tombstone: Tombstone, rest: Tombstone | None) -> None:
    """Lifts a tombstone: writes it durably among the lifted ones, then deletes it from the tombstones in force.

    `rest` is the part that stays in force: then `tombstone` is the part that does not.
    """
    before = read_last_lifted(root, *tombstone.key)
    if (
        before is not None
        and before.removed_at == tombstone.removed_at
        and before.session_ids
        and tombstone.session_ids
    ):
        # The other part of this removal: another machine may know it as a whole.
        tombstone = tombstone.replace(session_ids=tuple(sorted({*before.session_ids, *tombstone.session_ids})))
    _put(root, path_of(*tombstone.key, LIFTED), text_of(tombstone))
    if rest is not None:
        _put(root, path_of(*rest.key), text_of(rest))
    else:
        writing.unlink(root, path_of(*tombstone.key))


def list_lifted(root: str, tombstones: Collection[Tombstone]) -> list[Tombstone]:
    """Returns those of the tombstones that were lifted, here or on another machine."""
    lifted = read_lifted(root) if tombstones else {}
    found = ((one, lifted.get(one.key)) for one in tombstones)
    return [one for one, aside in found if aside is not None and aside.includes(one)]


def read_lifted(root: str) -> dict[tuple[str, str], Tombstone]:
    """Returns what was last lifted of each agent's token."""
    keys = filter(None, map(tombstone_name, files.list_names(root, LIFTED, "")))
    found = {key: read_last_lifted(root, *key) for key in sorted(keys)}
    return {key: tombstone for key, tombstone in found.items() if tombstone is not None}


def read_last_lifted(root: str, agent_id: str, token: str) -> Tombstone | None:
    """Returns what was last lifted of an agent's token."""
    found = files.read(root, path_of(agent_id, token, LIFTED), TOMBSTONE_LIMIT)
    try:
        aside = Tombstone.read(parse(found.raw).fields) if isinstance(found, Found) else None
    except (FrontmatterProblem, FieldProblem):
        return None
    same = aside is not None and aside.key == (agent_id, token)
    return aside if same else None


def _put(root: str, path: str, data: bytes) -> str:
    found = files.read(root, path, TOMBSTONE_LIMIT)
    present = found.raw if isinstance(found, Found) else None
    if present != data:
        writing.replace(root, path, data, present)
    return path


def is_removed(workspace: Workspace, agent_id: str, token: str, session_id: str) -> bool:
    """Returns whether a session is removed by key or id, by a tombstone in the index or a file not yet indexed."""
    known = {one.key: one for one in tombstones_store.list_mirrored(workspace.database)}
    unreadable = []
    for key in {(agent_id, token), (agent_id, token_of(agent_id, session_id))} - known.keys():
        if files.status_of(workspace.root, path_of(*key)) is not None:
            found = files.read(workspace.root, path_of(*key), TOMBSTONE_LIMIT)
            tombstone = judge_tombstone(path_of(*key), found)[1]
            if tombstone is None:
                unreadable.append(key)
            else:
                known[key] = tombstone
    return Tombstones(known.values(), by_name=unreadable).cover_session(token, agent_id, session_id)


def names_removed(
    tombstones: Iterable[Tombstone], agent_id: str, names: Iterable[str | None], token: str | None = None
) -> bool:
    """Returns whether live turns or an input, known by these names, are of a removed session.

    An id counts under any token of the agent: what is no file yet may name another key than the session's files, or
    none. A tombstone without ids covers all of its token.
    """
    known = {name for name in names if name}
    tokens = {token, *(token_of(agent_id, name) for name in known)}
    return any(
        one.agent_id == agent_id
        and (not known.isdisjoint(one.session_ids) or (not one.session_ids and one.session_token in tokens))
        for one in tombstones
    )


def refuse_removed(workspace: Workspace, agent_id: str, session_key: str, session_id: str) -> None:
    """Raises `UsageError` (`removed-session`) for live turns of a removed session, by its id or key."""
    token, tombstones = token_of(agent_id, session_key), tombstones_store.list_mirrored(workspace.database)
    for name in filter(None, (session_id, session_key)):
        if names_removed(tombstones, agent_id, [name], token) or is_removed(workspace, agent_id, token, name):
            raise refuse_removed_session(name)


def refuse_removed_session(session_id: str) -> UsageError:
    """Returns the error for an ending whose session was removed."""
    return UsageError(
        f"session {session_id[:80]!r} was removed; nothing of it is written again",
        hint="signet-sync remove SESSION --undo lifts the removal",
        code="removed-session",
    )


# ── what counts ──

_COPY = late(rf"{TOMBSTONES}/({AGENT}--[a-z2-7]{{16}})([\W_].*)\.md", re.ASCII)

Key = tuple[str, str]  # agent and token


class Decision(NamedTuple):
    """Which tombstones count, by key, and what has to be written for that.

    `unreadable` are keys by the names of files that cannot be read, of removals that nothing else knows. The mirror
    lacks `news`; with `narrower` one of these no longer covers what it covered. `joined` take up copies, `lifted` do
    not count any more.
    """

    in_force: dict[Key, Tombstone]
    unreadable: list[Key]
    news: list[Tombstone]
    narrower: bool
    joined: dict[Key, Tombstone]
    lifted: list[Tombstone]


def decide(
    mirrored: Mapping[Key, Tombstone],
    judged: Mapping[Key, tuple[Judgement, Tombstone | None]],
    copies: Iterable[Tombstone],
    lifted: Mapping[Key, Tombstone],
    now_iso: str,
    *,
    names_stand: bool,
) -> Decision:
    """Decides from mirror, files (by the keys in their names), copies and lifted tombstones which of them count.

    A copy of what was lifted does not. With `names_stand` a file that cannot be read counts as one of its name: rows,
    seals and the rest then follow the mirror, and it covers what the names say until the files can be read.
    """
    fresh = {tombstone.key: tombstone for _, tombstone in judged.values() if tombstone is not None}
    joined: dict[Key, Tombstone] = {}
    for copy in copies:
        if not _is_lifted(copy, lifted):
            earlier = joined.get(copy.key) or fresh.get(copy.key) or mirrored.get(copy.key)
            joined[copy.key] = copy if earlier is None else earlier.join(copy)
    broken = {key for key, (judgement, _) in judged.items() if judgement.verdict == "invalid"} - joined.keys()
    unreadable = sorted(broken - mirrored.keys())
    fresh |= joined
    if names_stand:
        for key in unreadable:
            # Later than what was lifted, even if the clock says not.
            least = iso(lifted[key].removed_at.micros + 1000) if key in lifted else ""
            fresh[key] = tombstones_store.name_tombstone(*key, max(now_iso, least))
        unreadable = []
    # Whether a file that cannot be read is the removal that was lifted or another one, nobody knows: its name decides.
    standing = {**mirrored, **fresh}
    gone = {key for key, one in standing.items() if key not in broken and _is_lifted(one, lifted)}
    news = [one for key, one in fresh.items() if key not in gone and mirrored.get(key) != one]
    return Decision(
        {key: one for key, one in standing.items() if key not in gone},
        unreadable,
        news,
        any(_is_narrower(one, mirrored.get(one.key)) for one in news),
        joined,
        [standing[key] for key in sorted(gone)],
    )


def _is_lifted(tombstone: Tombstone, lifted: Mapping[Key, Tombstone]) -> bool:
    aside = lifted.get(tombstone.key)
    return aside is not None and aside.includes(tombstone)


def _is_narrower(tombstone: Tombstone, before: Tombstone | None) -> bool:
    """Returns whether a tombstone no longer covers a session that it covered before."""
    if before is None or not tombstone.session_ids:
        return False
    return not before.session_ids or not {*before.session_ids} <= {*tombstone.session_ids}


class InForce(NamedTuple):
    """The tombstones in force, the verdicts of their files, and `aliases`: paths to read again for a new tombstone."""

    tombstones: Tombstones
    judged: list[Judgement]
    aliases: frozenset[str]


def read_in_force(workspace: Workspace, snapshot: Snapshot, known: dict[str, Known], now_iso: str) -> InForce:
    """Returns the tombstones in force from files and mirror; if one of the two is lost, writes it again."""
    database = workspace.database
    mirrored = {one.key: one for one in tombstones_store.list_mirrored(database)}
    strange: list[Judgement] = []
    judged: dict[Key, tuple[Judgement, Tombstone | None]] = {}
    copies: dict[str, tuple[Tombstone, bytes]] = {}
    for path in (path for path in (*snapshot.odd, *snapshot.files) if path.startswith(f"{TOMBSTONES}/")):
        key, before = tombstone_name(path.rpartition("/")[2]), known.get(path)
        if path in snapshot.odd:
            if key is not None:
                trouble = Trouble("not-a-file", f"a {snapshot.odd[path]} stands under its name")
                judged[key] = planner.judge_tombstone(path, trouble)
            continue
        if (copy := _read_copy(workspace, path)) is not None:
            copies[path] = copy
        same = before is not None and before.signature == snapshot.files[path] and before.verdict == "tombstone"
        if same and key in mirrored:
            continue
        judgement = planner.judge_tombstone(path, files.read(workspace.root, path, TOMBSTONE_LIMIT))
        if key is not None:
            judged[key] = judgement
        else:
            strange.append(judgement[0])
    lifted = read_lifted(workspace.root)
    writes = not workspace.touch_nothing
    decision = decide(mirrored, judged, [one for one, _ in copies.values()], lifted, now_iso, names_stand=writes)
    moved = {*decision.joined, *(one.key for one in decision.lifted)}
    verdicts = [judgement for key, (judgement, _) in judged.items() if key not in moved]
    if writes:
        gone = _write(workspace, decision, copies)
        strange = [judgement for judgement in strange if judgement.path not in gone]
        verdicts += _restore_files(workspace, decision, snapshot)
    # The process that removes a session writes the mirror itself: until its scrub a tombstone counts as new.
    pending = tombstones_store.list_unscrubbed(database) if decision.in_force else frozenset()
    news = [*decision.news, *(one for key, one in decision.in_force.items() if key in pending)]
    again = find_aliases(workspace, news)
    if news:
        # No row tells the session of an invalid file.
        again.update(artifacts.invalid_paths(database))
    standing = Tombstones(list(decision.in_force.values()), by_name=decision.unreadable)
    return InForce(standing, verdicts + strange, frozenset(again))


def _read_copy(workspace: Workspace, path: str) -> tuple[Tombstone, bytes] | None:
    """Returns the tombstone in a conflict copy, and its bytes."""
    match = _COPY.fullmatch(path)
    if match is None or not is_copy_mark(match[2]) or tombstone_name(f"{match[1]}.md") is None:
        return None
    found = files.read(workspace.root, path, TOMBSTONE_LIMIT)
    tombstone = planner.judge_tombstone(f"{TOMBSTONES}/{match[1]}.md", found)[1]
    return (tombstone, found.raw) if tombstone is not None and isinstance(found, Found) else None


def _write(workspace: Workspace, decision: Decision, copies: Mapping[str, tuple[Tombstone, bytes]]) -> set[str]:
    """Makes files and mirror say what was decided; returns the copies that are gone. The next pass does what fails.

    An undo made on another machine, or interrupted here, is completed; if another removal has its path by now, that
    file is kept.
    """
    root, database = workspace.root, workspace.database
    gone = set()
    for path, (copy, raw) in sorted(copies.items()):
        with suppress(OSError, WorkspaceError):
            if (joined := decision.joined.get(copy.key)) is not None:
                put(root, joined)
            if writing.retract(root, path, raw):
                gone.add(path)
    for tombstone in decision.lifted:
        path = path_of(*tombstone.key)
        found = files.read(root, path, TOMBSTONE_LIMIT)
        if isinstance(found, Found) and planner.judge_tombstone(path, found)[1] == tombstone:
            writing.retract(root, path, found.raw)
        with database.transaction(durable=True):
            tombstones_store.lift(database, *tombstone.key)
            artifacts.forget_files(database, [path])
            for eraser in workspace.pipeline.erasers:
                eraser.lift(database)
    if decision.news:
        with database.transaction(durable=True):
            tombstones_store.mirror(database, decision.news)
            if decision.narrower:  # one of its sessions was taken out, on another machine or by one that died
                for eraser in workspace.pipeline.erasers:
                    eraser.lift(database)
    return gone


def _restore_files(workspace: Workspace, decision: Decision, snapshot: Snapshot) -> list[Judgement]:
    """Writes tombstone files that are lost again, and returns their verdicts."""
    if snapshot.ground != "present":
        return []
    written = []
    present = snapshot.files.keys() | snapshot.odd.keys()
    for key, tombstone in decision.in_force.items():
        path = path_of(*key)
        if path not in present and (snapshot.everything or path in snapshot.asked):
            put(workspace.root, tombstone)
            status = files.status_of(workspace.root, path)
            written.append(Judgement(path, "tombstone", signature=files.signature_of(status) if status else None))
    return written


def all_tombstones(workspace: Workspace) -> dict[Key, Tombstone]:
    """Returns every tombstone of mirror and files: after a lost database the files may not be mirrored yet."""
    found = {tombstone.key: tombstone for tombstone in tombstones_store.list_mirrored(workspace.database)}
    for name in files.list_names(workspace.root, TOMBSTONES, ""):
        path = f"{TOMBSTONES}/{name}"
        _, tombstone = planner.judge_tombstone(path, files.read(workspace.root, path, TOMBSTONE_LIMIT))
        if tombstone is not None:
            found[tombstone.key] = tombstone
    return found


def find_aliases(workspace: Workspace, news: Sequence[Tombstone]) -> set[str]:
    """Returns files of newly removed sessions that are named with the token of the session's other identity.

    The identities of a session are its id and its key.
    """
    found: set[str] = set()
    for agent_id in {tombstone.agent_id for tombstone in news}:
        tokens = {tombstone.session_token for tombstone in news if tombstone.agent_id == agent_id}
        for path, token, session_id, key in artifacts.identities(workspace.database, agent_id):
            others = {token_of(agent_id, identity) for identity in (session_id, key) if identity} - {token}
            if others & tokens:
                found.add(path)
    return found


def count_covered(workspace: Workspace, tombstones: Tombstones, known: dict[str, Known], snapshot: Snapshot) -> int:
    """Returns how many indexed files are missing because of a tombstone."""
    if not tombstones:
        return 0
    tokens = tombstones.tokens
    gone = [
        p
        for p, k in known.items()
        if k.verdict == "indexed" and p not in snapshot.files and find_carried_token(p) in tokens
    ]
    rows = artifacts.rows_by_path(workspace.database, gone)
    return sum(1 for row in rows.values() if tombstones.cover(row.session_token, row.agent_id, row.session_id))


def enforce(workspace: Workspace, plan: Plan, judging: JudgeContext, outcome: Outcome) -> None:
    """Deletes files of removed sessions that came back, before any of their content is indexed."""
    tokens = judging.tombstones.tokens
    kept: list[str] = []
    for path in plan.read:
        if find_carried_token(path) not in tokens:
            kept.append(path)
            continue
        judgement = planner.judge(path, files.read(workspace.root, path, workspace.settings.max_file_bytes), judging)
        if not judgement.unlink:
            kept.append(path)
        elif unlink(workspace, judgement, outcome):
            plan.gone.append(path)
        else:
            plan.judged.append(judgement._replace(message="its session was removed, but the file cannot be deleted"))
    plan.read = kept


def remove_covered(
    database: Database, tombstones: Sequence[Tombstone], erasers: Iterable[Eraser]
) -> tuple[list[tuple[str, str, str]], int]:
    """Deletes all rows the tombstones cover, those of every feature too, as tables and erasers declare them.

    Returns the sessions whose session log rows may go, and the number of rows deleted. Scope is agent and token (and
    ids).
    """
    touched: list[tuple[str, str, str]] = []
    removed = 0
    for tombstone in tombstones:
        sessions = tombstones_store.sessions_of(database, tombstone.scope)
        removed += sum(eraser.forget(database, tombstone, sessions) for eraser in erasers)
        touched += tombstones_store.list_sealed(database, tombstone.scope)
        gone = tombstones_store.paths_of(database, tombstone.scope)
        dropped = artifacts.delete_rows(database, gone)
        drop_artifacts(database, tombstone.agent_id, gone)
        artifacts.forget_files(database, gone)
        drop_session(database, tombstone.scope, "native")
        touched += dropped
        removed += len(dropped)
    return touched, removed
