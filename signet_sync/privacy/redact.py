"""Redacts sealed artifacts: new text, new hash, new seal; the old bytes leave every file that we write.

Besides `violations restore`, the only write to a sealed file. Each file is redacted by a flow of its own: first the new
seal and a record of when and why, in one durable transaction, then the file, then a pass with its scrub. After a crash
behind the transaction, the next pass finds the old file with the new seal, and redacts it (`planner.judge`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signet_sync.errors import RevisionConflict, UsageError, WorkspaceError, reason
from signet_sync.formats.artifact import REPOSITORY_FIELDS, FieldProblem
from signet_sync.formats.filename import IMMUTABLE_KINDS, artifact_name, is_artifact_path
from signet_sync.formats.frontmatter import FrontmatterProblem, pack_seal, unpack_seal
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.formats.timestamps import iso
from signet_sync.history import repository as history_repository
from signet_sync.privacy import remove
from signet_sync.storage import files, state_dir, writing
from signet_sync.sync import engine, manifests, planner
from signet_sync.sync.index_records import Judgement, Seal
from signet_sync.sync.store import artifacts, violations
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.redaction import SECRETS, Cleaning, redact_text, redacts, rewritten, rules
from signet_sync.text.sanitizer import sanitize_line

_BATCH = 64
_NOWHEN = Signature(0, 0, 0, 0)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FileRedaction:
    """The redaction of a file: the number of replacements by sanitizer rule; never the replaced text."""

    path: str
    rules: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NotRedacted:
    """A file that could not be redacted, or not completely: why, and what to do."""

    path: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class RedactResult:
    """What a redaction did, or would do; `git_history` states whether the repository contains versions of the files."""

    files: tuple[FileRedaction, ...]
    left: tuple[NotRedacted, ...]
    git_history: str


@dataclass(frozen=True, slots=True)
class _Work:
    """A file to write: its present bytes (None: it is gone), the new ones, its seal, its sentence before and after."""

    path: str
    rules: Mapping[str, int]
    present: bytes | None
    raw: bytes
    seal: Seal
    before: str | None
    after: str | None


def select_artifacts(workspace: Workspace, agent_id: str, name: str | None) -> list[str]:
    """Returns the artifacts that `redact NAME` examines: of a session, one path, or (None) of every agent.

    Of all agents, only those that may contain a secret by their rows, or that have no indexed row. Raises `UsageError`.
    """
    if name is None:
        rows = workspace.database.execute(
            "select path from files where verdict = 'indexed' and notes like '%\"secret-suspected\"%'"
            " union select s.path from seals s where not exists"
            " (select 1 from files f where f.path = s.path and f.verdict = 'indexed') order by 1"
        )
        return [row[0] for row in rows]
    folder, _, last = name.rpartition("/")
    if artifact_name(last) is not None:
        path = f"{folder or MEMORY}/{last}"
        known = "select exists(select 1 from files where path = ?1) or exists(select 1 from seals where path = ?1)"
        if folder not in ("", MEMORY) or not workspace.database.value(known, (path,)):
            raise UsageError(
                "no such artifact is known",
                path=path,
                hint="give its path as signet-sync open shows it, such as memory/….md",
                code="unknown-path",
            )
        return [path]
    found = {path for plan in remove.plan(workspace, agent_id, name) for path in plan.paths}
    return sorted(filter(is_artifact_path, found))


def preview(workspace: Workspace, paths: Sequence[str]) -> RedactResult:
    """Returns what `redact` would do; writes nothing."""
    found: list[FileRedaction] = []
    left: list[NotRedacted] = []
    for path in paths:
        examined = _examine(workspace, path, SECRETS)
        if isinstance(examined, NotRedacted):
            left.append(examined)
        elif examined is not None:
            found.append(FileRedaction(path, examined.rules))
            left += filter(
                None, [_find_secret_in_names(workspace, path, examined.raw) if examined.seal.digest else None]
            )
    return RedactResult(tuple(found), tuple(left), history_repository.holds(workspace.root, sorted(paths)))


def redact(
    workspace: Workspace,
    paths: Sequence[str],
    why: str,
    now_us: int,
    *,
    cleaning: Cleaning = SECRETS,
    progress: Progress | None = None,
) -> RedactResult:
    """Redacts artifacts, then runs a pass over them. After a crash, the same call continues."""
    found: list[FileRedaction] = []
    left: list[NotRedacted] = []
    for start in range(0, len(paths), _BATCH):
        with state_dir.workspace_lock(workspace.state):
            for one in _write_redacted(workspace, paths[start : start + _BATCH], cleaning, why, now_us):
                if isinstance(one, NotRedacted):
                    left.append(one)
                else:
                    found.append(one)
        if progress is not None:
            progress(min(start + _BATCH, len(paths)), len(paths))
    touched = frozenset(one.path for one in found)
    if touched or violations.is_redaction_due(workspace.database):
        engine.run_pass(workspace, Request(now_us=now_us, paths=touched or None, reread=touched))
    return RedactResult(tuple(found), tuple(left), history_repository.holds(workspace.root, sorted(paths)))


def _write_redacted(
    workspace: Workspace, paths: Sequence[str], cleaning: Cleaning, why: str, now_us: int
) -> Iterator[FileRedaction | NotRedacted]:
    """Examines and writes some files. The caller holds the workspace's lock."""
    works: list[_Work] = []
    for path in paths:
        name = artifact_name(path.rpartition("/")[2])
        if name is not None and name.kind == "manifest":
            yield from _manifest(workspace, path, cleaning, why, now_us)
            continue
        examined = _examine(workspace, path, cleaning)
        if isinstance(examined, NotRedacted):
            yield examined
        elif examined is not None:
            works.append(examined)
            if (left := _find_secret_in_names(workspace, path, examined.raw)) is not None:
                yield left
    if not works:
        return
    with workspace.database.transaction(durable=True):
        artifacts.store_seals(workspace.database, [work.seal for work in works])
        # After a crash the files are unchanged: without signatures the next pass reads them again.
        artifacts.forget_signatures(workspace.database, [work.path for work in works])
        for work in works:
            seal = work.seal
            violations.record_redactions(workspace.database, [work.path], iso(now_us), _summary(work.rules, why))
            if work.before is not None and work.after is not None and work.before != work.after:
                session = (seal.agent_id, seal.session_token, seal.session_id)
                violations.reword(workspace.database, session, work.before, work.after)
    for work in works:
        try:
            unchanged = work.present is None or (
                writing.replace(workspace.root, work.path, work.raw, work.present).displaced is None
            )
            trouble = "" if unchanged else "the file changed in the meantime"
        except (OSError, WorkspaceError) as error:
            trouble = reason(error)
        if trouble:
            # The seal already has the new text: the next pass tries again.
            yield NotRedacted(work.path, trouble, "this will be retried automatically")
        yield FileRedaction(work.path, work.rules)


