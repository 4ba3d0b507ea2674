"""Removes a session for good, after a dry run."""

from __future__ import annotations

from signet_sync.errors import UsageError
from signet_sync.formats.paths import head_page
from signet_sync.privacy import quotes
from signet_sync.privacy import remove as removals
from signet_sync.privacy.quotes import Quotes
from signet_sync.privacy.remove import RemoveResult, SessionRemoval
from signet_sync.recall import open_session
from signet_sync.sync.read_only import require_index
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.web.action import (
    REASON,
    Action,
    ActionCall,
    ActionPlan,
    ActionResult,
    FormField,
    ViewLink,
    history_remedy,
)
from signet_sync.web.formatting import count_noun
from signet_sync.web.markdown import Prose
from signet_sync.web.request import WORDS, ViewRequest

_BACK = ViewLink("Sessions", "sessions")
_SHOWN = 20  # files named in a list of sentences
_QUOTING = FormField(
    "quoting",
    "Passages of it that other sessions quote",
    required=True,
    options=(("redact", "replace each by [REDACTED:removed]"), ("keep", "leave them as they are")),
)


def _remove(request: ViewRequest) -> ActionPlan:
    token, session_id = request.query.get("session_token", ""), request.query.get("session", "")
    place = request.site.place
    require_index(place)
    with place.opened(touch_nothing=True) as workspace:
        plans = [one for one in removals.plan(workspace, request.agent, session_id) if token in ("", one.session_token)]
        if not plans:
            raise UsageError("there is no such session", hint="see the list of sessions", code="unknown-session")
        quoted = quotes.find_quotes(workspace, plans)
        about = open_session.describe_one(workspace.database, plans[0].sessions[0]) if plans[0].paths else None
    paths = [path for one in plans for path in one.paths]
    count = len(paths)
    said = [
        f"{count_noun(count, 'file')} of the session {session_id} {'is' if count == 1 else 'are'} deleted, with all"
        " that was derived from them: index, statements, memories from it, lines of pages, seals and backups."
        if count
        else f"What the running session {session_id} has said so far is deleted.",
        "A tombstone keeps the session from coming back, here and on every machine that shares this vault. It contains"
        " the reason.",
        "The harness's own transcript and the workspace's git history are not changed; the result says if they still"
        " contain text of the session.",
        "The deleted files cannot be brought back.",
    ]
    lists = [("Deleted", tuple(paths))] if paths else []
    if quoted.places:
        said.append(
            f"Other sessions quote it in {count_noun(len(quoted.places), 'place')}; you choose what becomes of that."
        )
        lists.append(("Quote it", quoted.places))
    return ActionPlan(
        title="Remove this session for good?",
        button="Remove it for good",
        sentences=said,
        prose=Prose((about and about["sentence"]) or session_id),
        fields=(*((_QUOTING,) if quoted.places else ()), REASON),
        back=ViewLink("The session", "session", {"token": plans[0].session_token, "session": session_id}),
        state=[[one.session_token, one.session_ids, one.paths] for one in plans] + [quoted.places],
        command=request.command("remove", session_id, "--reason", WORDS),
        final=True,
        computed=(plans, quoted),
        lists=lists,
    )


def _do_remove(call: ActionCall) -> ActionResult:
    plans: list[SessionRemoval]
    quoted: Quotes
    plans, quoted = call.plan.computed
    workspace, now_us, reason = call.workspace, call.request.now_us, sanitize_line(call.words["reason"])
    redacting = bool(quoted.places) and call.words["quoting"] == "redact"
    if redacting:
        quotes.redact(workspace, quoted, reason, now_us)
    done = [removals.remove(workspace, one, reason, now_us, quoted_in=quoted.places) for one in plans]
    said = [text for one in done for text in _describe_removal(one, redacted=redacting)]
    holds = next((one for one in done if one.git_history == "contains"), None)
    command = ""
    if holds:
        where, command = history_remedy(call.request, [*holds.removed_paths, head_page(holds.agent_id)])
        said.append(f"The workspace's git history still contains its text.{where}")
    well = not any(one.pending for one in done)
    return ActionResult("Removed", said, (_BACK,), command, well=well)


def _describe_removal(done: RemoveResult, *, redacted: bool) -> list[str]:
    said = [
        f"{count_noun(len(done.removed_paths), 'file')} and {count_noun(done.removed_rows, 'row')} of"
        f" {done.session_token} are deleted; the tombstone is {done.tombstone}."
    ]
    said += [f"Cannot be deleted yet, every pass tries again: {path}." for path in done.pending[:_SHOWN]]
    if done.quoted_in:
        what = "Its passages were replaced in" if redacted else "Of other sessions, these still quote it:"
        said.append(f"{what} {_some(done.quoted_in)}.")
    if done.foreign:
        said.append(f"Not written by signet-sync, and still contain text of it: {_some(done.foreign)}.")
    if done.signet:
        said.append("Signet still has it; remove the session in Signet, too, or it may write it again.")
    return said


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


ACTIONS = (Action("remove", ("session_token", "session"), _remove, _do_remove, refresh=True),)
