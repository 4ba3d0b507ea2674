"""Runs a write flow step by step: looks at what is done, does the next step, looks again.

Nothing is remembered between steps: the state is observed from files, hashes and rows, so that a flow goes on after a
crash where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError
from signet_sync.formats.artifact import REPOSITORY_FIELDS, SENTENCE_VERSION, SESSION_FIELDS, repository_fields
from signet_sync.formats.body import HASH_SCOPE, normalize, text_sha256
from signet_sync.formats.filename import artifact_file_name, artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, parse, write
from signet_sync.formats.paths import MEMORY, add_links, artifact_path, targets
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso, parse_instant, parse_name_stamp
from signet_sync.sessions import journal
from signet_sync.sessions import store as results
from signet_sync.sessions.live import operations as sessions_live
from signet_sync.sessions.live import store as live
from signet_sync.storage import files, writing
from signet_sync.sync import engine, manifests
from signet_sync.sync.manifests import manifest_body
from signet_sync.sync.tombstones import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.sanitizer import SANITIZER_VERSION, sanitize_line, sanitize_normalized, sanitizer_stamp
from signet_sync.text.sentences import SentenceSubject, fallback, passes_strict

FlowKind = Literal["end", "compact"]
ArtifactState = Literal["absent", "ours", "other"]
Quality = Literal["ok", "fallback"]

VERSION = 1
# In the order in which they are written: a text before what is derived from it.
ARTIFACTS: dict[FlowKind, tuple[str, ...]] = {"end": ("transcript", "summary"), "compact": ("compaction",)}
_NULLABLE = ("session_key", "project", "harness", "started_at", "ended_at", "proposal", "headline")
# A flow has six steps; more than this many are a loop.
_MOST_STEPS = 24


def kinds_of(kind: FlowKind, bodies: Container[str]) -> tuple[str, ...]:
    """Lists the artifacts that a flow writes: a compaction first writes live turns, if any, as a transcript."""
    kinds = ARTIFACTS[kind]
    return kinds if "transcript" in kinds or "transcript" not in bodies else ("transcript", *kinds)


@dataclass(slots=True)
class Flow:
    """A session end or compaction being written. The journal's document has everything that must survive a crash.

    `wording` is a model's sentence, tried before the fallback; `reconciled`: a pass has covered the flow's files;
    `ended`: its inputs are deleted, since it was answered or refused.
    """

    held: journal.JournalledFlow
    wording: str | None = None
    sentence: str | None = None
    quality: Quality | None = None
    generated_at: str = ""
    reconciled: bool = False
    manifest_tried: bool = False
    ended: bool = False
    refusal: SignetSyncError | None = None
    bodies: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """Returns the journalled inputs."""
        return self.held.document

    def path(self, kind: str) -> str:
        """Returns the path of an artifact of the flow."""
        return artifact_path(artifact_file_name(self.document["captured_at"], self.document["token"], kind))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the artifacts that the flow writes, in order."""
        return kinds_of(self.document["kind"], self.document["bodies"])

    @property
    def paths(self) -> list[str]:
        """Lists every file that the flow writes, the manifest last."""
        return [*(self.path(kind) for kind in self.kinds), self.document["manifest"]]

    def answer(self) -> dict[str, Any]:
        """Returns the answer for the caller."""
        document = self.document
        return {
            "agent_id": document["agent_id"],
            "session_id": document["session_id"],
            "session_token": document["token"],
            **{kind: self.path(kind) for kind in reversed(self.kinds)},
            "manifest": document["manifest"],
            "sentence": self.sentence or "",
            "sentence_quality": self.quality or "fallback",
            "idempotent_replay": False,
            "redactions": document["redactions"],
        }


def flow_of(held: journal.JournalledFlow) -> Flow:
    """Makes a flow from its journal. Raises `ValueError` for one of another version."""
    document = held.document
    if document["v"] != VERSION:
        raise ValueError(f"{held.path}: of another version")
    flow = Flow(held)
    if document.get("sanitizer") != sanitizer_stamp():
        _sanitize_again(document)
    flow.bodies = {kind: document["bodies"][kind] for kind in flow.kinds}
    flow.generated_at = document["now"]
    return flow


