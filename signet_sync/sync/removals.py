"""Finds which sessions are removed, and keeps their files and rows from coming back.

Where two machines removed at once, conflict copies of tombstones are merged: no removal is lost.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import find_carried_token, is_copy_mark, tombstone_name
from signet_sync.formats.ids import token_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT, TOMBSTONES
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT, Found, Snapshot, Trouble
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files
from signet_sync.sync import planner
from signet_sync.sync.planner import JudgeContext, Judgement, Known, Plan, Tombstones
from signet_sync.sync.reading import unlink
from signet_sync.sync.request import Outcome
from signet_sync.sync.store import artifacts
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

_COPY = late(rf"{TOMBSTONES}/({AGENT}--[a-z2-7]{{16}})([\W_].*)\.md", re.ASCII)


class Joined(NamedTuple):
    """Tombstones that cover what they and their copies covered, and the copies that are gone now."""

    tombstones: "Mapping[tuple[str, str], Tombstone]"
    gone: frozenset[str]


def take_in(workspace: Workspace, paths: Iterable[str], known: "Mapping[tuple[str, str], Tombstone]") -> Joined:
    """Merges each copy among some paths into the known tombstone, and deletes the copy.

    A copy whose removal an undo has lifted is not merged. If nothing may be written, the copies count and stay.
    """
    tombstones: dict[tuple[str, str], Tombstone] = {}
    gone: set[str] = set()
    for path in sorted(paths):
        match = _COPY.fullmatch(path)
        if match is None or not is_copy_mark(match[2]) or tombstone_name(f"{match[1]}.md") is None:
            continue
        found = files.read(workspace.vault, path, TOMBSTONE_LIMIT)
        tombstone = planner.judge_tombstone(f"{TOMBSTONES}/{match[1]}.md", found)[1]
        if tombstone is None or not isinstance(found, Found):
            continue
        key = tombstone.agent_id, tombstone.session_token
        earlier = tombstones.get(key) or known.get(key)
        lifted = bool(tombstones_files.list_lifted(workspace.vault, [tombstone]))
        joined = tombstone if earlier is None else earlier.joined(tombstone)
        if not lifted:
            tombstones[key] = joined
        if workspace.touch_nothing:
            continue
        with suppress(OSError, WorkspaceError):  # the next pass tries again
            if not lifted:
                tombstones_files.put(workspace.root, joined)
            if files.retract(workspace.root, path, found.raw):
                gone.add(path)
    return Joined(tombstones, frozenset(gone))


class InForce(NamedTuple):
    """The tombstones in force, the verdicts of their files, and `aliases`: paths to read again for a new tombstone."""

    tombstones: Tombstones
    judged: list[Judgement]
    aliases: frozenset[str]


def read_in_force(workspace: Workspace, snapshot: Snapshot, known: dict[str, Known], now_iso: str) -> InForce:
    """Returns the tombstones in force from files and mirror; if one of the two is lost, writes it again."""
    database = workspace.database
    mirrored = {(s.agent_id, s.session_token): s for s in tombstones_store.list_mirrored(database)}
    judged: list[Judgement] = []
    fresh: dict[tuple[str, str], Tombstone] = {}
    unreadable: list[tuple[str, str]] = []
    for path, what in snapshot.odd.items():
        parts = tombstone_name(path.removeprefix(f"{TOMBSTONES}/"))
        if path.startswith(f"{TOMBSTONES}/") and parts is not None:
            judged.append(planner.judge_tombstone(path, Trouble("not-a-file", f"a {what} stands under its name"))[0])
            if parts not in mirrored:
                unreadable.append(parts)
    for path, signature in snapshot.files.items():
        if not path.startswith(f"{TOMBSTONES}/"):
            continue
        name = path.rpartition("/")[2]
        before = known.get(path)
        parts = tombstone_name(name)
        if before is not None and before.signature == signature and before.verdict == "tombstone" and parts in mirrored:
            continue
        judgement, tombstone = planner.judge_tombstone(path, files.read(workspace.vault, path, TOMBSTONE_LIMIT))
        judged.append(judgement)
        if tombstone is not None:
            fresh[tombstone.agent_id, tombstone.session_token] = tombstone
        elif judgement.verdict == "invalid" and parts is not None and parts not in mirrored:
            unreadable.append(parts)
    copied = take_in(workspace, snapshot.files.keys(), {**mirrored, **fresh})
    moved = copied.gone.union(tombstones_files.path_of(*key) for key in copied.tombstones)
    judged = [judgement for judgement in judged if judgement.path not in moved]
    fresh |= copied.tombstones
    if not workspace.touch_nothing:
        # Rows, seals and the rest follow the mirror: it covers what the names say until the files can be read.
        fresh.update({parts: _name_tombstone(workspace.root, *parts, now_iso) for parts in unreadable})
        unreadable.clear()
    # Whether a file that cannot be read is the removal that was lifted or another one, nobody knows: its name decides.
    broken = {judgement.path for judgement in judged if judgement.code == "tombstone-invalid"}
    for tombstone in tombstones_files.list_lifted(
        workspace.vault,
        [one for key, one in {**mirrored, **fresh}.items() if tombstones_files.path_of(*key) not in broken],
    ):
        path = _let_go(workspace, tombstone)
        judged = [judgement for judgement in judged if judgement.path != path]
        for known_ones in (mirrored, fresh):
            known_ones.pop((tombstone.agent_id, tombstone.session_token), None)
    news = [tombstone for key, tombstone in fresh.items() if mirrored.get(key) != tombstone]
    if news and not workspace.touch_nothing:
        with database.transaction(durable=True):
            tombstones_store.mirror(database, news)
            if any(_is_narrower(one, mirrored.get((one.agent_id, one.session_token))) for one in news):
                _lift_rows(workspace)  # one of its sessions was taken out, on another machine or by one that died
    mirrored.update(fresh)
    if not workspace.touch_nothing and snapshot.ground == "present":
        present = snapshot.files.keys() | snapshot.odd.keys()
        for (agent_id, token), tombstone in mirrored.items():
            path = tombstones_files.path_of(agent_id, token)
            if path not in present and (snapshot.everything or path in snapshot.asked):
                tombstones_files.put(workspace.root, tombstone)
                status = files.status_of(workspace.root, path)
                judged.append(Judgement(path, "tombstone", signature=files.signature_of(status) if status else None))
    # The process that removes a session writes the mirror itself: until its scrub a tombstone counts as new.
    pending = tombstones_store.pending(database) if mirrored else frozenset()
    news += [tombstone for key, tombstone in mirrored.items() if key in pending and tombstone not in news]
    again = _aliases(workspace, news)
    if news:
        # No row tells the session of an invalid file.
        again.update(artifacts.invalid_paths(database))
    return InForce(Tombstones(list(mirrored.values()), by_name=unreadable), judged, frozenset(again))


def _name_tombstone(root: str, agent_id: str, token: str, now_iso: str) -> Tombstone:
    """Returns the tombstone that a file's name alone gives, later than what was lifted, even if the clock says not."""
    before = tombstones_files.last_lifted(root, agent_id, token)
    least = iso(before.removed_at.micros + 1000) if before is not None else ""
    return tombstones_store.name_tombstone(agent_id, token, max(now_iso, least))


