"""Writes and reads a plan and its approval; an approval counts for exactly the bytes of its plan."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.fleet.removal.finding import Findings, PlannedFile, PlannedSession
from signet_sync.fleet.removal.request import RemovalRequest
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import user_files
from signet_sync.text.sanitizer import sanitize_line

VERSION = 1
DAYS = 7  # after these a plan is not begun any more: its workspaces have gone on
_DAY_US = 86_400_000_000
_LIMIT = 1 << 30  # bytes of a plan
_HEAD = b'{"signet-sync-removal-'


class Plan(NamedTuple):
    """A plan as it was read: its document, the SHA-256 of its bytes, and what was found in its workspaces."""

    document: dict[str, Any]
    digest: str
    workspaces: tuple[Findings, ...]

    @property
    def made_us(self) -> int:
        """Returns when it was made, in microseconds since 1970 UTC."""
        return parse_instant(self.document["made_at"]) or 0


class Approval(NamedTuple):
    """Who approved a plan, and when."""

    by: str
    at: str


def document(
    request: RemovalRequest, reason: str, quoting: str | None, found: Iterable[Findings], now_us: int
) -> dict[str, Any]:
    """Returns the plan of a removal: ids and paths, no text of a session."""
    found = sorted(found)
    return {
        "signet-sync-removal-plan": VERSION,
        "made_at": iso(now_us),
        "request": request.described(),
        "reason": reason,
        "quoting": quoting,
        "looked_at": len(found),
        "workspaces": [
            {
                "workspace": one.workspace,
                "sessions": [
                    session._asdict() | {"files": [file._asdict() for file in session.files]}
                    for session in one.sessions
                ],
                "quoted_in": list(one.quoted_in),
                "elsewhere": list(one.elsewhere),
                "obstacle": one.obstacle,
            }
            for one in found
            if one.sessions
        ],
        "unreachable": [{"workspace": one.workspace, "message": one.unreachable} for one in found if one.unreachable],
    }


def write(path: str, plan: dict[str, Any]) -> str:
    """Writes a plan, for its owner alone; returns its SHA-256. Raises `UsageError` if another file is there."""
    if os.path.exists(approval_path(path)) or os.path.exists(journal_path(path)):
        raise UsageError("a plan of this name was approved already", path=path, hint="choose another name")
    data = _bytes(plan)
    _write(path, data)
    return sha256(data).hexdigest()


def read(path: str) -> Plan:
    """Reads a plan. Raises `UsageError` if it is none, or was made by another version."""
    data = _read(path, "plan")
    try:
        plan = json.loads(data)
        if plan["signet-sync-removal-plan"] != VERSION:
            raise UsageError("another version of signet-sync made the plan", path=path, hint="plan again")
        workspaces = tuple(
            Findings(
                one["workspace"],
                tuple(
                    PlannedSession(
                        session["agent_id"],
                        session["session_token"],
                        tuple(session["session_ids"]),
                        session["all_sessions"],
                        tuple(PlannedFile(file["path"], file["state"]) for file in session["files"]),
                    )
                    for session in one["sessions"]
                ),
                tuple(one["quoted_in"]),
                tuple(one["elsewhere"]),
                one["obstacle"],
            )
            for one in plan["workspaces"]
        )
        found = Plan(plan, sha256(data).hexdigest(), workspaces)
        if not found.made_us or any(not session.session_ids for one in workspaces for session in one.sessions):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(
            "this is no plan of a removal", path=path, hint="make one with: signet-sync fleet remove … --plan FILE"
        ) from None
    return found


def approve(path: str, by: str, now_us: int) -> Approval:
    """Approves a plan in a person's name. Raises `UsageError` if it leaves open what becomes of quotes."""
    plan = read(path)
    by = sanitize_line(by)
    if not by:
        raise UsageError("an approval needs a name", hint='give --by "NAME"')
    _require_fresh(path, plan, now_us)
    quoted = sum(len(one.quoted_in) for one in plan.workspaces)
    if quoted and plan.document["quoting"] is None:
        raise UsageError(
            f"{quoted} files of other sessions quote what is removed, and the plan does not say what becomes of them",
            path=path,
            hint="plan again with --quoting redact or --quoting keep",
            code="quoted",
        )
    approval = Approval(by, iso(now_us))
    _write(
        approval_path(path),
        _bytes({"signet-sync-removal-approval": VERSION, "plan_sha256": plan.digest, **approval._asdict()}),
    )
    return approval


def approved(path: str, plan: Plan, now_us: int, *, begun: bool) -> Approval:
    """Returns a plan's approval. Raises `UsageError` if there is none, or it is for other bytes, or is out of date.

    A plan that was begun may be finished at any time.
    """
    place = approval_path(path)
    hint = f'read it, then: signet-sync fleet remove --approve {shlex.quote(path)} --by "NAME"'
    if not os.path.lexists(place):
        raise UsageError("the plan is not approved", path=path, hint=hint, code="not-approved")
    try:
        given = json.loads(_read(place, "approval"))
        digest, approval = given["plan_sha256"], Approval(given["by"], given["at"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError("this is no approval", path=place, hint=hint, code="not-approved") from None
    if digest != plan.digest:
        raise UsageError("the plan was changed after its approval", path=path, hint=hint, code="not-approved")
    if not begun:
        _require_fresh(path, plan, now_us)
    return approval


def approval_path(path: str) -> str:
    """Returns where the approval of a plan is."""
    return f"{path}.approved.json"


def journal_path(path: str) -> str:
    """Returns where what was done is written down, a line for each workspace."""
    return f"{path}.journal.jsonl"


def write_report(path: str, report: dict[str, Any], text: str) -> None:
    """Writes the report of a plan beside it, as JSON and for people. Raises `UsageError`, `OSError`."""
    _write(f"{path}.report.json", _bytes({"signet-sync-removal-report": VERSION, **report}))
    with user_files.replacing(f"{path}.report.md", lambda head: head.startswith(b"# Removal\n")) as temporary:
        user_files.write(temporary, [text.encode()])


def _require_fresh(path: str, plan: Plan, now_us: int) -> None:
    if now_us - plan.made_us > DAYS * _DAY_US:
        raise UsageError(f"the plan is older than {DAYS} days", path=path, hint="plan again", code="stale-plan")


def _read(path: str, what: str) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as handle:
            return handle.read(_LIMIT)
    except OSError as error:
        raise UsageError(f"the {what} cannot be read: {error.strerror}", path=path, hint="name its file") from None


def _write(path: str, data: bytes) -> None:
    with user_files.replacing(path, lambda head: head.startswith(_HEAD)) as temporary:
        user_files.write(temporary, [data])


def _bytes(value: dict[str, Any]) -> bytes:
    """Returns a file's bytes, ASCII for names that are no text; its first key says what it is."""
    return (json.dumps(value, indent=1).replace("{\n ", "{", 1) + "\n").encode()
