"""Writes the end or a compaction of a session: sanitize, journal, run the write flow, return the recorded answer."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.digest.outcome import ModelDigest, outcome
from signet_sync.digest.summary import SEGMENTS, headline, join_outcomes
from signet_sync.digest.summary import summary as digest_summary
from signet_sync.errors import Halted, UsageError, WorkspaceError
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.body import normalize, text_sha256, utf8
from signet_sync.formats.filename import artifact_file_name, artifact_name
from signet_sync.formats.ids import derive_token
from signet_sync.formats.paths import MEMORY, artifact_path
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.sessions import flow as sessions_flow
from signet_sync.sessions import journal
from signet_sync.sessions import store as results
from signet_sync.sessions.flow import ARTIFACTS, Flow, kinds_of
from signet_sync.sessions.input import CompactionInput, SessionInput, write_identity
from signet_sync.sessions.live import operations as sessions_live
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.turns import insert_live, new_words, render
from signet_sync.sessions.model_proposals import Propose
from signet_sync.storage import files, state_dir, writing
from signet_sync.storage.locations import now_us as clock_us
from signet_sync.sync import engine
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.index_records import Row
from signet_sync.sync.store import artifacts, counts, violations
from signet_sync.sync.tombstones import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.passages import asks_only_memory
from signet_sync.text.redaction import alike
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line_counted, sanitizer_stamp

# Seconds for which a session end waits for other writers, for example while a first index is built.
LOCK_TIMEOUT = 600.0
# Bytes reserved for frontmatter and fences in the largest file that is read.
HEADROOM = 128 * 1024
# A generated moment whose names are taken is moved on by at most this many milliseconds.
_MOST_MOVES = 10_000


def write(
    workspace: Workspace, given: SessionInput | CompactionInput, *, now_us: int, propose: Propose | None = None
) -> dict[str, Any]:
    """Writes the end of a session: transcript, summary, manifest, rows and pages; or a compaction of it.

    Returns the answer of `session end`, of a replay the first answer with `idempotent_replay`; that writes nothing. A
    model is asked once a session, at its end, for what its caller does not give. Raises `UsageError`
    (`idempotency-conflict`, `removed-session`, `name-taken`, `input-invalid`), `WorkspaceError`, `DatabaseError`,
    `OSError`, and `Halted` where the vault's files are missing. After an error no file is half-written, and the next
    pass finishes what was journalled.
    """
    ending = _sanitize(workspace, given, now_us)
    if problem := writing.explain_unwritable(workspace.root, MEMORY):
        hint = "check its permissions; nothing was written"
        raise WorkspaceError(f"the vault cannot be written: {problem}", path=MEMORY, hint=hint)
    is_given = ending.bodies.get("summary") is not None and ending.proposal is not None
    with _lock_workspace(workspace):
        answer = ending.finish_interrupted() or ending.find_answer()
        new = ending.read_new_texts() if answer is None else None
        if new is None:
            return answer or ending.repeat_newest()
        flow = ending.begin(new, None)
        if propose is None or given.kind == "compact" or given.more or is_given:
            return sessions_flow.finish(workspace, flow, now_us)
    # The model may be slow. The inputs are journalled and the lock is free; if this process dies, a pass finishes the
    # flow without the model.
    try:
        offered = propose(new.words, project=ending.identity["project"], harness=ending.identity["harness"])
    except BaseException:
        flow.held.release()
        raise
    with _lock_workspace(workspace, flow):
        answer = ending.find_answer()
        new = ending.read_new_texts() if answer is None else None
        if new is None:
            return answer or ending.repeat_newest()
        return sessions_flow.finish(workspace, ending.begin(new, offered), now_us)


@contextmanager
def _lock_workspace(workspace: Workspace, flow: Flow | None = None) -> Iterator[None]:
    """Takes the workspace's lock and only then releases a flow's journal, so that no pass takes over the flow."""
    try:
        with state_dir.workspace_lock(workspace.state, LOCK_TIMEOUT):
            if flow is not None:
                flow.held.release()
            yield
    finally:
        if flow is not None:
            flow.held.release()


def refresh(workspace: Workspace, agent_id: str, token: str) -> None:
    """Finishes interrupted flows of a token, and updates the index from its files.

    Another process may have just written some of them, or have died while writing.
    """
    now_us = clock_us()
    with state_dir.workspace_lock(workspace.state, LOCK_TIMEOUT):
        of_token = (agent_id, token)
        _finish_earlier(workspace, lambda flow: (flow.document["agent_id"], flow.document["token"]) == of_token, now_us)
        _index(workspace, agent_id, token, now_us)


# ── from raw input to a sanitized request ──


def _sanitize(workspace: Workspace, given: SessionInput | CompactionInput, now_us: int) -> "_Ending":
    """Returns a request with sanitized values, and what it is known by if it comes again."""
    found = Counter[str]()
    bodies, proposal = _clean_bodies(given, found), _clean_line(given.memory_sentence, found)
    for name in ("session_id", "session_key", "project", "harness", *REPOSITORY_FIELDS):
        _clean_line(getattr(given, name), found)  # called only to count its redactions
    written = write_identity(given)
    identity: dict[str, Any] = {"agent_id": given.agent_id, **written}
    identity |= {name: getattr(given, name) for name in ("captured_at", "started_at", "ended_at")}
    flow_key, content = _identify(given, identity, bodies, proposal)
    return _Ending(
        workspace=workspace,
        given=given,
        now_us=now_us,
        # Not in the content: a request that is repeated after its repository was moved or deleted is the same.
        identity=identity | sessions_live.find_repository(given, written),
        token=derive_token(given.agent_id, identity["session_key"], identity["session_id"]),
        bodies=bodies,
        proposal=proposal,
        flow_key=flow_key,
        content=content,
        redactions=found,
    )


def _clean_bodies(given: SessionInput | CompactionInput, found: Counter[str]) -> dict[str, str | None]:
    if isinstance(given, SessionInput):
        return {"transcript": _clean(given.transcript, found), "summary": _clean(given.summary or "", found) or None}
    if not (compaction := _clean(given.compaction, found)):
        raise UsageError("the compaction is empty", hint="give its text", code="input-invalid")
    return {"compaction": compaction}


def _identify(
    given: SessionInput | CompactionInput,
    identity: Mapping[str, Any],
    bodies: Mapping[str, str | None],
    proposal: str | None,
) -> tuple[str, str]:
    """Returns the name of a request's flow, and what a request under the same name must say again."""
    hashes = {name: text_sha256(body) if body is not None else None for name, body in bodies.items()}
    if given.idempotency_key is not None:
        key = _digest(["key", given.kind, given.agent_id, given.idempotency_key])
        return key[:32], _digest([given.kind, identity, hashes, proposal, given.tail])
    names = [given.agent_id, identity["session_key"], identity["session_id"]]
    content = _digest(["body", given.kind, *names, hashes, given.tail])
    return content[:32], content


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def _clean(text: str, found: Counter[str]) -> str:
    clean, redacted = sanitize_counted(text)
    found.update(redacted)
    return clean


