"""Removes sessions on every machine: an approved list at the place of the shares, which agents pull and enforce.

A machine takes part only if its person's own settings name the place and allow removals. Each answers with a receipt,
so that the one who approved sees who has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from signet_sync.errors import SignetSyncError, UsageError, reason
from signet_sync.fleet.tables import APPROVED, RECEIPTS, SHARES, Conflict, Tables
from signet_sync.formats.paths import AGENT_ID
from signet_sync.formats.timestamps import iso
from signet_sync.privacy import quotes, remove
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_line

MOST = 20  # sessions that go at once without a person's word
_TOKEN = re.compile(r"[a-z2-7]{16}")
_TRIES = 5


def approve(tables: Tables, agent: str, tokens: Sequence[str], why: str, now_us: int, *, undo: bool) -> None:
    """Puts tokens of an agent on the approved list, or takes them off it. Raises `UsageError`."""
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            hint = "fleet search --json has session_token; it is also in the names of a session's files"
            raise UsageError(f"{token[:60]!r} is no token", hint=hint)
    for _try in range(_TRIES):
        listed, version = read_approved(tables)
        kept = {(one["agent"], one["token"]): one for one in listed}
        for token in tokens:
            if undo:
                kept.pop((agent, token), None)
            elif (agent, token) not in kept:
                kept[agent, token] = {"agent": agent, "token": token, "reason": sanitize_line(why), "at": iso(now_us)}
        try:
            if tokens and list(kept.values()) != listed:
                tables.write(APPROVED, {"approved": list(kept.values())}, version)
            return
        except Conflict:
            continue
    raise SignetSyncError("somebody else keeps changing the list", path=tables.url, hint="try again", code="conflict")


def read_approved(tables: Tables) -> tuple[list[dict[str, str]], str]:
    """Returns the approved list, and the version that it was read in. Raises `SignetSyncError` if it is damaged."""
    document, version = tables.read(APPROVED)
    listed = (document or {}).get("approved", [])
    ok = isinstance(listed, list) and all(
        isinstance(one, dict)
        and one.keys() == {"agent", "token", "reason", "at"}
        and all(isinstance(value, str) for value in one.values())
        and AGENT_ID.fullmatch(one["agent"])
        and _TOKEN.fullmatch(one["token"])
        for one in listed
    )
    if not ok or (document is None and version):
        raise SignetSyncError("the approved list is damaged; nothing is removed", path=f"{tables.url}/{APPROVED}")
    return listed, version


def states_of(database: Database, listed: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], str]:
    """Returns of each token on the list whether it is `removed`, still `here`, or was never (`absent`)."""
    gone = {one.key for one in tombstones_store.list_mirrored(database) if not one.session_ids}
    query = (
        "select exists(select 1 from memory_artifacts where agent_id = ?1 and session_token = ?2)"
        " or exists(select 1 from seals where agent_id = ?1 and session_token = ?2)"
    )
    found = {}
    for one in listed:
        key = one["agent"], one["token"]
        found[key] = "here" if database.value(query, key) else "removed" if key in gone else "absent"
    return found


def enforce(
    tables: Tables,
    share: str,
    reading: Callable[[], AbstractContextManager[Database]],
    open_workspace: Callable[[], AbstractContextManager[Workspace]],
    now_us: int,
    *,
    accept: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Removes what is approved and here, with its quotes in other sessions; writes the receipt, if it says more.

    More than `MOST` at once are left: the receipt says so, and `accept` is a person's word. Raises `SignetSyncError`.
    """
    listed, _ = read_approved(tables)
    with reading() as database:  # and no longer: nothing may hold what a removal overwrites
        states = states_of(database, listed)
    here = [one for one in listed if states[one["agent"], one["token"]] == "here"]
    halted = len(here) if len(here) > MOST and not accept else 0
    if here and not halted:
        with open_workspace() as workspace:
            for one in here:
                states[one["agent"], one["token"]] = _remove(workspace, one, now_us)
    told = {f"{agent}/{token}": "halted" if state == "here" else state for (agent, token), state in states.items()}
    receipt = {"share": share, **more, "tokens": told}
    before, version = tables.read(f"{RECEIPTS}/{share}.json")
    if (told or before) and {**(before or {}), "at": ""} != {**receipt, "at": ""}:
        with suppress(Conflict):  # somebody has just answered in its place
            tables.write(f"{RECEIPTS}/{share}.json", {**receipt, "at": iso(now_us)}, version)
    return {"halted": halted, "tokens": told}


def _remove(workspace: Workspace, one: Mapping[str, str], now_us: int) -> str:
    """Removes the sessions of a token; returns `removed`, or why not: the next time tries again."""
    why = f"approved for the fleet: {one['reason']}"
    try:
        remove.refresh(workspace, now_us)
        plans = remove.plan(workspace, one["agent"], one["token"])
        quoted = quotes.find_quotes(workspace, plans)
        if quoted.places:
            quotes.redact(workspace, quoted, why, now_us)
        done = [remove.remove(workspace, plan, why, now_us) for plan in plans]
    except (SignetSyncError, OSError) as error:
        return f"failed: {sanitize_line(reason(error))}"
    pending = sum(len(each.pending) for each in done)
    return f"failed: {pending} files cannot be deleted yet" if pending else "removed"


def answers(tables: Tables) -> dict[str, Any]:
    """Returns the document of `fleet remove --json`: of each token how many removed it, and who has not answered."""
    listed, _ = read_approved(tables)
    shares, receipts = tables.read_all(SHARES), tables.read_all(RECEIPTS)
    tokens = []
    for one in listed:
        counts, waiting = {"removed": 0, "absent": 0}, []
        for share in sorted(shares.keys() | receipts.keys()):
            commit, receipt = shares.get(share) or {}, receipts.get(share) or {}
            told = (receipt.get("tokens") or {}).get(f"{one['agent']}/{one['token']}")
            if told in counts:
                counts[told] += 1
                continue
            allows = commit.get("removals", True)
            why = told or ("has not answered" if allows else "does not allow removals")
            name, seen = (commit.get(key) or receipt.get(key) or "" for key in ("workspace", "shared_at"))
            waiting.append({"workspace": name or share, "why": why, "shared_at": seen})
        waiting.sort(key=lambda each: each["workspace"])
        tokens.append({**one, **counts, "waiting": waiting})
    return {"url": tables.url, "approved": tokens}
