"""Every action of the page: what it would do now, in sentences, and the operation, which a command has too."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

from signet_sync.entities import operations as entity_operations
from signet_sync.entities import queries
from signet_sync.errors import UsageError
from signet_sync.formats.handle import handle
from signet_sync.formats.paths import dream_page, head_page
from signet_sync.graph.store import neighbours
from signet_sync.history.operations import filter_line
from signet_sync.integrity import operations as integrity_operations
from signet_sync.integrity.operations import BatchResult
from signet_sync.memories.store import memories
from signet_sync.privacy import remove as forget_operations
from signet_sync.recall import pinning
from signet_sync.recall.store import references
from signet_sync.statements import store as statements
from signet_sync.statements.validity import ENDS
from signet_sync.storage import files
from signet_sync.sync.read_only import open_index
from signet_sync.sync.store.violations import OpenViolation, list_open
from signet_sync.sync.workspace import Workspace
from signet_sync.web.acting import Action, ActionPlan, ActionResult, CheckAgain, ViewLink, no_such_action
from signet_sync.web.formatting import difference
from signet_sync.web.markdown import Prose
from signet_sync.web.request import WORDS, ViewRequest

LONGEST = 4_000_000  # bytes of a text that is compared
_RECALL, _PROBLEMS = ViewLink("Recall", "recall"), ViewLink("Problems", "violations")


def _node(found: str) -> ViewLink:
    return ViewLink("The memory" if found.startswith("m-") else "What belongs to it", "node", {"node": found})


def _say_why(why: str) -> list[str]:
    return [f"{why}."] if why else []


# ── memories and statements ──


def _forget(request: ViewRequest) -> ActionPlan:
    with open_index(request.site.place) as database:
        found = forget_operations.require_memory(database, request.agent, request.query.get("memory", ""))

    def do(workspace: Workspace, reason: str, check_again: CheckAgain) -> ActionResult:
        done = forget_operations.forget(workspace, request.agent, found.id, request.now_us)
        said, command = [f"The memory {handle(found.id)} is deleted."], ""
        if done.pending:
            said.append("Some bytes of it cannot be deleted yet; every pass tries again.")
        if done.git_history == "contains":
            place, pages = request.site.place, [head_page(request.agent), dream_page(request.agent)]
            line = filter_line(place.root, place.state().key, pages)
            command = line or request.command("history", "forget")
            how = "In a fresh clone of the repository, this takes it out:" if line else "This deletes the history:"
            said.append(f"Older pages in the workspace's git history may still show it. {how}")
        said = [*_say_why(done.waiting), *said]
        return ActionResult("Forgotten", said, (_RECALL,), command, well=not done.pending)

    return ActionPlan(
        title="Forget this memory?",
        button="Forget it for good",
        sentences=[
            "It is deleted to the last byte: from the database, MEMORY.md, DREAMS.md, kept copies and backups.",
            "It cannot be brought back.",
            "What files of sessions say stays; to delete it, remove the session.",
        ],
        prose=Prose(found.content),
        back=_node(found.id),
        state=found.id,
        command=request.command("forget", found.id),
        do=do,
    )


# Of each word: title, button, what it means, what follows, and the command before and after the handle.
_SAYS: dict[str, tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = {
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


def _say(request: ViewRequest) -> ActionPlan:
    wanted, word = request.query.get("handle", ""), request.query.get("status", "")
    if word not in _SAYS:
        raise no_such_action()
    title, button, means, follows, before, after = _SAYS[word]
    with open_index(request.site.place) as database:
        found = references.resolve(database, request.agent, wanted)
        stated = statements.get(database, request.agent, found)
        is_pinned = memories.is_pinned(database, request.agent, found)
        label = neighbours.labels(database, request.agent, [found]).get(found, found)
    if before[0] == "statements" and stated is None:
        raise UsageError(f"{wanted} is no statement", hint="use the buttons of the views", code="not-a-statement")
    if word == "done" and stated is not None and stated.kind not in ENDS:
        means = "No page, context or recall shows it any more."
    if word == ("pinned" if is_pinned else "unpinned"):
        raise UsageError(f"{handle(found)} is {'pinned already' if is_pinned else 'not pinned'}", hint="nothing to do")

    def do(workspace: Workspace, reason: str, check_again: CheckAgain) -> ActionResult:
        to = (workspace, request.agent, found)
        status = next((one for one in get_args(pinning.Mark) if one == word), None)
        now_us, remove = request.now_us, word == "unpinned"
        done = pinning.mark(*to, status, now_us) if status else pinning.pin(*to, now_us, remove=remove)
        said = [f"{handle(found)} {follows}.", *_say_why(done.waiting)]
        return ActionResult("Noted", said, (_node(found), ViewLink("MEMORY.md", "page")))

    return ActionPlan(
        title=title,
        button=button,
        sentences=[means, "The files of its session stay as they are; your word counts on every machine."],
        prose=Prose(stated.text if stated else label),
        back=_node(found),
        state=[found, is_pinned, stated and stated.status],
        command=request.command(*before, found, *after),
        do=do,
    )


# ── entities ──


def _review(request: ViewRequest, *, approve: bool) -> ActionPlan:
    with queries.open_read_only(request.site.place, request.agent, request.now_us) as repo:
        proposal = queries.find_proposal(repo, request.query.get("proposal", ""))
        entity = queries.view(repo, repo.require(proposal.entity_id))
    section = next((one for one in entity.sections if one.name == proposal.section), None)
    if section is None:
        raise UsageError(
            f"{entity.title} has no section {proposal.section} any more",
            hint="reject the proposal at a terminal: signet-sync entity review reject",
            code="section-unknown",
        )
    back = ViewLink("The entity", "entity", {"entity": entity.id})

    def do(workspace: Workspace, reason: str, check_again: CheckAgain) -> ActionResult:
        by: dict[str, Any] = {"reason": reason.strip() or None, "actor": "person", "now_us": request.now_us}
        done = entity_operations.review(workspace, request.agent, proposal.id, approve=approve, **by)
        said = [f"The event {done.event_id} records it.", *map("{}.".format, done.warnings), *_say_why(done.waiting)]
        return ActionResult("Approved" if approve else "Rejected", said, (back, ViewLink("Entities", "entities")))

    sets, named = proposal.op == "set", f"The section {section.heading} of {entity.title}"
    changed = None
    if approve:
        said = [f"{named} {'gets' if sets else 'gets in addition'} the text below, as your own change."]
        said += [f"The agent gives as its reason: {proposal.rationale}"] if proposal.rationale else []
        if sets:
            lines = difference(section.text.strip("\n"), proposal.text.strip("\n"))
            changed = ("What changes in the section", lines)
    else:
        said = [f"{named} stays as it is, and the proposal waits no longer."]
    said.append("The event log keeps both texts.")
    return ActionPlan(
        title="Approve this proposal?" if approve else "Reject this proposal?",
        button="Approve" if approve else "Reject",
        sentences=said,
        prose=None if changed else Prose(proposal.text),
        difference=changed,
        reason="" if approve else "optional",
        back=back,
        state=[proposal.id, section.text, entity.drifted],
        command=request.command("entity", "review", "approve" if approve else "reject", proposal.id),
        do=do,
    )


# ── violations ──


def _find_violation(request: ViewRequest) -> tuple[OpenViolation, list[object], list[str]]:
    """Returns the violation of the agent at `path`, what it is now, and what changed in the file.

    Raises `UsageError` if there is none.
    """
    place, path = request.site.place, request.query.get("path", "")
    with open_index(place) as database:
        found = [one for one in list_open(database, request.agent) if one.path == path]
        if not found:
            message = f"{path or 'nothing'} is not an open violation of agent {request.agent}"
            raise UsageError(message, hint="see the list of problems", code="unknown-violation")
        one, changed = found[0], list[str]()
        # Not its content, but what would change with it; looked at before it is compared.
        status = files.status_of(place.root, path)
        seen = None if status is None else [status.st_mtime_ns, status.st_size, status.st_ino]
        if one.restorable:
            texts = integrity_operations.difference(database, place.root, path, place.settings().max_file_bytes)
            if not texts.state and max(len(texts.before), len(texts.after)) <= LONGEST:
                changed = difference(texts.before, texts.after)
    return one, [path, one.code, one.restorable, one.acceptable, seen], changed


def _restore(request: ViewRequest) -> ActionPlan:
    one, state, changed = _find_violation(request)
    if not one.restorable:
        hint = "restore the file from a copy of your own, or accept it"
        raise UsageError("the sealed bytes no longer exist", hint=hint)
    said, edited = ["The file is written again as sealed."], one.code != "vanished" and one.acceptable
    if edited:
        said.append("What it says now is replaced, and not kept.")
    elif one.code != "vanished":
        said.append("What is at its path and is no file that can be read has to be moved away first.")

    def do(workspace: Workspace, reason: str, check_again: CheckAgain) -> ActionResult:
        to = (workspace, [one.path], request.now_us, check_again)
        return _result_of_file(integrity_operations.restore(*to, agent=request.agent), "Restored")

    return ActionPlan(
        title="Restore this file?",
        button="Restore",
        sentences=said,
        back=_PROBLEMS,
        state=state,
        command=request.command("violations", "restore", one.path, own_agent=False),
        difference=("What changed in the file, which is taken back", changed),
        do=do,
    )


def _accept(request: ViewRequest) -> ActionPlan:
    one, state, changed = _find_violation(request)
    if not one.acceptable:
        raise UsageError("there is nothing that could be accepted", hint="restore the file")
    gone = one.code == "vanished"
    said = [
        "That it is gone is accepted. Its seal stays for a later restore."
        if gone
        else "Its present content is sealed: search and pages use it now. The content that was sealed before is"
        " deleted; it cannot be restored any more.",
        "The reason is kept with it.",
    ]

    def do(workspace: Workspace, reason: str, check_again: CheckAgain) -> ActionResult:
        to = (workspace, [one.path], reason, request.now_us, check_again)
        return _result_of_file(integrity_operations.accept(*to, agent=request.agent), "Accepted")

    return ActionPlan(
        title=f"Accept this file {'as gone' if gone else 'as it is now'}?",
        button="Accept",
        sentences=said,
        back=_PROBLEMS,
        state=state,
        command=request.command("violations", "accept", one.path, "--reason", WORDS, own_agent=False),
        reason="required",
        difference=("What is accepted", changed),
        do=do,
    )


def _result_of_file(done: BatchResult, what: str) -> ActionResult:
    said = [f"{what} {path}." for path in done.done]
    said += [f"Left as it is: {path}: {why}." for path, why in done.failed.items()]
    return ActionResult(what if done.done else f"Nothing was {what.lower()}", said, (_PROBLEMS,), well=not done.failed)


ACTIONS = {
    "mark": Action(_say, ("handle", "status")),
    "forget": Action(_forget, ("memory",)),
    "approve": Action(partial(_review, approve=True), ("proposal",)),
    "reject": Action(partial(_review, approve=False), ("proposal",)),
    "restore": Action(_restore, ("path",)),
    "accept": Action(_accept, ("path",)),
}
