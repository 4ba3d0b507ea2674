"""Settles files that drifted, for maintainers: the file counts, or its events."""

import difflib
from typing import Literal, NamedTuple

from signet_sync.entities import observe, operations, replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.document import document_of, render, with_fields
from signet_sync.entities.events import Actor
from signet_sync.entities.observe import LEDGER
from signet_sync.entities.operations import EntityResult
from signet_sync.entities.repository import EntityRepository, FileContent
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import Finding, kind_of, parse_path
from signet_sync.storage import state_dir, writing
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact

# The name by which a maintainer refers to the event log itself if its end was lost.
LOG = "ledger"
Keep = Literal["file", "events"]


# ── drift ──


class Resolution(NamedTuple):
    """What settling one drifted file would do: `before` is on disk (None: nothing), `after` will be."""

    drift: Finding
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Returns the change as a unified diff."""
        path = self.drift.path
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        return "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))


def preview(workspace: Workspace, agent_id: str, ref: str, keep: Keep, now_us: int) -> list[Resolution]:
    """Returns what `resolve` would do with each drifted file of an entity. Raises as `resolve`."""
    with state_dir.workspace_lock(workspace.state):
        return _plan_resolutions(EntityRepository(workspace, agent_id, now_us), ref, keep)


def resolve(
    workspace: Workspace, agent_id: str, ref: str, keep: Keep, *, actor: Actor, now_us: int
) -> list[EntityResult]:
    """Ends the drift of an entity's files: the file counts, as this entity's, or what the events say.

    The text that goes stays in the event log. Raises `UsageError`: `actor-refused` for any actor but a maintainer,
    `not-drifted`, `file-unreadable`, `events-incomplete` (what is to be kept does not exist).
    """
    operations.require(actor, "maintainer", "resolve drift")
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        repo = EntityRepository(workspace, agent_id, now_us)
        wanted = _plan_resolutions(repo, ref, keep)
        done = [_settle(repo, one) for one in wanted]
        observe.examine(repo, {one.drift.id for one in wanted} - {LEDGER}, thorough=True)
        waiting = operations.update_page(repo, before)
        return [one._replace(waiting=waiting) for one in done]


def _plan_resolutions(repo: EntityRepository, ref: str, keep: Keep) -> list[Resolution]:
    observe.look(repo, None)
    name = ref.strip()
    # A missing entity needs its full id.
    wanted = LEDGER if name == LOG else name if kind_of(name) is not None else observe.locate(repo, name).id
    found = []
    for drift in (one for one in repo.drift() if one.id == wanted):
        place = parse_path(drift.path)
        if place is None or drift.code == "id-twice":
            found.append(Resolution(drift, None, None))
            continue
        seen, state = repo.read(place), repo.state(place.id).get(place.file)
        want = state.text if state is not None else None
        text = None if seen.raw is None else redact(seen.raw.decode("utf-8", "replace"))[0]
        if keep == "events" and want is None:
            message, hint = "its events do not contain the file", "keep the file, or restore the event log from a copy"
            raise UsageError(message, path=drift.path, hint=hint, code="events-incomplete")
        document = document_of(text)
        if keep == "file" and document is None:
            hint = "keep the events, or correct it first"
            raise UsageError("there is no entity file to keep", path=drift.path, hint=hint, code="file-unreadable")
        kept = want
        if keep == "file" and document is not None:
            fields = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id}
            changes = {key: value for key, value in fields.items() if document.fields.get(key) != value}
            kept = render(with_fields(document, changes)) if changes else text
        found.append(Resolution(drift, text, kept))
    if not found:
        raise UsageError("nothing of it has drifted", hint="signet-sync entity check", code="not-drifted")
    return found


def _settle(repo: EntityRepository, one: Resolution) -> EntityResult:
    """Records a decision, then carries it out."""
    drift, place, root = one.drift, parse_path(one.drift.path), repo.workspace.root
    document = document_of(one.after)
    if place is None or one.after is None or document is None:
        facts = {"accepted": drift.sha256} if drift.id == LEDGER else None
        event = repo.event("resolve", "maintainer", entity_id=drift.id or None, facts=facts, text={"was": drift.code})
        repo.append(event)
        if place is not None:  # a second folder of the entity: its files stay, under a name that no entity has
            name = f"{place.slug} (copy)"
            while not writing.move_away(root, place.folder, name):
                name += "+"
        with repo.workspace.database.transaction(durable=True):
            entities_store.clear_drift(repo.workspace.database, [drift.path])
            repo.remember_log_end()
        return operations.result_of(repo, event)
    seen, displaced = repo.read(place), one.before if one.before != one.after else None
    said = {replay.WHOLE: one.after, "displaced": displaced}
    hashes = {"found": text_sha256(one.before or ""), "left": text_sha256(one.after)}
    event = repo.event("resolve", "maintainer", entity_id=place.id, file=place.file, text=said, **hashes)
    if seen.raw is None and not seen.is_gone:  # a link, a folder, a pipe is in its place
        while not writing.move_away(root, place.path, f"{place.file}.displaced-{event.id}"):
            pass
        seen = FileContent(place)
    try:
        observe.record(repo, [(event, seen, document)])
    except observe.FileChanged:
        raise observe.busy(place.path) from None
    return operations.result_of(repo, event)
