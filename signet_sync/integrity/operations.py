"""Shows violations with a diff, restores files from their seals, or accepts changes with a reason."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.errors import reason as why
from signet_sync.formats.artifact import Content, FieldProblem, validate
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, pack_seal, parse, unknown_entries, unpack_seal, write
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files, writing
from signet_sync.storage.database.connection import Database
from signet_sync.sync import planner
from signet_sync.sync.engine import run_pass
from signet_sync.sync.index_records import Seal
from signet_sync.sync.store import artifacts, violations
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2


class Difference(NamedTuple):
    """The sealed and the present text of a file, sanitized: they never show more than the index holds.

    `state` says why there is no readable file, "" if there is one.
    """

    path: str
    sealed_at: str
    before: str
    after: str
    state: str

    def render(self) -> str:
        """Returns a unified diff of both; empty if they differ only in parts that are never shown."""
        now = f"({self.state})" if self.state else f"{self.path} (now)"
        before, after = ([f"{line}\n" for line in text.split("\n")] for text in (self.before, self.after))
        sealed = f"{self.path} (sealed {self.sealed_at})"
        return "".join(difflib.unified_diff(before, [] if self.state else after, sealed, now))


def difference(database: Database, root: str, path: str, limit: int) -> Difference:
    """Returns the difference of a sealed file; reads at most `limit` bytes of it.

    Raises `UsageError` if the path has no open violation, or its sealed bytes are lost.
    """
    seal = _require_seal(database, path)
    found = files.read(root, path, limit)
    state = "" if isinstance(found, Found) else "gone" if found.code == "gone" else found.message
    raws = _read_sealed(seal), found.raw if isinstance(found, Found) else b""
    before, after = (sanitize_transcript_v2(raw.decode("utf-8", "replace")) for raw in raws)
    return Difference(path, seal.sealed_at, before, after, state)


def _require_seal(database: Database, path: str) -> Seal:
    seal = artifacts.seal_of(database, path)
    known = {one.path for one in violations.list_open(database)}
    known |= {one.path for one in violations.list_accepted_gone(database)}
    if seal is None or path not in known:
        raise UsageError(
            "this is no open violation",
            path=path,
            hint="signet-sync violations list shows them",
            code="unknown-violation",
        )
    return seal


def _read_sealed(seal: Seal) -> bytes:
    raw = unpack_seal(seal.packed)
    if raw is None:
        raise UsageError(
            "the sealed bytes of this file were lost with a database",
            path=seal.path,
            hint="restore it from a copy of your own, or accept it with --reason",
        )
    return raw


def restore_one(workspace: Workspace, path: str) -> None:
    """Writes the sealed bytes back.

    Raises `UsageError` if they are lost, the path has no violation, or what is at it is no file that can be read.
    """
    raw = _read_sealed(_require_seal(workspace.database, path))
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if isinstance(found, Found):
        if found.raw != raw and writing.replace(workspace.root, path, raw, found.raw).displaced is not None:
            raise UsageError("the file changed in the meantime", path=path, hint="check it, then restore again")
        return
    if found.code != "gone":
        raise UsageError(found.message, path=path, hint="move away what is at the path, then restore again")
    try:
        writing.create_once(workspace.root, path, raw)
    except FileExistsError:
        raise UsageError(
            "another file has appeared at the path", path=path, hint="check it, then restore again"
        ) from None


def accept_one(workspace: Workspace, path: str, reason: str, now_us: int) -> None:
    """Seals the present content and corrects its `content_sha256` in the file.

    Only this, `restore` and `redact` change an immutable file. If the file is gone, its absence is accepted. Raises
    `UsageError` if the present file is no artifact of the same agent and session.
    """
    seal = _require_seal(workspace.database, path)
    name = artifact_name(path.rpartition("/")[2])
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if name is None or not isinstance(found, Found):
        assert isinstance(found, Trouble)
        if found.code == "gone":
            accept_gone(workspace, [path], reason, now_us)
            return
        raise UsageError(
            f"there is nothing to seal: {found.message}",
            path=path,
            hint="correct that and try again, or restore the file",
        )
    try:
        document = parse(found.raw)
        body = normalize(document.body)
        actual = text_sha256(body)
        artifact = validate(name.kind, {**document.fields, "content_sha256": actual})
    except (FrontmatterProblem, FieldProblem) as problem:
        raise UsageError(
            f"it cannot be accepted as it is: {problem}", path=path, hint="correct the problem, or restore the file"
        ) from None
    assert isinstance(artifact, Content)
    if (artifact.agent_id, artifact.session_id) != (seal.agent_id, seal.session_id):
        raise UsageError(
            "the file now belongs to another agent or session",
            path=path,
            hint="restore it; an identity is never accepted",
        )
    raw = found.raw
    if str(document.fields.get("content_sha256", "")).strip().lower() != actual:
        known = frozenset(type(artifact).FIELDS)
        fields = {**artifact.fields(), **dict(unknown_entries(document.head, known))}
        raw = write(fields, document.body.removesuffix("\n"))
    judgement = planner.judge_bytes(path, raw, workspace.noise, iso(now_us))
    if judgement.verdict != "indexed" or judgement.seal is None:
        raise UsageError(
            f"it cannot be accepted as it is: {judgement.message}",
            path=path,
            hint="correct the problem, or restore the file",
        )
    # The new seal first: after a crash in between, the file violates it, and can be accepted or restored again.
    with workspace.database.transaction(durable=True):
        artifacts.store_seals(workspace.database, [judgement.seal._replace(packed=pack_seal(raw))])
        # Where nothing is left to correct the file stays as it was, and only this makes the next pass renew its row.
        artifacts.forget_signatures(workspace.database, [path])
        violations.accept(workspace.database, path, iso(now_us), sanitize_line(reason))
    if raw != found.raw:
        writing.replace(workspace.root, path, raw, found.raw)


def accept_gone(workspace: Workspace, paths: Sequence[str], reason: str, now_us: int) -> None:
    """Accepts that sealed files are gone: the next pass closes their violations, their seals stay.

    If one comes back it is an ordinary file again; if it then disappears again, that is a new violation.
    """
    with workspace.database.transaction(durable=True):
        violations.accept_gone(workspace.database, paths, iso(now_us), sanitize_line(reason))


# ── several, between two passes: verdicts as of now, then the rows ──

# Asks for consent, given the number of files, once their verdicts are as of now; raises to stop.
Ask = Callable[[int], None]


@dataclass(slots=True)
class BatchResult:
    """The result for several files: those done, and why others failed."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def restore(
    workspace: Workspace, paths: Sequence[str], now_us: int, ask: Ask, *, agent: str | None = None,
    accepted: bool = False,
) -> BatchResult:  # fmt: skip
    """Writes the sealed bytes of files back: of these paths, else of all open violations (of an agent).

    `accepted`: of all missing files whose absence was accepted. Trouble with one of several is recorded.
    """
    wanted = _choose_paths(workspace, paths, now_us, ask, agent, accepted=accepted)
    result = BatchResult()
    _settle(result, wanted, lambda path: restore_one(workspace, path), alone=len(paths) == 1)
    run_pass(workspace, Request(now_us=now_us))
    return result


