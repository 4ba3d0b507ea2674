"""Restores or accepts violations, one file or all of the agent; starts a full pass."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.errors import UsageError
from signet_sync.integrity import operations
from signet_sync.integrity.operations import BatchResult
from signet_sync.integrity.operations import difference as read_difference
from signet_sync.storage import files
from signet_sync.sync.engine import run_pass_mending
from signet_sync.sync.read_only import reading
from signet_sync.sync.store.violations import OpenViolation, batches
from signet_sync.sync.workspace import Request
from signet_sync.web.action import REASON, Action, ActionCall, ActionPlan, ActionResult, ViewLink
from signet_sync.web.formatting import count_noun, difference
from signet_sync.web.request import WORDS, ViewRequest

LONGEST = 4_000_000  # bytes of a text that is compared
_BACK = ViewLink("Problems", "violations")
_SHOWN = 20  # files named in a result, or in a command


def _choose_violations(request: ViewRequest) -> tuple[list[OpenViolation], object, list[str]]:
    """Returns the violation at `path`, else all of the agent; what they are now; of one file what changed in it.

    Raises `UsageError` if there is none.
    """
    place, path = request.site.place, request.query.get("path")
    with reading(place) as database:
        found = [one for batch in batches(database, request.agent) for one in batch.files if path in (None, one.path)]
        if not found:
            raise UsageError(
                f"{path or 'nothing'} is not an open violation of agent {request.agent}",
                hint="see the list of problems",
                code="unknown-violation",
            )
        # Not their contents, but what would change with these; looked at before they are compared.
        state = []
        for one in found:
            status = files.status_of(place.root, one.path)
            seen = None if status is None else [status.st_mtime_ns, status.st_size, status.st_ino]
            state.append([one.path, one.code, one.restorable, one.acceptable, seen])
        changed: list[str] = []
        if path and found[0].restorable:
            texts = read_difference(database, place.root, path, place.settings().max_file_bytes)
            if texts.present is not None and max(len(texts.sealed), len(texts.present)) <= LONGEST:
                changed = difference(texts.before(), texts.after())
    return found, state, changed


def _restore(request: ViewRequest) -> ActionPlan:
    """Plans to write sealed bytes back."""
    found, state, changed = _choose_violations(request)
    able = [one for one in found if one.restorable]
    if not able:
        raise UsageError(
            "the sealed bytes no longer exist", hint="restore the file from a copy of your own, or accept it"
        )
    gone = sum(one.code == "vanished" for one in able)
    odd = sum(not one.acceptable for one in able)
    said = [f"{count_noun(len(able), 'file')} {_are(len(able))} written again as sealed."]
    if edited := len(able) - gone - odd:
        said.append(
            f"What {count_noun(edited, 'changed file')} {'says' if edited == 1 else 'say'} is replaced, and not kept."
        )
    if odd:
        said.append("What is at a path and is no file that can be read is moved aside and kept.")
    if lost := len(found) - len(able):
        said.append(f"{count_noun(lost, 'file')} cannot be restored: the sealed bytes no longer exist.")
    return ActionPlan(
        title=f"Restore {count_noun(len(able), 'file')}?",
        button="Restore",
        sentences=said,
        back=_BACK,
        state=state,
        command=_command(request, "restore", able),
        lists=(("Restored", [one.path for one in able]),),
        difference=("What changed in the file, which is taken back", changed),
        final=edited > 0,
    )


def _accept(request: ViewRequest) -> ActionPlan:
    """Plans to seal present contents, or to accept that files are gone."""
    found, state, changed = _choose_violations(request)
    able = [one for one in found if one.acceptable]
    if not able:
        raise UsageError("there is nothing that could be accepted", hint="restore the file")
    gone = sum(one.code == "vanished" for one in able)
    said = []
    if edited := len(able) - gone:
        said += [
            f"The present content of {count_noun(edited, 'changed file')} is sealed: search and pages use it now.",
            "The content that was sealed before is deleted; it cannot be restored any more.",
        ]
    if gone:
        seals = "Its seal stays" if gone == 1 else "Their seals stay"
        said.append(f"That {count_noun(gone, 'file')} {_are(gone)} gone is accepted. {seals} for a later restore.")
    if left := len(found) - len(able):
        said.append(f"{count_noun(left, 'file')} cannot be accepted, and {_are(left)} left.")
    return ActionPlan(
        title=f"Accept {count_noun(len(able), 'file')} {'as gone' if gone == len(able) else 'as now'}?",
        button="Accept",
        sentences=[*said, "The reason is kept with each."],
        back=_BACK,
        state=state,
        command=_command(request, "accept", able, "--reason", WORDS),
        fields=(REASON,),
        lists=(("Accepted", [one.path for one in able]),),
        difference=("What is accepted", changed),
        final=edited > 0,
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _command(request: ViewRequest, word: str, chosen: Sequence[OpenViolation], *more: str) -> str:
    paths = [one.path for one in chosen] if len(chosen) <= _SHOWN else ["--all"]
    return request.command("violations", word, *paths, *more, own_agent=False)


def _paths(request: ViewRequest) -> list[str]:
    return [path] if (path := request.query.get("path")) else []


def _do_restore(call: ActionCall) -> ActionResult:
    asked, ask = call.request, call.agree(_restore)
    done = operations.restore(call.workspace, _paths(asked), asked.now_us, ask, agent=asked.agent)
    return _result(done, "Restored")


def _do_accept(call: ActionCall) -> ActionResult:
    asked, ask = call.request, call.agree(_accept)
    done = operations.accept(call.workspace, _paths(asked), call.words["reason"], asked.now_us, ask, agent=asked.agent)
    return _result(done, "Accepted")


def _result(done: BatchResult, what: str) -> ActionResult:
    said = [f"{what} {path}." for path in done.done]
    said += [f"What was at {path} is kept as {kept}." for path, kept in done.kept.items()]
    said += [f"Left as it is: {path}: {why}." for path, why in done.failed.items()]
    more = [f"And {len(said) - 2 * _SHOWN} more."] if len(said) > 2 * _SHOWN else []
    count = len(done.done)
    title = f"{what} {count_noun(count, 'file')}" if count else f"Nothing was {what.lower()}"
    return ActionResult(title, [*said[: 2 * _SHOWN], *more], (_BACK,), well=not done.failed)


# ── a full pass ──

_LINKS = (ViewLink("Overview", "overview"), ViewLink("Problems", "violations"))


def _reindex(request: ViewRequest) -> ActionPlan:
    return ActionPlan(
        title="Start a full pass?",
        button="Start the pass",
        sentences=[
            "Every file of memory/ is looked at, for all agents, and what is new or changed is read.",
            "Then the index is brought up to date, and MEMORY.md and the session log are written where they differ.",
            "No sealed file is changed. The running agent does the same by itself.",
        ],
        back=_LINKS[0],
        state=None,
        command=request.command("reindex", own_agent=False),
    )


def _do_reindex(call: ActionCall) -> ActionResult:
    workspace = call.workspace
    outcome = run_pass_mending(workspace, Request(now_us=call.request.now_us, should_stop=call.should_stop))
    if outcome.cliff is not None:
        said = [f"It halted: {outcome.cliff.message}. Nothing was removed.", f"What to do: {outcome.cliff.hint}."]
        return ActionResult("The pass halted", said, _LINKS, well=False)
    pages = sorted(page.path for page in outcome.pages.values() if page.changed)
    trouble = [*workspace.events, *outcome.trouble, *([outcome.held] if outcome.held else [])]
    said = [
        f"{count_noun(outcome.scanned, 'file')} looked at, {count_noun(outcome.read, 'file')} read.",
        f"Written: {', '.join(pages)}." if pages else "No page had to be written.",
        *(f"{text}." for text in trouble[:_SHOWN]),
    ]
    return ActionResult("The pass has ended", said, _LINKS, well=not trouble)


ACTIONS = (
    Action("restore", ("path",), _restore, _do_restore),
    Action("accept", ("path",), _accept, _do_accept),
    Action("reindex", (), _reindex, _do_reindex),
)
