"""Remembers, forgets, pins, and says of statements whether they hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import get_args

from signet_sync.errors import UsageError
from signet_sync.formats.handle import handle
from signet_sync.formats.paths import dream_page, head_page
from signet_sync.graph.store import neighbours
from signet_sync.memories import operations
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.privacy import forget
from signet_sync.recall import pinning
from signet_sync.recall.store import references
from signet_sync.statements.store import rows as statements
from signet_sync.statements.validity import ENDS
from signet_sync.sync.read_only import reading
from signet_sync.text.memory import LONGEST, TYPES
from signet_sync.web.action import Action, ActionCall, ActionPlan, ActionResult, FormField, ViewLink, history_remedy
from signet_sync.web.formatting import count_noun
from signet_sync.web.markdown import Prose
from signet_sync.web.request import WORDS, ViewRequest

_RECALL = ViewLink("Recall", "recall")
_TEXT = FormField(
    "text", "What to remember", required=True, area=True, hint=f"at most {LONGEST:,} characters; secrets are left out"
)
_FIELDS = (
    _TEXT,
    FormField("type", "Kind", required=True, options=tuple((one, one) for one in TYPES), value="note"),
    FormField("tags", "Tags", hint="words to find it by, separated by commas; may be left empty"),
    FormField("private", "Only for this agent: no shared context shows it", options=(("yes", "yes"),)),
)


# ── remember and forget ──


def _remember(request: ViewRequest) -> ActionPlan:
    return ActionPlan(
        title="Remember something",
        button="Remember",
        sentences=[
            f"MEMORY.md of agent {request.agent} shows it from now on, and recall finds it.",
            "A text that is known already is kept once, with the tags of both.",
        ],
        fields=_FIELDS,
        back=_RECALL,
        state=None,
        command=request.command("remember", WORDS, "--type", "note"),
    )


def _do_remember(call: ActionCall) -> ActionResult:
    words: Mapping[str, str] = call.words
    done = operations.remember(
        call.workspace,
        call.request.agent,
        words["text"].replace("\r\n", "\n"),
        kind=words["type"],
        tags=tuple(tag.strip() for tag in words.get("tags", "").split(",") if tag.strip()),
        private=words.get("private") == "yes",
        session=None,
        now_us=call.request.now_us,
    )
    said = [f"It is the memory {handle(done.memory.id)}."]
    if done.redactions:
        said.append(f"{count_noun(sum(done.redactions.values()), 'secret')} in it was replaced by a mark.")
    links = (_view_of(done.memory.id), _RECALL)
    return ActionResult("Remembered" if done.new else "Already remembered", [*said, *_waiting(done.waiting)], links)


def _memory_of(request: ViewRequest) -> Memory:
    with reading(request.site.place) as database:
        return operations.require_named(database, request.agent, request.query.get("memory", ""))


def _forget(request: ViewRequest) -> ActionPlan:
    found = _memory_of(request)
    return ActionPlan(
        title="Forget this memory?",
        button="Forget it for good",
        sentences=[
            "It is deleted to the last byte: from the database, MEMORY.md, DREAMS.md, kept copies and backups.",
            "It cannot be brought back.",
            "What files of sessions say stays; to delete it, remove the session.",
        ],
        prose=Prose(found.content),
        back=_view_of(found.id),
        state=found.id,
        command=request.command("forget", found.id),
        final=True,
    )


def _do_forget(call: ActionCall) -> ActionResult:
    wanted = call.request.query["memory"].removeprefix("^")
    agent = call.request.agent
    done = forget.forget(call.workspace, agent, wanted, call.request.now_us)
    said = [f"The memory {handle(done.id)} is deleted."]
    if done.pending:
        said.append("Some bytes of it cannot be deleted yet; every pass tries again.")
    command = ""
    if done.git_history == "contains":
        where, command = history_remedy(call.request, [head_page(agent), dream_page(agent)])
        said.append(f"Older pages in the workspace's git history may still show it.{where}")
    return ActionResult("Forgotten", [*_waiting(done.waiting), *said], (_RECALL,), command, well=not done.pending)


# ── a person's word ──

# Of each word: title, button, what it means, what follows, and the command before and after the handle.
_SAYS: Mapping[str, tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = {
    "withdrawn": (
        "Is this not true any more?", "It is not true any more", "No page, context or recall shows it.", "is not true",
        ("statements", "withdraw"), (),
    ),
    "done": (
        "Is this done?", "It is done", "It is no next step or blocker any more.", "is done",
        ("statements", "done"), (),
    ),
    "open": (
        "Does this hold after all?", "It holds", "Pages and recall show it again.", "holds",
        ("statements", "done"), ("--undo",),
    ),
    "pinned": (
        "Pin this to the top of MEMORY.md?", "Pin it", "Neither age nor lack of room removes it from MEMORY.md.",
        "is at the top of MEMORY.md", ("pin",), (),
    ),
    "unpinned": (
        "Remove this pin?", "Remove the pin", "Age and room decide again whether MEMORY.md shows it.", "has no pin",
        ("pin",), ("--remove",),
    ),
}  # fmt: skip


def _say(request: ViewRequest, word: str = "") -> ActionPlan:
    wanted, word = request.query.get("handle", ""), word or request.query.get("status", "")
    if word not in _SAYS:
        raise UsageError("there is no such action", hint="use the buttons of the views", code="unknown-action")
    title, button, means, _, before, after = _SAYS[word]
    with reading(request.site.place) as database:
        found = references.resolve(database, request.agent, wanted).id
        stated = statements.get(database, request.agent, found)
        is_pinned = memories.is_pinned(database, request.agent, found)
        label = neighbours.labels(database, request.agent, [found]).get(found, found)
    if before[0] == "statements" and stated is None:
        raise UsageError(f"{wanted} is no statement", hint="use the buttons of the views", code="not-a-statement")
    if word == "done" and stated is not None and stated.kind not in ENDS:
        means = "No page, context or recall shows it any more."
    if word == ("pinned" if is_pinned else "unpinned"):
        raise UsageError(f"{handle(found)} is {'pinned already' if is_pinned else 'not pinned'}", hint="nothing to do")
    return ActionPlan(
        title=title,
        button=button,
        sentences=[means, "The files of its session stay as they are; your word counts on every machine."],
        prose=Prose(stated.text if stated else label),
        back=_view_of(found),
        state=[found, is_pinned, stated and stated.status],
        command=request.command(*before, found, *after),
        computed=found,
    )


def _do_say(call: ActionCall, word: str = "") -> ActionResult:
    word = word or call.request.query["status"]
    to, now_us = (call.workspace, call.request.agent, call.plan.computed), call.request.now_us
    status = next((one for one in get_args(pinning.Mark) if one == word), None)
    change = pinning.pin if word == "pinned" else pinning.unpin
    waiting = pinning.mark(*to, status, now_us).waiting if status else change(*to, now_us).waiting
    said = f"{handle(call.plan.computed)} {_SAYS[word][3]}."
    return ActionResult("Noted", [said, *_waiting(waiting)], (call.plan.back, ViewLink("MEMORY.md", "page")))


def _view_of(found: str) -> ViewLink:
    return ViewLink("The memory" if found.startswith("m-") else "What belongs to it", "node", {"node": found})


def _waiting(why: str) -> list[str]:
    return [f"{why}."] if why else []


ACTIONS = (
    Action("remember", (), _remember, _do_remember),
    Action("mark", ("handle", "status"), _say, _do_say),
    Action("forget", ("memory",), _forget, _do_forget),
    Action("pin", ("handle",), partial(_say, word="pinned"), partial(_do_say, word="pinned")),
    Action("unpin", ("handle",), partial(_say, word="unpinned"), partial(_do_say, word="unpinned")),
)
