"""Writes the end or a compaction of a session: sanitize, journal, run the write flow, return the recorded answer."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.digest.outcome import ModelDigest, outcome
from signet_sync.digest.sentence import SEGMENTS, headline, join_outcomes
from signet_sync.digest.summary import summary as digest_summary
from signet_sync.errors import Halted, SignetSyncError, UsageError, WorkspaceError
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.body import body_sha256, normalize, utf8
from signet_sync.formats.filename import artifact_file_name, artifact_name
from signet_sync.formats.ids import derive_token
from signet_sync.formats.paths import MEMORY, artifact_path
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.sessions import flow as sessions_flow
from signet_sync.sessions import journal
from signet_sync.sessions import live as sessions_live
from signet_sync.sessions.flow import Flow
from signet_sync.sessions.input import CompactionInput, SessionInput, write_identity
from signet_sync.sessions.live_turns import SpokenTurn, insert_live, render
from signet_sync.sessions.states import (
    ARTIFACTS,
    FlowKind,
    Propose,
    cut_parts,
    kinds_of,
    new_words,
    refusal_key,
)
from signet_sync.sessions.store import live, results
from signet_sync.storage import files, state_dir
from signet_sync.storage.locations import now_us
from signet_sync.sync import engine
from signet_sync.sync.index_records import Row
from signet_sync.sync.store import artifacts, counts, violations
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.tombstones.files import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.passages import asks_only_memory
from signet_sync.text.redacted_match import alike
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line_counted, sanitizer_stamp
from signet_sync.text.sentences import SentenceSubject
from signet_sync.text.turn_words import close_fences

# Seconds for which a session end waits for other writers, for example while a first index is built.
LOCK_TIMEOUT = 600.0
# Bytes reserved for frontmatter and fences in the largest file that is read.
HEADROOM = 128 * 1024
# A generated `captured_at` whose names are taken is moved on by at most this many milliseconds.
_MOST_MOVES = 10_000
_RETRY_SECONDS = 0.1  # seconds


@dataclass(slots=True)
class _SanitizedRequest:
    """A sanitized input; raw text is not passed on."""

    kind: FlowKind
    identity: dict[str, Any]
    token: str
    bodies: dict[str, str | None]
    proposal: str | None
    tail: bool
    flow_key: str
    request: str
    redactions: dict[str, int] = field(default_factory=dict)
    captured_us: int | None = None
    more: bool = False
    headless: bool = False

    @property
    def session(self) -> tuple[str, str, str]:
        return self.identity["agent_id"], self.token, self.identity["session_id"]


def end(workspace: Workspace, given: SessionInput, *, now_us: int, propose: Propose | None = None) -> dict[str, Any]:
    """Writes the end of a session: transcript, summary, manifest, rows and pages; returns the answer of `session end`.

    A replay returns the first answer with `idempotent_replay`, and writes nothing. Raises `UsageError`
    (`idempotency-conflict`, `removed-session`, `name-taken`, `input-invalid`), `WorkspaceError`, `DatabaseError`,
    `OSError`, and `Halted` where the vault's files are missing. After an error no file is half-written, and the next
    pass finishes what was journalled.
    """
    return _run(workspace, _session_request(given), now_us, propose)


def compact(
    workspace: Workspace, given: CompactionInput, *, now_us: int, propose: Propose | None = None
) -> dict[str, Any]:
    """Writes a compaction artifact of a session, as `end` does."""
    return _run(workspace, _compaction_request(given), now_us, propose)


# ── from raw input to a sanitized request ──


def _session_request(given: SessionInput) -> _SanitizedRequest:
    counts = Counter[str]()
    transcript = _clean(given.transcript, counts)
    if given.rendered and "[REDACTED:" in transcript:
        transcript = _clean(close_fences(transcript), counts)
    summary = _clean(given.summary, counts) if given.summary is not None else None
    bodies = {"transcript": transcript, "summary": summary or None}
    return replace(_request("end", given, bodies, given.tail, counts), more=given.more, headless=given.headless)


def _compaction_request(given: CompactionInput) -> _SanitizedRequest:
    counts = Counter[str]()
    body = _clean(given.compaction, counts)
    if not body:
        raise UsageError("the compaction is empty", hint="give its text", code="input-invalid")
    return _request("compact", given, {"compaction": body}, False, counts)


def _request(
    kind: FlowKind,
    given: SessionInput | CompactionInput,
    bodies: dict[str, str | None],
    tail: bool,
    counts: Counter[str],
) -> _SanitizedRequest:
    written = write_identity(given)
    identity: dict[str, Any] = {"agent_id": given.agent_id, **written}
    for name in ("session_id", "session_key", "project", "harness", *REPOSITORY_FIELDS):
        _clean_line(getattr(given, name), counts)  # called only to count its redactions
    token = derive_token(given.agent_id, identity["session_key"], identity["session_id"])
    identity |= {name: getattr(given, name) for name in ("captured_at", "started_at", "ended_at")}
    proposal = _clean_line(given.memory_sentence, counts)
    hashes = {name: body_sha256(body) if body is not None else None for name, body in bodies.items()}
    content = _digest([kind, identity, hashes, proposal, tail])
    if given.idempotency_key is not None:
        flow_key = _digest(["key", kind, given.agent_id, given.idempotency_key])
    else:
        names = [given.agent_id, identity["session_key"], identity["session_id"]]
        flow_key = _digest(["body", kind, *names, hashes, tail])
        content = flow_key
    # A request that is repeated after its repository was moved or deleted is the same.
    identity |= sessions_live.find_repository(given, written)
    captured = parse_instant(given.captured_at) if given.captured_at else None
    return _SanitizedRequest(kind, identity, token, bodies, proposal, tail, flow_key[:32], content, counts, captured)


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def _clean(text: str, counts: Counter[str]) -> str:
    clean, found = sanitize_counted(text)
    counts.update(found)
    return clean


def _clean_line(text: str | None, counts: Counter[str]) -> str | None:
    if text is None:
        return None
    clean, found = sanitize_line_counted(text)
    counts.update(found)
    return " ".join(clean.split()) or None


# ── from a request to its answer ──


def _run(workspace: Workspace, request: _SanitizedRequest, now_us: int, propose: Propose | None) -> dict[str, Any]:
    _require_writable(workspace)
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            return _answer_request(workspace, request, now_us, propose)
        except WorkspaceError as error:
            if error.code != "busy" or time.monotonic() >= deadline:
                raise
        # Another process is waiting for its model's proposals for the same session end: its answer will be returned.
        time.sleep(_RETRY_SECONDS)


def _answer_request(
    workspace: Workspace, request: _SanitizedRequest, now_us: int, propose: Propose | None
) -> dict[str, Any]:
    offered: ModelDigest | None = None
    has_asked = propose is None or not _is_asked_about(request)
    held: journal.JournalledFlow | None = None
    while True:
        with _locked(workspace, held):
            answer = _finish_earlier(workspace, request, now_us) if held is None else None
            answer = answer or _find_answer(workspace, request)
            if answer is not None:
                return answer
            _refresh(workspace, request.identity["agent_id"], request.token, now_us)
            _refuse_removed(workspace, request)
            sessions_live.settle(workspace)
            segments = _segments(workspace, request)
            new = _new_texts(workspace, request, segments, now_us)
            if new is None:
                return _answer_unchanged(workspace, request, segments)
            if has_asked:
                return _write(workspace, request, new, segments, offered, now_us)
            if len(_pieces(workspace, new)) == 1:
                held = _begin(workspace, request, new, segments, now_us)
        # The model may be slow. The inputs are journalled and the lock is free; if this process dies, a pass finishes
        # the flow without the model. A transcript that is too long for one file is journalled later, part by part.
        try:
            assert propose is not None
            offered = propose(new.words, project=request.identity["project"], harness=request.identity["harness"])
        except BaseException:
            if held is not None:
                held.release()
            raise
        has_asked = True


def _is_asked_about(request: _SanitizedRequest) -> bool:
    """Returns whether a model is asked: once a session, at its end, for what its caller does not give."""
    given = request.bodies.get("summary") is not None and request.proposal is not None
    return request.kind == "end" and not request.more and not given


@contextmanager
def _locked(workspace: Workspace, held: journal.JournalledFlow | None) -> Iterator[None]:
    """Takes the workspace's lock and only then releases our journal, so that no pass takes over the flow."""
    try:
        with state_dir.workspace_lock(workspace.state, LOCK_TIMEOUT):
            if held is not None:
                held.release()
            yield
    finally:
        if held is not None:
            held.release()


