"""Restores or accepts violations: one file, what one pass found together, or all of the agent."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.errors import UsageError
from signet_sync.integrity import settling
from signet_sync.integrity.operations import BatchResult, Difference, ViolationFilter
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.store.violations import OpenViolation, batches
from signet_sync.web.action import REASON, Action, ActionCall, ActionPlan, ActionResult, PathList, ViewLink, digest
from signet_sync.web.commands import WORDS, command_line
from signet_sync.web.diff import Differing, differing
from signet_sync.web.formatting import counted
from signet_sync.web.request import ViewRequest
from signet_sync.web.views.violations import one_of, too_long

_BACK = ViewLink("Problems", "violations")
_SHOWN = 20  # files named in a result


def _restore(request: ViewRequest) -> ActionPlan:
    """Plans to write sealed bytes back."""
    path = request.query.get("path")
    with reading(request.site.place) as database:
        if not path:
            return _restore_several(request, database)
        one, changed = one_of(request, database, path)
    if changed is None:
        raise UsageError(
            "its sealed bytes no longer exist", path=path, hint="restore it from a copy of your own, or accept it"
        )
    said = [f"The file {path} is written again as it was sealed."]
    if changed.present is not None:
        said.append("What it says now is replaced, and not kept.")
    elif changed.state != "gone":
        said.append("What is at its path is no file that can be read; it is moved aside and kept.")
    return ActionPlan(
        title="Restore this file?",
        button="Restore",
        sentences=said,
        back=ViewLink("What changed", "violation", {"path": path}),
        state=_state(one, changed),
        command=command_line(request, "violations", "restore", path, own_agent=False),
        difference="What changes in the file",
        differing=None if changed.present is None or too_long(changed) else _back_to_sealed(changed),
        final=changed.present is not None,
    )


def _back_to_sealed(changed: Difference) -> Differing:
    return differing(changed.after(), changed.before())


def _restore_several(request: ViewRequest, database: Database) -> ActionPlan:
    found = _several(request, database)
    lost = [one for one in found if not one.restorable]
    if len(lost) == len(found):
        raise UsageError("none of their sealed bytes exist any more", hint="restore them from copies, or accept them")
    gone = sum(one.code == "vanished" for one in found if one.restorable)
    changed = len(found) - len(lost) - gone
    said = []
    if changed:
        said.append(
            f"{counted(changed, 'changed file')} {_are(changed)} written again as sealed; what {_they(changed)} now is"
            " replaced, and not kept."
        )
    if gone:
        said.append(f"{counted(gone, 'missing file')} {_are(gone)} written again as sealed.")
    if lost:
        said.append(f"{counted(len(lost), 'file')} cannot be restored: the sealed bytes no longer exist.")
    return ActionPlan(
        title=f"Restore {counted(len(found) - len(lost), 'file')}?",
        button="Restore all of them",
        sentences=said,
        back=_BACK,
        state=_states(request, found),
        command=command_line(request, "violations", "restore", *_chosen(request), own_agent=False),
        final=changed > 0,
        lists=(PathList.of("Restored", [one.path for one in found if one.restorable]),),
    )


def _accept(request: ViewRequest) -> ActionPlan:
    """Plans to seal present contents, or to accept that files are gone."""
    path = request.query.get("path")
    with reading(request.site.place) as database:
        if not path:
            return _accept_several(request, database)
        one, changed = one_of(request, database, path)
    if not one.acceptable:
        raise UsageError("there is nothing that could be accepted", path=path, hint="restore the file")
    command = command_line(request, "violations", "accept", path, "--reason", WORDS, own_agent=False)
    back = ViewLink("What changed", "violation", {"path": path})
    if one.code == "vanished":
        return ActionPlan(
            title="Accept that this file is gone?",
            button="Accept that it is gone",
            sentences=[
                f"{path} is no problem any more, and the reason is recorded.",
                "Its seal stays, so that it can still be restored at a terminal: signet-sync violations restore PATH.",
            ],
            back=back,
            state=_state(one, changed),
            command=command,
            fields=(REASON,),
        )
    return ActionPlan(
        title="Accept this file as it is?",
        button="Accept and seal it",
        sentences=[
            f"The present content of {path} is sealed: search, recall and pages use it from now on.",
            "The content that was sealed before is deleted; it cannot be restored any more.",
            "If its checksum in the frontmatter does not match, that line of the file is corrected.",
            "The reason is kept with the seal.",
        ],
        back=back,
        state=_state(one, changed),
        command=command,
        fields=(REASON,),
        difference="What is accepted",
        differing=None if changed is None or too_long(changed) else differing(changed.before(), changed.after()),
        final=True,
    )


def _accept_several(request: ViewRequest, database: Database) -> ActionPlan:
    found = _several(request, database)
    gone = sum(one.code == "vanished" for one in found)
    rest = [one for one in found if one.code != "vanished"]
    able = sum(one.acceptable for one in rest)
    said = []
    if able:
        said.append(
            f"The present content of {counted(able, 'changed file')} is sealed; the content that was sealed before is"
            " deleted, and cannot be restored any more."
        )
    if gone:
        said.append(f"That {counted(gone, 'file')} {_are(gone)} gone is accepted; the seals stay.")
    if able < len(rest):
        said.append(f"{counted(len(rest) - able, 'file')} cannot be accepted, and {_are(len(rest) - able)} left.")
    said.append("The reason is kept with each.")
    return ActionPlan(
        title=f"Accept {counted(able + gone, 'file')} as {'it is' if able + gone == 1 else 'they are'}?",
        button="Accept all of them",
        sentences=said,
        back=_BACK,
        state=_states(request, found),
        command=command_line(request, "violations", "accept", *_chosen(request), "--reason", WORDS, own_agent=False),
        fields=(REASON,),
        final=able > 0,
        lists=(PathList.of("Accepted", [one.path for one in found if one.acceptable]),),
    )


def _several(request: ViewRequest, database: Database) -> Sequence[OpenViolation]:
    """Returns what the request selects: a batch, else all of the agent. Raises `UsageError` for nothing."""
    wanted = request.query.get("batch")
    found = [one for batch in batches(database, request.agent) if wanted in (None, batch.id) for one in batch.files]
    if not found:
        raise UsageError(
            "there is no such violation of this agent any more", hint="see the list", code="unknown-violation"
        )
    return found


def _chosen(request: ViewRequest) -> tuple[str, ...]:
    batch = request.query.get("batch")
    return ("--batch", batch) if batch else ("--all",)


def _state(one: OpenViolation, changed: Difference | None) -> object:
    if changed is None:
        return [one.path, one.code, one.message]
    return [one.path, one.code, digest(changed.sealed), digest(changed.present), changed.state]


def _states(request: ViewRequest, found: Sequence[OpenViolation]) -> object:
    """Returns the state of many files: not their contents, but what would change with these."""
    states: list[object] = []
    for one in found:
        status = files.status_of(request.site.place.root, one.path)
        seen = None if status is None else [status.st_mtime_ns, status.st_size, status.st_ino]
        states.append([one.path, one.code, one.restorable, one.acceptable, seen])
    return states


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _they(count: int) -> str:
    return "it says" if count == 1 else "they say"


def _filter(request: ViewRequest) -> ViolationFilter:
    path = request.query.get("path")
    if path:
        return ViolationFilter((path,))
    batch = request.query.get("batch")
    return ViolationFilter(everything=not batch, batch=batch, agent=request.agent)


def _do_restore(call: ActionCall) -> ActionResult:
    done = settling.restore(call.workspace, _filter(call.request), call.request.now_us, call.agree(_restore))
    return _result(done, "Restored")


def _do_accept(call: ActionCall) -> ActionResult:
    reason = call.words["reason"]
    done = settling.accept(call.workspace, _filter(call.request), reason, call.request.now_us, call.agree(_accept))
    return _result(done, "Accepted")


def _result(done: BatchResult, what: str) -> ActionResult:
    said = [f"{what} {path}." for path in done.done[:_SHOWN]]
    if len(done.done) > _SHOWN:
        said.append(f"{what} {counted(len(done.done) - _SHOWN, 'more file')}.")
    said += [f"What was at {path} is kept as {kept}." for path, kept in [*done.kept.items()][:_SHOWN]]
    said += [f"Left as it is: {path}: {why}." for path, why in [*done.failed.items()][:_SHOWN]]
    if len(done.failed) > _SHOWN:
        said.append(f"{counted(len(done.failed) - _SHOWN, 'more file')} left.")
    count = len(done.done)
    title = f"{what} {counted(count, 'file')}" if count else f"Nothing was {what.lower()}"
    return ActionResult(title, said, (_BACK,), well=not done.failed)


ACTIONS = (
    Action("restore", ("path", "batch"), _restore, _do_restore),
    Action("accept", ("path", "batch"), _accept, _do_accept),
)