def _summary(found: Mapping[str, int], why: str) -> str:
    counted = ", ".join(f"{rule} × {count}" for rule, count in sorted(found.items()))
    return f"{counted}: {sanitize_line(why)}"


def _examine(workspace: Workspace, path: str, cleaning: Cleaning) -> _Work | NotRedacted | None:
    """Returns what to write for a file; None if there is nothing to redact."""
    name = artifact_name(path.rpartition("/")[2])
    if name is None or name.kind not in IMMUTABLE_KINDS:
        return _examine_manifest(workspace, path, cleaning)
    seal = artifacts.seal_of(workspace.database, path)
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    present: bytes | None = None
    if isinstance(found, Found):
        present = raw = found.raw
        judgement = _judge_bytes(workspace, path, raw, seal)
        if judgement.verdict != "indexed" or judgement.redacted:
            return NotRedacted(path, judgement.message or judgement.code, planner.HINTS.get(judgement.code, ""))
    elif found.code == "gone" and seal is not None:
        kept = unpack_seal(seal.packed)
        if kept is None:
            return None  # neither file nor bytes
        raw = kept
    else:
        return NotRedacted(path, found.message, planner.HINTS.get(found.code, ""))
    try:
        made = rewritten(name.kind, raw, cleaning)
    except (FrontmatterProblem, FieldProblem) as problem:
        return NotRedacted(path, str(problem), "correct the problem, then redact again")
    if made is None:
        return _find_secret_in_names(workspace, path, raw) if cleaning is SECRETS else None
    new = _judge_bytes(workspace, path, made.raw, None)
    if new.verdict != "indexed" or new.seal is None or new.row is None or not redacts(raw, made.raw):
        return NotRedacted(
            path, new.message or "its redacted form cannot be recognized as a redaction", "remove the session"
        )
    old = _judge_bytes(workspace, path, raw, None).row
    fresh = (seal or new.seal)._replace(
        digest=new.seal.digest,
        body_sha256=new.seal.body_sha256,
        file_sha256=new.seal.file_sha256,
        # A seal whose bytes were deleted gets new ones, until retention deletes them: an interrupted flow needs them.
        packed=pack_seal(made.raw),
    )
    before = old.memory_sentence if old is not None else None
    return _Work(path, made.rules, present, made.raw, fresh, before, new.row.memory_sentence)