def _sanitize_again(document: dict[str, Any]) -> None:
    """Sanitizes inputs that were journalled under other rules again, so that no secret known today is written."""
    document["bodies"] = {kind: sanitize_normalized(body) for kind, body in document["bodies"].items()}
    for name in (*_NULLABLE, *REPOSITORY_FIELDS):
        if isinstance(document.get(name), str) and name != "session_key":
            document[name] = sanitize_line(document[name])


def resume(workspace: Workspace, wanted: Callable[[Flow], bool] = lambda _: True) -> Iterator[Flow]:
    """Takes over flows whose caller died, one by one; damaged journals are reported and skipped."""
    for key in journal.keys(workspace.state.journal):
        held = None
        try:
            held = journal.take(workspace.state.journal, key)
            flow = flow_of(held) if held is not None else None
        except ValueError as error:
            workspace.events.append(f"a journal of a write flow cannot be read and is skipped: {error}")
            flow = None
        if flow is not None and wanted(flow):
            yield flow
        elif held is not None:
            held.release()


def finish(workspace: Workspace, flow: Flow, now_us: int) -> dict[str, Any]:
    """Finishes a flow, with a pass over its files; returns the answer for the caller, who holds the workspace's lock.

    Raises `UsageError` for one that can never be finished, and what `advance` raises.
    """
    try:
        advance(workspace, flow)
        if flow.refusal is None:
            outcome = engine.run_locked(workspace, Request(now_us=now_us, paths=frozenset(flow.paths), resume=False))
            if outcome.cliff is None:
                flow.reconciled = True
                advance(workspace, flow)
    except BaseException as error:
        if isinstance(error, SignetSyncError) and not error.hint:
            error.hint = "the next pass finishes what was begun: signet-sync reindex"
        raise
    finally:
        flow.held.release()
    if flow.refusal is not None:
        raise flow.refusal
    return flow.answer()


def advance(workspace: Workspace, flow: Flow) -> None:
    """Runs a flow step by step until it ends or needs a pass over the vault.

    The caller holds the workspace's lock. Raises `OSError`, `WorkspaceError`, `DatabaseError`, `RevisionConflict`;
    finished steps stay done, and the next pass continues.
    """
    for _ in range(_MOST_STEPS):
        step = None if flow.ended else _find_step(workspace, flow)
        if step is None:
            return
        step(workspace, flow)
    raise SignetSyncError("a write flow makes no progress", path=flow.paths[0])


def _find_step(workspace: Workspace, flow: Flow) -> Callable[[Workspace, Flow], None] | None:
    """Returns a flow's next step; None where a pass over its files has to come first.

    Every combination of files and rows has one, also after several failures. In quotes are the partial failures of the
    specification.
    """
    document = flow.document
    if results.find_recorded(workspace.database, document["agent_id"], document["flow_key"]) is not None:
        return _end
    if is_removed(workspace, document["agent_id"], document["token"], document["session_id"]):
        return _refuse_removed
    found = {kind: _artifact_state(workspace, flow, kind) for kind in flow.kinds}
    if "other" in found.values():
        return partial(_refuse_taken, taken=next(flow.path(kind) for kind, state in found.items() if state == "other"))
    missing = [kind for kind, state in found.items() if state == "absent"]
    if missing and flow.sentence is None:
        return _choose
    # "sentence generated, artifact write failed", "sentence generation failed, fallback path engaged", "transcript
    # written, summary failed"
    if missing:
        return partial(_write_artifact, kind=missing[0])
    # "summary/transcript written, manifest failed"
    if not (flow.manifest_tried or _link_files(workspace, flow)):
        return _write_manifest
    # "canonical writes done, DB index update failed", "artifacts+manifest written, MEMORY.md update failed"
    return _answer if flow.reconciled else None