def all_tombstones(workspace: Workspace) -> "list[Tombstone]":
    """Returns every tombstone of mirror and files: after a lost database the files may not be mirrored yet."""
    found = {
        (tombstone.agent_id, tombstone.session_token): tombstone
        for tombstone in tombstones_store.list_mirrored(workspace.database)
    }
    for name in files.listing(workspace.root, TOMBSTONES, ""):
        path = f"{TOMBSTONES}/{name}"
        _, tombstone = planner.judge_tombstone(path, files.read(workspace.root, path, TOMBSTONE_LIMIT))
        if tombstone is not None:
            found[tombstone.agent_id, tombstone.session_token] = tombstone
    return list(found.values())


def _is_narrower(tombstone: Tombstone, before: Tombstone | None) -> bool:
    """Returns whether a tombstone no longer covers a session that it covered before."""
    if before is None or not tombstone.session_ids:
        return False
    return not before.session_ids or not {*before.session_ids} <= {*tombstone.session_ids}


def _let_go(workspace: Workspace, tombstone: Tombstone) -> str:
    """Completes an undo made on another machine, or interrupted here; returns the tombstone's path.

    If another removal has this path by now, its file is kept.
    """
    path = tombstones_files.path_of(tombstone.agent_id, tombstone.session_token)
    if not workspace.touch_nothing:
        found = files.read(workspace.root, path, TOMBSTONE_LIMIT)
        if isinstance(found, Found) and planner.judge_tombstone(path, found)[1] == tombstone:
            files.retract(workspace.root, path, found.raw)
        with workspace.database.transaction(durable=True):
            tombstones_store.lift(workspace.database, tombstone.agent_id, tombstone.session_token)
            artifacts.forget_files(workspace.database, [path])
            _lift_rows(workspace)
    return path


def _lift_rows(workspace: Workspace) -> None:
    """Lets every feature take up again what removals kept from it."""
    for eraser in workspace.pipeline.erasers:
        eraser.lift(workspace.database)


def _aliases(workspace: Workspace, news: "Sequence[Tombstone]") -> set[str]:
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