def _judge_bytes(workspace: Workspace, path: str, raw: bytes, seal: Seal | None) -> Judgement:
    judging = planner.JudgeContext(
        planner.Tombstones(), workspace.noise, lambda _: seal, iso(0), workspace.settings.max_file_bytes
    )
    return planner.judge(path, Found(raw, _NOWHEN), judging)


def _find_secret_in_names(workspace: Workspace, path: str, raw: bytes) -> NotRedacted | None:
    """Reports what redaction cannot change: a secret in the names by which the file is identified."""
    if not any(note.code == "secret-suspected" for note in _judge_bytes(workspace, path, raw, None).notes):
        return None
    return NotRedacted(
        path,
        "the session's id, its key or a path contains a secret, which redaction cannot change",
        "signet-sync remove deletes the session",
    )


# ── manifests: mutable, and a person may write into them ──


def _clean_manifest(
    fields: Mapping[str, Any], body: str, cleaning: Cleaning
) -> tuple[dict[str, Any], str, dict[str, int]]:
    """Redacts a manifest's fields and body and counts the rules; other text of the body stays unchanged."""
    clean_body = redact_text(body) if cleaning is SECRETS else cleaning.body(body)
    found = rules(body, clean_body)
    clean = dict(fields)
    for name in ("project", "harness", *REPOSITORY_FIELDS):
        value = fields.get(name)
        if isinstance(value, str):
            clean[name] = cleaning.line(value)
            found += rules(value, clean[name])
    return clean, clean_body, dict(found)


def _examine_manifest(workspace: Workspace, path: str, cleaning: Cleaning) -> _Work | NotRedacted | None:
    """Does the same for a manifest, without writing."""
    known = manifests.read(workspace.root, path, workspace.settings.max_file_bytes)
    if known is None:
        return None
    found, document, fields = known
    seen = _clean_manifest(fields, document.body, cleaning)[2]
    seal = Seal(path, "", "", "", "manifest", "", "", "", None, "")
    return _Work(path, seen, found.raw, found.raw, seal, None, None) if seen else None


def _manifest(
    workspace: Workspace, path: str, cleaning: Cleaning, why: str, now_us: int
) -> Iterator[FileRedaction | NotRedacted]:
    name = artifact_name(path.rpartition("/")[2])
    assert name is not None
    seen: dict[str, int] = {}
    owner: list[str] = []

    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str] | None:
        clean, clean_body, found = _clean_manifest(fields, body, cleaning)
        seen.clear()
        seen.update(found)
        owner[:] = [str(fields.get("agent_id"))]
        return (clean, clean_body) if found else None

    try:
        manifests.swap(
            workspace.root,
            path,
            change,
            lambda: state_dir.session_lock(workspace.state, name.token),
            limit=workspace.settings.max_file_bytes,
        )
    except (OSError, WorkspaceError, RevisionConflict) as error:
        yield NotRedacted(path, reason(error), "redact again")
        return
    if seen:
        with workspace.database.transaction(durable=True):
            violations.record_redactions(workspace.database, [path], iso(now_us), _summary(seen, why))
        yield FileRedaction(path, seen)