def _artifact_state(workspace: Workspace, flow: Flow, kind: str) -> ArtifactState:
    path = flow.path(kind)
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if not isinstance(found, Found):
        if found.code == "gone":
            return "absent"
        raise WorkspaceError(found.message, path=path, hint="check its permissions; the next pass continues")
    if not found.raw:
        return "absent"  # at most an empty file that reserved the name before a crash
    return "ours" if _is_ours(flow, kind, found.raw) else "other"


def _is_ours(flow: Flow, kind: str, raw: bytes) -> bool:
    """Returns whether a file is this flow's artifact: same session, same words. If so, takes over its sentence."""
    try:
        source = parse(raw)
    except FrontmatterProblem:
        return False
    document, fields = flow.document, source.fields
    same = all(fields.get(name) == document[name] for name in ("agent_id", "session_id", "session_key"))
    if not same or fields.get("kind") != kind:
        return False
    body = normalize(source.body)
    # A flow begun under older sanitizer rules may have written this file before they changed.
    if body != flow.bodies[kind] and sanitize_normalized(body) != flow.bodies[kind]:
        return False
    quality = fields.get("memory_sentence_quality")
    if flow.sentence is None and quality in ("ok", "fallback") and fields.get("memory_sentence"):
        flow.sentence, flow.quality = fields["memory_sentence"], cast(Quality, quality)
        flow.generated_at = fields.get("memory_sentence_generated_at") or flow.generated_at
    return True


def _link_files(workspace: Workspace, flow: Flow) -> bool:
    known = manifests.read(workspace.root, flow.document["manifest"], workspace.settings.max_file_bytes)
    if known is None:
        return False
    _, document, fields = known
    named = set(targets(document.body))
    return all(flow.path(kind) in named and not _is_newer(fields, flow, kind) for kind in flow.kinds)


def _is_newer(fields: dict[str, Any], flow: Flow, kind: str) -> bool:
    """Returns whether the flow's artifact is newer than the one that the manifest links."""
    present = fields.get(f"{kind}_path")
    if present == flow.path(kind):
        return False
    named = artifact_name((present or "").removeprefix(f"{MEMORY}/"))
    if named is None:
        return True
    return max(parse_name_stamp(named.stamp), default=0) < (parse_instant(flow.document["captured_at"]) or 0)


# ── the steps ──


def _choose(workspace: Workspace, flow: Flow) -> None:
    flow.sentence, flow.quality = choose_sentence(flow)
    if flow.quality == "fallback" and (flow.document["proposal"] or flow.wording):
        workspace.events.append(
            "the proposed sentence does not have 12 to 48 words or names nothing of the session;"
            " one made by rules is used instead"
        )


def choose_sentence(flow: Flow) -> tuple[str, Quality]:
    """Returns the flow's sentence: the caller's or the model's if it passes the gate, else one made by rules."""
    document = flow.document
    contexts = subjects_of(document, flow.bodies)
    offered = [said for said in (document["proposal"], flow.wording, document["headline"]) if said]
    passing = (said for said in offered if passes_strict(said, *contexts))
    said = next(passing, None) or fallback(contexts[-1])
    return said, "ok" if said in (document["proposal"], flow.wording) else "fallback"


def subjects_of(document: Mapping[str, Any], bodies: Mapping[str, str]) -> list[SentenceSubject]:
    """Returns what a sentence about new artifacts is judged by, for each of their texts."""
    day = (document["ended_at"] or document["captured_at"])[:10]
    return [SentenceSubject(body, document["project"], kind, day) for kind, body in bodies.items()]


def _write_artifact(workspace: Workspace, flow: Flow, kind: str) -> None:
    document, body = flow.document, flow.bodies[kind]
    repository = repository_fields(*(document.get(name) for name in REPOSITORY_FIELDS))
    fields: dict[str, Any] = {
        "kind": kind,
        **{name: document[name] for name in SESSION_FIELDS},
        **{name: document[name] for name in ("captured_at", "started_at", "ended_at")},
        "manifest_path": document["manifest"],
        "source_node_id": None,
        "content_sha256": text_sha256(body),
        "hash_scope": HASH_SCOPE,
        "memory_sentence": flow.sentence,
        "memory_sentence_version": SENTENCE_VERSION,
        "memory_sentence_quality": flow.quality,
        "memory_sentence_generated_at": flow.generated_at,
        **repository,
    }
    if kind == "transcript":
        # The oldest rules applied to the words: later comparisons depend on them.
        rules = document.get("sanitizer", sanitizer_stamp()).partition(" ")[0]
        fields |= {"sanitizer_version": SANITIZER_VERSION, "sanitizer_rules": rules}
    left = files.status_of(workspace.root, flow.path(kind))
    if left is not None and not left.st_size:
        writing.unlink(workspace.root, flow.path(kind))
    with suppress(FileExistsError):  # the next observation determines whose file it is
        writing.create_once(workspace.root, flow.path(kind), write(fields, body))


