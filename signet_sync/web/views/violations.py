"""Shows problems with files: sealed ones that changed or disappeared, with remedies; others that are not indexed."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError
from signet_sync.formats.filename import carried_token
from signet_sync.integrity.operations import Difference, difference
from signet_sync.integrity.report import hint_for
from signet_sync.pages import conflict_copies
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts, sessions
from signet_sync.sync.store import violations as violations_store
from signet_sync.sync.store.violations import Batch, OpenViolation, batches
from signet_sync.text.sentences import flatten
from signet_sync.web.commands import WORDS, command_line
from signet_sync.web.diff import Differing, differing
from signet_sync.web.links import LinkTarget
from signet_sync.web.paging import Portion, portion
from signet_sync.web.request import View, ViewRequest, WebPage
from signet_sync.web.words import Cause, cause_of

SEALED = 60  # sealed files on a page
SHOWN = 8  # files of one code, unless that code is requested
OF_CODE = 200
LONGEST = 4_000_000  # bytes of a text that is compared

# Problems that a person has to solve come first.
_ORDER = ("invalid", "violation", "tombstoned", "ignored")
_COPY = ("ignored", "conflict-copy")
# Not a problem.
_LEFT_ALONE = ("foreign-name", "temporary")
_TONES = {"invalid": "bad", "violation": "bad", "tombstoned": "warn"}


class Repair(NamedTuple):
    """A way to settle a violation: what it does, the action with its button's label, and the command.

    Without a command: the only one there is would settle other agents' violations, too.
    """

    does: str
    command: str
    label: str
    action: str
    given: dict[str, str]


class Sealed(NamedTuple):
    """An open violation and the commands that resolve it."""

    violation: OpenViolation
    repairs: list[Repair]


class Save(NamedTuple):
    """Sealed files that one pass found together: how many, and those on this page.

    `message` is set if all share it; `repairs` are commands for all at once.
    """

    found_at: str
    in_all: int
    message: str
    repairs: list[Repair]
    files: list[Sealed]


class ViolationGroup(NamedTuple):
    """Files that are not indexed for one reason; of those shown path and message. `message`: what all share, if any."""

    verdict: str
    code: str
    tone: str
    cause: Cause
    message: str
    hint: str
    files: Portion[tuple[str, str]]


def violations(request: ViewRequest) -> WebPage:
    """Shows all problems; with `code` every file of one code."""
    code = request.query.get("code")
    with reading(request.site.place) as database:
        found = [] if code else batches(database, request.agent)[::-1]
        of_all = violations_store.sizes(database)
        groups = _groups(database, request, code)
        drifted = len(entities_store.drift(database, request.agent))
        led = _led(database, request, groups)
    shown = portion([one for batch in found for one in batch.files], request.query.get("page"), SEALED)
    return WebPage(
        "violations",
        "Problems",
        {
            "saves": _saves(request, found, of_all, shown),
            "sealed": shown.total,
            "portion": shown,
            "restore_all": _restore_all(request, every=shown.total == sum(of_all.values()))
            if shown.total > 1
            else None,
            "causes": _causes(found),
            "groups": groups,
            "led": led,
            "others": sum(group.files.total for group in groups),
            "code": code,
            "drifted": drifted,
            "check": command_line(request, "check"),
        },
    )


def _led(database: Database, request: ViewRequest, groups: list[ViolationGroup]) -> dict[str, LinkTarget]:
    """Returns where files that are not indexed can be read: on the page of their session."""
    found = {}
    for path in (path for group in groups for path, _ in group.files.rows):
        token = carried_token(path)
        held = sessions.find(database, request.agent, token) if token else []
        if len(held) == 1:
            given = {"token": held[0].session_token, "session": held[0].session_id, "path": path}
            found[path] = LinkTarget("session", given)
    return found


def _saves(
    request: ViewRequest, found: list[Batch], of_all: Mapping[str, int], shown: Portion[OpenViolation]
) -> list[Save]:
    wanted = {one.path for one in shown.rows}
    saves = []
    for batch in found:
        files = [Sealed(one, repairs(request, one)) for one in batch.files if one.path in wanted]
        if files:
            messages = {one.message for one in batch.files}
            every = len(batch.files) == of_all[batch.id]
            together = _together(request, batch, every=every) if len(batch.files) > 1 else []
            message = messages.pop() if len(messages) == 1 else ""
            saves.append(Save(batch.found_at, len(batch.files), message, together, files))
    return saves


def _causes(found: list[Batch]) -> list[tuple[Cause, int]]:
    """Returns what happened to sealed files, with the number of files."""
    files = Counter(
        "replaced" if one.code == "mutated" and not one.acceptable else one.code
        for batch in found
        for one in batch.files
    )
    return [(cause_of(code), number) for code, number in files.most_common()]


def _restore_all(request: ViewRequest, *, every: bool) -> Repair:
    """Returns what restores all violations of the agent; `every`: no other agent has any."""
    command = command_line(request, "violations", "restore", "--all", own_agent=False) if every else ""
    return Repair("Restore all of them as they were sealed", command, "Restore all", "restore", {})


def _together(request: ViewRequest, batch: Batch, *, every: bool) -> list[Repair]:
    """Returns what resolves the violations of a batch at once; `every`: it has no files of other agents."""
    found, chosen, given = [], ("--batch", batch.id), {"batch": batch.id}
    if all(one.restorable for one in batch.files):
        command = command_line(request, "violations", "restore", *chosen, own_agent=False) if every else ""
        found.append(Repair("Restore all of them as they were sealed", command, "Restore them", "restore", given))
    if all(one.acceptable for one in batch.files):
        words = "Accept all of them as they are now"
        if all(one.code == "vanished" for one in batch.files):
            words = "Accept all of them as gone; their seals stay"
        command = command_line(request, "violations", "accept", *chosen, "--reason", WORDS, own_agent=False)
        found.append(Repair(words, command if every else "", "Accept them", "accept", given))
    return found


def repairs(request: ViewRequest, one: OpenViolation) -> list[Repair]:
    """Returns what resolves a violation, the harmless way first."""
    found, given = [], {"path": one.path}
    if one.restorable:
        words = "Restore the file as it was sealed" if one.code == "vanished" else "Restore the sealed content"
        command = command_line(request, "violations", "restore", one.path, own_agent=False)
        found.append(Repair(words, command, "Restore", "restore", given))
    if one.acceptable:
        words = (
            "Accept that it is gone; its seal stays"
            if one.code == "vanished"
            else "Accept and seal the present content"
        )
        command = command_line(request, "violations", "accept", one.path, "--reason", WORDS, own_agent=False)
        found.append(Repair(words, command, "Accept", "accept", given))
    if one.code == "vanished" and one.session_id:
        command = command_line(request, "remove", one.session_id, "--reason", WORDS)
        given = {"session": one.session_id, "session_token": one.session_token or ""}
        found.append(Repair("Remove the whole session for good", command, "Remove the session", "remove", given))
    return found


def _groups(database: Database, request: ViewRequest, wanted: str | None) -> list[ViolationGroup]:
    """Returns the other files that are not indexed, by reason, those to act on first; with `wanted` of one code only.

    They are those of the agent, and those whose agent is unknown.
    """
    copies = [
        (one.path, f"a copy of {one.original}, with text that is not in it")
        for one in conflict_copies.find(request.site.place.root)
        if one.agent_id == request.agent
    ]
    found = counts.problem_groups(database, request.agent, violations=False)
    if copies and not any((one.verdict, one.code) == _COPY for one in found):
        found.append(counts.ProblemGroup(*_COPY, 0, "", ""))
    return [
        _group(database, request, one, copies if (one.verdict, one.code) == _COPY else [], wanted)
        for one in sorted(found, key=_urgency)
        if wanted in (None, one.code)
    ]


def _urgency(one: counts.ProblemGroup) -> tuple[bool, int, str]:
    place = _ORDER.index(one.verdict) if one.verdict in _ORDER else len(_ORDER)
    return one.code in _LEFT_ALONE, place, one.code


def _group(
    database: Database, request: ViewRequest, one: counts.ProblemGroup, more: list[tuple[str, str]], wanted: str | None
) -> ViolationGroup:
    """Returns a group with some of its files; `more` are files of it that are in no row."""
    numbers = range(one.files + len(more))
    chosen = portion(numbers, request.query.get("page") if wanted else None, OF_CODE if wanted else SHOWN)
    rows = counts.problems_of(database, request.agent, one.verdict, one.code, chosen.first, chosen.size)
    rows += more[max(chosen.first - one.files, 0) :]
    message = "" if more else one.message
    alone = one.code in _LEFT_ALONE
    return ViolationGroup(
        one.verdict,
        one.code,
        "quiet" if alone else _TONES.get(one.verdict, "warn"),
        cause_of(one.code, one.message),
        message,
        "" if alone else hint_for(one.code, "PATH"),
        Portion(rows[: chosen.size], *chosen[1:]),
    )


def show(request: ViewRequest) -> WebPage:
    """Shows one violation: what changed, line by line. Raises `UsageError` if the path is no violation of the agent."""
    path = request.query.get("path", "")
    with reading(request.site.place) as database:
        found, changed = one_of(request, database, path)
    compared = None if changed is None or too_long(changed) else differing(changed.before(), changed.after())
    return WebPage(
        "violation",
        path.rpartition("/")[2],
        {
            "violation": found,
            "repairs": repairs(request, found),
            "changed": changed,
            "differing": compared,
            "why_not": _why_not(changed, compared),
            "show": command_line(request, "violations", "list", path, own_agent=False),
        },
    )


def one_of(request: ViewRequest, database: Database, path: str) -> tuple[OpenViolation, Difference | None]:
    """Returns an open violation of the agent, with the difference unless the sealed bytes are gone.

    Raises `UsageError`.
    """
    found = violations_store.find(database, path, request.agent)
    if found is None:
        raise UsageError(
            f"{path or 'nothing'} is not an open violation of agent {request.agent}",
            hint="see the list of problems",
            code="unknown-violation",
        )
    place = request.site.place
    limit = place.settings().max_file_bytes
    return found, difference(database, place.root, path, limit) if found.restorable else None


def too_long(changed: Difference) -> bool:
    """Returns whether a difference is too long to be shown."""
    return max(len(changed.sealed), len(changed.present or b"")) > LONGEST


def _why_not(changed: Difference | None, compared: Differing | None) -> str:
    """Returns why there is nothing to compare; empty if there is."""
    if changed is None:
        return "The sealed bytes no longer exist, so the changes are unknown."
    if changed.present is None:
        return "" if changed.state == "gone" else f"The file cannot be read now: {flatten(changed.state, 200)}."
    if compared is None:
        return "The file is too long to be compared here."
    if not compared.rows:
        return "The texts differ only in what is never shown: secrets, control characters, line endings."
    return ""


VIEWS: list[tuple[str, str, View]] = [
    ("/violations", "violations", violations),
    ("/violations/show", "violation", show),
]