def _finish_earlier(workspace: Workspace, request: _SanitizedRequest, now_us: int) -> dict[str, Any] | None:
    """Finishes interrupted endings of this session; returns the answer if this request is among them.

    Until then the rows do not show what is kept: an ending that is compared with them while half-written would never be
    completed.
    """

    def concerns(flow: Flow) -> bool:
        document = flow.document
        session = document["agent_id"], document["token"], document["session_id"]
        return session == request.session or document["flow_key"] == request.flow_key

    answer = None
    for flow in sessions_flow.resume(workspace, concerns):
        with suppress(UsageError):  # the refusal is recorded, and found again if this is the same request
            finished = _finish(workspace, flow, now_us)
            if flow.document["request"] == request.request:
                answer = finished
    return answer


def _find_answer(workspace: Workspace, request: _SanitizedRequest) -> dict[str, Any] | None:
    """Returns this request's recorded answer. Raises `UsageError` if it was refused or its key has other content."""
    agent_id = request.identity["agent_id"]
    known = results.find_recorded(workspace.database, agent_id, request.flow_key)
    if known is None:
        _raise_refusal(workspace, request)
        return None
    if known.request_sha256 != request.request:
        raise UsageError(
            "this idempotency key was used for other content",
            hint="nothing was written; use another key for each session end",
            code="idempotency-conflict",
        )
    return _replay_answer(workspace, known.document)