def accept(
    workspace: Workspace, paths: Sequence[str], reason: str, now_us: int, ask: Ask, *, agent: str | None = None
) -> BatchResult:
    """Seals the present content of these files, else of all open violations, or accepts that they are gone."""
    wanted = _choose_paths(workspace, paths, now_us, ask, agent)
    opened = {one.path for one in violations.list_open(workspace.database)}
    gone = [path for path in wanted if path in opened and files.status_of(workspace.root, path) is None]
    if gone:  # all at once
        accept_gone(workspace, gone, reason, now_us)
    result = BatchResult([*gone])
    rest = [path for path in wanted if path not in result.done]
    _settle(result, rest, lambda path: accept_one(workspace, path, reason, now_us), alone=len(paths) == 1)
    run_pass(workspace, Request(now_us=now_us, reread=frozenset(result.done)))
    return result


def _choose_paths(
    workspace: Workspace, paths: Sequence[str], now_us: int, ask: Ask, agent: str | None, *, accepted: bool = False
) -> list[str]:
    run_pass(workspace, Request(now_us=now_us, project=False))
    if accepted:
        found = [one.path for one in violations.list_accepted_gone(workspace.database)]
    else:
        found = [one.path for one in violations.list_open(workspace.database, agent)]
    wanted = list(dict.fromkeys(paths or found))
    if wanted:
        ask(len(wanted))
    return wanted


def _settle(result: BatchResult, paths: Iterable[str], act: Callable[[str], None], *, alone: bool) -> None:
    for path in paths:
        try:
            act(path)
        except (SignetSyncError, OSError) as error:
            if alone:
                raise
            result.failed[path] = why(error)
            continue
        result.done.append(path)