def _clean_line(text: str | None, found: Counter[str]) -> str | None:
    if text is None:
        return None
    clean, redacted = sanitize_line_counted(text)
    found.update(redacted)
    return " ".join(clean.split()) or None


# ── from a request to its answer ──


class _NewTexts(NamedTuple):
    """The texts to write: words, and for a compaction the live turns as a transcript (`segment`).

    `live` has the marks of the live turns that files hold after that, by session id.
    """

    words: str
    segment: str = ""
    live: Mapping[str, list[str]] = {}


@dataclass(slots=True)
class _Ending:
    """One request, sanitized but for `given`; `rows` are the session's artifacts, read under the workspace's lock.

    `flow_key` is the name of its flow, `content` what a request under the same name must say again.
    """

    workspace: Workspace
    given: SessionInput | CompactionInput
    now_us: int
    identity: dict[str, Any]
    token: str
    bodies: dict[str, str | None]
    proposal: str | None
    flow_key: str
    content: str
    redactions: dict[str, int]
    rows: tuple[Row, ...] = ()

    @property
    def session(self) -> tuple[str, str, str]:
        return self.identity["agent_id"], self.token, self.identity["session_id"]

    # ── what is there already ──

    def finish_interrupted(self) -> dict[str, Any] | None:
        """Finishes interrupted endings of this session; returns the answer if this request is among them.

        Until then the rows do not show what is kept: an ending that is compared with them while half-written would
        never be completed.
        """

        def concerns(flow: Flow) -> bool:
            document = flow.document
            session = document["agent_id"], document["token"], document["session_id"]
            return session == self.session or document["flow_key"] == self.flow_key

        return _finish_earlier(self.workspace, concerns, self.now_us).get(self.content)

    def find_answer(self) -> dict[str, Any] | None:
        """Returns the recorded answer. Raises `UsageError` if its key has other content."""
        known = results.find_recorded(self.workspace.database, self.identity["agent_id"], self.flow_key)
        if known is not None and known.request_sha256 != self.content:
            raise UsageError(
                "this idempotency key was used for other content",
                hint="nothing was written; use another key for each session end",
                code="idempotency-conflict",
            )
        return {**known.document, "idempotent_replay": True} if known is not None else None

    def repeat_newest(self) -> dict[str, Any]:
        """Returns the answer for a request with nothing new: the newest segment's files."""
        kinds = tuple(reversed(ARTIFACTS[self.given.kind]))
        newest = {kind: next((row for row in reversed(self.rows) if row.source_kind == kind), None) for kind in kinds}
        lead = next(row for row in newest.values() if row is not None)
        manifest = artifacts.manifest_of(self.workspace.database, *self.session)
        return {
            "agent_id": self.identity["agent_id"],
            "session_id": self.identity["session_id"],
            "session_token": self.token,
            **{kind: row.source_path if row is not None else None for kind, row in newest.items()},
            "manifest": manifest[0] if manifest else lead.manifest_path,
            "sentence": lead.memory_sentence or "",
            "sentence_quality": lead.memory_sentence_quality or "fallback",
            "redactions": self.redactions,
            "idempotent_replay": True,
        }

    def read_new_texts(self) -> _NewTexts | None:
        """Returns the texts to write; None where all of them are kept already, live turns included."""
        workspace, identity = self.workspace, self.identity
        _index(workspace, identity["agent_id"], self.token, self.now_us)
        if is_removed(workspace, *self.session):
            raise refuse_removed_session(identity["session_id"])
        sessions_live.settle(workspace)
        self.rows = tuple(artifacts.session_rows(workspace.database, *self.session))
        # The times decide which live turns are covered.
        at = {"captured_at": identity["captured_at"] or iso(self.now_us), "now": iso(self.now_us)}
        ending = live.make_ending({**identity, **at})
        covered = live.list_covered(workspace.database, ending) if not self.given.more else []
        said = [sessions_live.make_spoken_turn(turn) for _, turn in covered]
        segments = [(row.content, row.membership_us) for row in self.rows if row.source_kind == "transcript"]
        absent = sessions_live.find_missing_turns(said, segments, self.bodies.get("transcript") or "")
        if self.given.kind == "compact":
            body = self.bodies["compaction"] or ""
            if any(row.source_kind == "compaction" and alike(row.content, body) for row in self.rows):
                return None
            return _NewTexts(body, render(said[place] for place in absent), sessions_live.marks_of(covered))
        transcript, summary = self.bodies["transcript"] or "", self.bodies["summary"]
        if not transcript and summary is None and not absent:
            raise UsageError(
                "there is neither a transcript nor a summary",
                hint="give the session's transcript as text",
                code="input-invalid",
            )
        # A tail is compared word by word, and any difference is new: but for one that was redacted later.
        kept = [row for row in self.rows if row.source_kind == "transcript" and alike(row.content, transcript)]
        is_kept = self.given.tail and any(violations.is_redacted(workspace.database, row.source_path) for row in kept)
        rest = "" if is_kept else new_words(transcript, [text for text, _ in segments], tail=self.given.tail)
        words = normalize(insert_live(rest, [said[place] for place in absent], tail=self.given.tail))
        summaries = [row.content for row in self.rows if row.source_kind == "summary"]
        marks = sessions_live.marks_of(covered)
        if segments and not words and (summary is None or any(alike(text, summary) for text in summaries)):
            key = identity["session_key"] or identity["session_id"]
            sessions_live.forget(workspace, identity["agent_id"], key, marks)
            return None
        return _NewTexts(words, live=marks)

    # ── what is written ──

    def begin(self, new: _NewTexts, offered: ModelDigest | None) -> Flow:
        """Journals what is to be written. Raises `UsageError` for a text that no file may hold."""
        captured_at = self._choose_moment(new)
        bodies, said = self._make_bodies(new, offered, captured_at)
        limit = self.workspace.settings.max_file_bytes
        if any(len(utf8(body)) > max(limit - HEADROOM, limit // 2) for body in bodies.values()):
            raise UsageError(
                f"the text is too long for a file of {limit} bytes",
                hint="end the session in parts (transcript_is: tail), or raise reconcile.max_file_bytes",
                code="input-invalid",
            )
        document = {
            "v": sessions_flow.VERSION,
            "sanitizer": sanitizer_stamp(),
            "kind": self.given.kind,
            **self.identity,
            "captured_at": captured_at,
            "token": self.token,
            "manifest": self._choose_manifest(captured_at),
            "bodies": bodies,
            "live": new.live,
            "proposal": self.proposal,
            "headline": said,
            "now": iso(self.now_us),
            "flow_key": self.flow_key,
            "request": self.content,
            "redactions": self.redactions,
        }
        try:
            flow = sessions_flow.flow_of(journal.begin(self.workspace.state.journal, self.flow_key, document))
        except BlockingIOError:
            raise WorkspaceError(
                "another process is writing this session end", hint="wait for it to finish and try again", code="busy"
            ) from None
        flow.wording = offered.sentence if offered is not None else None
        return flow

    def _make_bodies(
        self, new: _NewTexts, offered: ModelDigest | None, captured_at: str
    ) -> tuple[dict[str, str], str | None]:
        """Returns the texts to write, and the fallback sentence made from this and earlier segments.

        The summary is the caller's, else one of what rules found; the items that a model chose stand in place of
        theirs.
        """
        if self.given.kind == "compact":
            return {"compaction": new.words, **({"transcript": new.segment} if new.segment else {})}, None
        identity = self.identity
        earlier = [row.content for row in self.rows if row.source_kind == "transcript" and row.content != new.words]
        before = [outcome(text) for text in earlier[-SEGMENTS:]]
        found = outcome(new.words)
        if offered is not None:
            tried = tuple(item for item in found.items if item.rule == "tried")
            found = found._replace(items=offered.items + tried, chosen=True)
        about = {"project": identity["project"], "harness": identity["harness"]}
        summary = self.bodies.get("summary") or digest_summary(
            found, **about, headless=self.given.headless, looks_up=asks_only_memory(new.words)
        )
        bodies = {"transcript": new.words, "summary": _clean(summary, Counter())}
        subjects = sessions_flow.subjects_of({**identity, "captured_at": captured_at}, bodies)
        return bodies, _clean_line(headline(join_outcomes(before, found), subjects), Counter())

    def _choose_moment(self, new: _NewTexts) -> str:
        """Returns the `captured_at` of the new artifacts: the caller's, or a generated one.

        A generated one is now, but later than everything that the session has, since requests may overtake each other
        and clocks may be set back. The caller's is used as it is, and the flow is refused if another artifact has its
        name.
        """
        if given := self.identity["captured_at"]:
            return iso(parse_instant(given) or 0)
        behind = max((row.captured_us + 1000 for row in self.rows if row.content != new.words), default=self.now_us)
        ours = {row.source_path for row in self.rows if row.content == new.words}
        kinds = kinds_of(self.given.kind, {"transcript"} if new.segment else ())
        return self._find_free_moment(max(self.now_us, behind), kinds, ours)

    def _choose_manifest(self, captured_at: str) -> str:
        """Returns the path of the session's manifest; a new one is named by the session's first `captured_at`.

        Sessions with the same key share a token, so another session's manifest may have the name.
        """
        manifest = artifacts.manifest_of(self.workspace.database, *self.session)
        if manifest is not None:
            return manifest[0]
        first = parse_instant(min([captured_at, *(iso(row.captured_us) for row in self.rows)])) or 0
        return artifact_path(artifact_file_name(self._find_free_moment(first, ["manifest"]), self.token, "manifest"))

    def _find_free_moment(self, first_us: int, kinds: Iterable[str], ours: Container[str] = ()) -> str:
        """Returns the first moment, on by milliseconds, whose names are free, or one of them of a file of `ours`."""
        for move in range(_MOST_MOVES):
            moment = iso(first_us + move * 1000)
            paths = [artifact_path(artifact_file_name(moment, self.token, kind)) for kind in kinds]
            taken = [path for path in paths if files.status_of(self.workspace.root, path) is not None]
            if not taken or any(path in ours for path in taken):
                return moment
        raise WorkspaceError("no free name for this session end", hint="give another captured_at", code="name-taken")


def _finish_earlier(workspace: Workspace, concerns: Callable[[Flow], bool], now_us: int) -> dict[str, dict[str, Any]]:
    """Finishes interrupted flows; returns their answers by what was asked. Who asks again is refused again."""
    answers = {}
    for flow in sessions_flow.resume(workspace, concerns):
        with suppress(UsageError):
            answers[flow.document["request"]] = sessions_flow.finish(workspace, flow, now_us)
    return answers


def _index(workspace: Workspace, agent_id: str, token: str, now_us: int) -> None:
    """Updates the index from the files of a token."""
    names = files.list_names(workspace.root, MEMORY, "")
    if not any(map(artifact_name, names)) and counts.count_indexed(workspace.database):
        raise Halted(
            "memory/ holds none of the indexed files",
            path=MEMORY,
            hint="nothing was written; bring memory/ back, or first: signet-sync reindex --accept-removals",
        )
    paths = {artifact_path(name) for name in names if token in name}
    paths.add(tombstones_files.path_of(agent_id, token))
    engine.index_paths(workspace, Request(now_us=now_us, paths=frozenset(paths)))