def _replay_answer(workspace: Workspace, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an earlier answer; it names no file that is gone since."""
    named = [kind for kind in (*ARTIFACTS["end"], *ARTIFACTS["compact"], "manifest") if answer.get(kind)]
    gone = [kind for kind in named if files.status_of(workspace.root, answer[kind]) is None]
    return {**answer, **dict.fromkeys(gone), "idempotent_replay": True}


def _raise_refusal(workspace: Workspace, request: _SanitizedRequest) -> None:
    if request.captured_us is None:
        return  # a generated `captured_at` is always free
    key = refusal_key(request.flow_key, iso(request.captured_us))
    known = results.find_recorded(workspace.database, request.identity["agent_id"], key)
    if known is not None and known.request_sha256 == request.request:
        refusal = known.document
        raise UsageError(refusal["message"], path=refusal.get("path"), hint=refusal["hint"], code=refusal["code"])


def refresh(workspace: Workspace, agent_id: str, token: str) -> None:
    """Finishes interrupted flows of a token, and updates the index from its files.

    Another process may have just written some of them, or have died while writing.
    """

    def concerns(flow: Flow) -> bool:
        return (flow.document["agent_id"], flow.document["token"]) == (agent_id, token)

    instant = now_us()
    with state_dir.workspace_lock(workspace.state, LOCK_TIMEOUT):
        for flow in sessions_flow.resume(workspace, concerns):
            with suppress(UsageError):  # the refusal is recorded
                _finish(workspace, flow, instant)
        _refresh(workspace, agent_id, token, instant)


def _refresh(workspace: Workspace, agent_id: str, token: str, now_us: int) -> None:
    names = files.listing(workspace.root, MEMORY, "")
    if not any(map(artifact_name, names)) and counts.count_indexed(workspace.database):
        raise Halted(
            "memory/ holds none of the indexed files",
            path=MEMORY,
            hint="nothing was written; bring memory/ back, or first: signet-sync reindex --accept-removals",
        )
    paths = {artifact_path(name) for name in names if token in name}
    paths.add(tombstones_files.path_of(agent_id, token))
    engine.index_paths(workspace, Request(now_us=now_us, paths=frozenset(paths)))


def _refuse_removed(workspace: Workspace, request: _SanitizedRequest) -> None:
    if is_removed(workspace, *request.session):
        raise refuse_removed_session(request.identity["session_id"])


def _segments(workspace: Workspace, request: _SanitizedRequest) -> list[Row]:
    return artifacts.session_rows(workspace.database, *request.session)


class _NewTexts(NamedTuple):
    """The texts to write: words, and for a compaction the live turns as a transcript (`segment`).

    `live` has the marks of the live turns that files hold after that, by session id.
    """

    words: str
    segment: str = ""
    live: Mapping[str, list[str]] = {}


def _new_texts(workspace: Workspace, request: _SanitizedRequest, rows: list[Row], now_us: int) -> _NewTexts | None:
    """Returns the texts to write; None where all of them are kept already, live turns included."""
    ending = sessions_flow.ending_of(_add_times(request, now_us))
    covered = live.list_covered(workspace.database, ending) if not request.more else []
    said = [sessions_live.make_spoken_turn(one.turn) for one in covered]
    segments = [(row.content, row.membership_us) for row in rows if row.source_kind == "transcript"]
    absent = sessions_live.missing_turns(said, segments, request.bodies.get("transcript") or "")
    if request.kind == "compact":
        body = request.bodies["compaction"] or ""
        if any(row.source_kind == "compaction" and alike(row.content, body) for row in rows):
            return None
        absent, many = _fitting(workspace, said, absent)
        return _NewTexts(body, render(said[place] for place in absent), sessions_live.marks_of(covered[:many]))
    transcript, summary = request.bodies["transcript"] or "", request.bodies["summary"]
    if not transcript and summary is None and not absent:
        raise UsageError(
            "there is neither a transcript nor a summary",
            hint="give the session's transcript as text",
            code="input-invalid",
        )
    rest = ""
    if not (request.tail and _repeats_segment(workspace, transcript, rows)):
        rest = new_words(transcript, [text for text, _ in segments], tail=request.tail)
    words = normalize(insert_live(rest, said, absent, begins=request.identity["started_at"], tail=request.tail))
    has_summary = summary is None or any(row.source_kind == "summary" and alike(row.content, summary) for row in rows)
    marks = sessions_live.marks_of(covered)
    if segments and not words and has_summary:
        key = request.identity["session_key"] or request.identity["session_id"]
        sessions_live.forget(workspace, request.identity["agent_id"], key, marks)
        return None
    return _NewTexts(words, live=marks)


def _add_times(request: _SanitizedRequest, now_us: int) -> dict[str, Any]:
    """Returns a request's identity with the times that decide which live turns are covered."""
    return {**request.identity, "captured_at": request.identity["captured_at"] or iso(now_us), "now": iso(now_us)}


def _fitting(workspace: Workspace, said: list[SpokenTurn], absent: list[int]) -> tuple[list[int], int]:
    """Returns which of the absent turns fit into one file, and how many turns that covers; the others stay buffered."""
    room = _bytes_per_file(workspace)
    for number, place in enumerate(absent):
        room -= len(utf8(render([said[place]]))) + 2
        if room < 0:
            return absent[:number], place
    return absent, len(said)


def _repeats_segment(workspace: Workspace, tail: str, rows: list[Row]) -> bool:
    """Returns whether this tail equals a segment that was redacted later.

    Otherwise the tail is compared word by word, and any difference is new.
    """
    same = (row.source_path for row in rows if row.source_kind == "transcript" and alike(row.content, tail))
    return any(violations.is_redacted(workspace.database, path) for path in same)


def _answer_unchanged(workspace: Workspace, request: _SanitizedRequest, rows: list[Row]) -> dict[str, Any]:
    """Returns the answer for a request with nothing new: the newest segment's files."""
    kinds = tuple(reversed(ARTIFACTS[request.kind]))
    newest = {kind: next((row for row in reversed(rows) if row.source_kind == kind), None) for kind in kinds}
    lead = next(row for row in newest.values() if row is not None)
    manifest = artifacts.manifest_of(workspace.database, *request.session)
    answer = {
        "agent_id": request.identity["agent_id"],
        "session_id": request.identity["session_id"],
        "session_token": request.token,
        **{kind: row.source_path if row is not None else None for kind, row in newest.items()},
        "manifest": manifest[0] if manifest else lead.manifest_path,
        "sentence": lead.memory_sentence or "",
        "sentence_quality": lead.memory_sentence_quality or "fallback",
        "redactions": request.redactions,
    }
    return _replay_answer(workspace, answer)


def _write(
    workspace: Workspace,
    request: _SanitizedRequest,
    new: _NewTexts,
    rows: list[Row],
    offered: ModelDigest | None,
    now_us: int,
) -> dict[str, Any]:
    """Writes the new texts, as several segments if too long for one file; returns the last segment's answer."""
    pieces = _pieces(workspace, new)
    for left, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
        last = not left
        one = request if last else _part_request(request, piece, left)
        if not last and _find_answer(workspace, one) is not None:
            continue
        # Equal parts become separate segments, so each needs a time of its own.
        at = now_us - left * 1000
        part = new._replace(words=piece) if last else _NewTexts(piece)
        flow = sessions_flow.flow_of(_begin(workspace, one, part, rows, at, offered if last else None))
        flow.wording = offered.sentence if last and offered is not None else None
        answer = _finish(workspace, flow, now_us)
        rows = [] if last else _segments(workspace, request)
    return answer


def _pieces(workspace: Workspace, new: _NewTexts) -> list[str]:
    return list(cut_parts(new.words, _bytes_per_file(workspace)))


def _bytes_per_file(workspace: Workspace) -> int:
    limit = workspace.settings.max_file_bytes
    return max(limit - HEADROOM, limit // 2)


def _part_request(request: _SanitizedRequest, piece: str, left: int) -> _SanitizedRequest:
    """Returns the request for an earlier segment of a transcript too long for one file, a millisecond earlier each."""
    bodies: dict[str, str | None] = {**request.bodies, "transcript": piece, "summary": None}
    key = _digest(["part", request.flow_key, left, body_sha256(piece)])
    captured_us = request.captured_us - left * 1000 if request.captured_us is not None else None
    return replace(request, bodies=bodies, flow_key=key[:32], request=key, proposal=None, captured_us=captured_us)


def _begin(
    workspace: Workspace,
    request: _SanitizedRequest,
    new: _NewTexts,
    rows: list[Row],
    now_us: int,
    offered: ModelDigest | None = None,
) -> journal.JournalledFlow:
    identity = dict(request.identity)
    captured_at = _free_moment(workspace, request, new, now_us, rows)
    identity["captured_at"] = captured_at
    bodies, headline = _bodies(request, new, offered, captured_at, rows)
    document = {
        "v": sessions_flow.VERSION,
        "sanitizer": sanitizer_stamp(),
        "kind": request.kind,
        **identity,
        "token": request.token,
        "manifest": _manifest_path(workspace, request, captured_at, rows),
        "bodies": bodies,
        "live": new.live,
        "proposal": request.proposal,
        "headline": headline,
        "now": iso(now_us),
        "flow_key": request.flow_key,
        "request": request.request,
        "redactions": request.redactions,
    }
    try:
        return journal.begin(workspace.state.journal, request.flow_key, document)
    except BlockingIOError:
        raise WorkspaceError(
            "another process is writing this session end", hint="wait for it to finish and try again", code="busy"
        ) from None


def _bodies(
    request: _SanitizedRequest, new: _NewTexts, offered: ModelDigest | None, captured_at: str, rows: list[Row]
) -> tuple[dict[str, str], str | None]:
    """Returns the texts to write, and the fallback sentence made from this and earlier segments.

    The summary is the caller's, else one of what rules found; the items that a model chose stand in place of theirs.
    """
    if request.kind == "compact":
        return {"compaction": new.words, **({"transcript": new.segment} if new.segment else {})}, None

    identity = request.identity
    earlier = [row.content for row in rows if row.source_kind == "transcript" and row.content != new.words]
    before = [outcome(text) for text in earlier[-SEGMENTS:]]
    found = outcome(new.words)
    if offered is not None:
        tried = tuple(item for item in found.items if item.rule == "tried")
        found = found._replace(items=offered.items + tried, status=offered.status or found.status, chosen=True)
    summary = request.bodies.get("summary")
    about = {"project": identity["project"], "harness": identity["harness"]}
    made = _clean(
        summary or digest_summary(found, **about, headless=request.headless, looks_up=asks_only_memory(new.words)),
        Counter(),
    )
    bodies = {"transcript": new.words, "summary": made}
    day = (identity["ended_at"] or captured_at)[:10]
    contexts = [
        SentenceSubject(body, identity["project"], kind, identity["harness"], day, request.token)
        for kind, body in bodies.items()
    ]
    said = headline(join_outcomes(before, found), contexts)
    return bodies, _clean_line(said, Counter()) if said else None


def _free_moment(workspace: Workspace, request: _SanitizedRequest, new: _NewTexts, now_us: int, rows: list[Row]) -> str:
    """Returns the `captured_at` of the new artifacts: the caller's, or a generated one.

    A generated one is now, but later than everything that the session has, since requests may overtake each other and
    clocks may be set back. It moves on by milliseconds until its names are free. The caller's is used as it is, and the
    flow is refused if another artifact has its name.
    """
    behind = max((row.captured_us + 1000 for row in rows if row.content != new.words), default=now_us)
    chosen = request.captured_us if request.captured_us is not None else max(now_us, behind)
    ours = {row.source_path for row in rows if row.content == new.words}
    kinds = kinds_of(request.kind, {"transcript"} if new.segment else ())
    for move in range(_MOST_MOVES):
        moment = iso(chosen + move * 1000)
        paths = [artifact_path(artifact_file_name(moment, request.token, kind)) for kind in kinds]
        taken = [path for path in paths if files.status_of(workspace.root, path) is not None]
        if not taken or request.captured_us is not None or any(path in ours for path in taken):
            return moment
    raise WorkspaceError("no free name for this session end", hint="give another captured_at", code="name-taken")


def _manifest_path(workspace: Workspace, request: _SanitizedRequest, captured_at: str, rows: list[Row]) -> str:
    """Returns the path of the session's manifest; a new one is named by the session's first `captured_at`.

    Sessions with the same key share a token: if another session's manifest has the name, the next free millisecond is
    used.
    """
    manifest = artifacts.manifest_of(workspace.database, *request.session)
    if manifest is not None:
        return manifest[0]
    first = parse_instant(min([captured_at, *(iso(row.captured_us) for row in rows)])) or 0
    for move in range(_MOST_MOVES):
        path = artifact_path(artifact_file_name(iso(first + move * 1000), request.token, "manifest"))
        if files.status_of(workspace.root, path) is None:
            return path
    raise WorkspaceError("no free name for the session's manifest", hint="give another captured_at", code="name-taken")


def _finish(workspace: Workspace, flow: Flow, now_us: int) -> dict[str, Any]:
    """Finishes a flow. The caller holds the workspace's lock."""
    try:
        sessions_flow.advance(workspace, flow)
        if flow.refusal is None:
            outcome = engine.run_locked(workspace, Request(now_us=now_us, paths=frozenset(flow.paths), resume=False))
            if outcome.cliff is None:
                flow.reconciled = True
                sessions_flow.advance(workspace, flow)
    except BaseException as error:
        flow.held.release()
        if isinstance(error, SignetSyncError) and not error.hint:
            error.hint = "the next pass finishes what was begun: signet-sync reindex"
        raise
    if flow.refusal is not None:
        raise flow.refusal
    flow.held.release()
    return flow.answer()


def _require_writable(workspace: Workspace) -> None:
    """Raises `WorkspaceError` for a vault that cannot be written, before anything is journalled."""
    problem = files.unwritable(workspace.root, MEMORY)
    if problem:
        raise WorkspaceError(
            f"the vault cannot be written: {problem}", path=MEMORY, hint="check its permissions; nothing was written"
        )