def _write_manifest(workspace: Workspace, flow: Flow) -> None:
    flow.manifest_tried = True
    document = flow.document
    repository = repository_fields(*(document.get(name) for name in REPOSITORY_FIELDS))
    links = [(kind, flow.path(kind)) for kind in reversed(flow.kinds)]
    if files.status_of(workspace.root, document["manifest"]) is None:
        named = artifact_name(document["manifest"].removeprefix(f"{MEMORY}/"))
        fields: dict[str, Any] = {
            "kind": "manifest",
            **{name: document[name] for name in SESSION_FIELDS},
            "captured_at": iso(min(parse_name_stamp(named.stamp), default=0)) if named is not None else "",
            **{name: document[name] for name in ("started_at", "ended_at")},
            **{f"{kind}_path": path for kind, path in links},
            "memory_md_refs": [],
            "updated_at": document["now"],
            "revision": 1,
            **repository,
        }
        with suppress(FileExistsError):
            writing.create_once(workspace.root, document["manifest"], manifests.text_of(fields, manifest_body(links)))
            return

    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str] | None:
        if fields.get("session_id") != document["session_id"]:
            return None  # another session's manifest: the next full pass writes ours
        newer = [(kind, path) for kind, path in links if _is_newer(fields, flow, kind)]
        linked = add_links(body, links)
        if not newer and linked == body:
            return None
        fields.update({f"{kind}_path": path for kind, path in newer})
        if newer and document["ended_at"]:
            ends = fields.get("ended_at"), document["ended_at"]
            fields["ended_at"] = max(ends, key=lambda text: parse_instant(text or "") or 0) or document["ended_at"]
        fields.update(repository if newer else {})
        fields["updated_at"] = document["now"]
        return fields, linked

    manifests.swap(workspace, document["manifest"], change)


def _answer(workspace: Workspace, flow: Flow) -> None:
    """Deletes the live turns that the files hold now, and records the answer."""
    document = flow.document
    # An earlier process may have died between a file of ours and the fsync of its folder.
    writing.sync_folders(workspace.root, {MEMORY})
    if document["live"]:
        key = document["session_key"] or document["session_id"]
        sessions_live.forget(workspace, document["agent_id"], key, document["live"])
    with workspace.database.transaction(durable=True):
        if document["kind"] == "end":
            live.reset_read(workspace.database, live.make_ending(document))
        results.record(
            workspace.database,
            agent_id=document["agent_id"],
            flow_key=document["flow_key"],
            kind=document["kind"],
            session=(document["token"], document["session_id"]),
            answer=results.RecordedAnswer(document["request"], flow.answer()),
            at=document["now"],
        )


def _refuse_removed(workspace: Workspace, flow: Flow) -> None:
    flow.refusal = refuse_removed_session(flow.document["session_id"])
    _end(workspace, flow)


def _refuse_taken(workspace: Workspace, flow: Flow, taken: str) -> None:
    """Ends a flow that can never be finished. The file of other content under its name is left as it is."""
    flow.refusal = UsageError(
        "another artifact with different content has this name",
        path=taken,
        hint="it was not changed; end the session with another captured_at",
        code="name-taken",
    )
    workspace.events.append(f"{taken}: a session end was refused: {flow.refusal.message}")
    _end(workspace, flow)


def _end(workspace: Workspace, flow: Flow) -> None:
    flow.held.finish()
    flow.ended = True
