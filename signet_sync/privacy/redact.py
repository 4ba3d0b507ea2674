"""Redacts sealed artifacts: new text, new hash, new seal; the old bytes leave every file that we write.

Besides `violations restore`, the only write to a sealed file. Each file is redacted by a flow of its own: first the new
seal and a record of when and why, in one durable transaction, then the file, then a pass with its scrub. After a crash
behind the transaction, the next pass finds the old file with the new seal, and redacts it (`planner.judge`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from signet_sync.errors import RevisionConflict, WorkspaceError, reason
from signet_sync.formats.artifact import REPOSITORY_FIELDS, FieldProblem
from signet_sync.formats.filename import IMMUTABLE_KINDS, artifact_name, is_artifact_path
from signet_sync.formats.frontmatter import FrontmatterProblem, pack_seal, unpack_seal
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.history import repository as history_repository
from signet_sync.privacy import remove
from signet_sync.sessions import store as results
from signet_sync.storage import files, state_dir, writing
from signet_sync.sync import engine, manifests, planner
from signet_sync.sync.index_records import Seal
from signet_sync.sync.store import artifacts, violations
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.redaction import SECRETS, Cleaning, redacts, rewrite_artifact, rules
from signet_sync.text.sanitizer import redact as replace_secrets
from signet_sync.text.sanitizer import sanitize_line

_BATCH = 64


class FileRedaction(NamedTuple):
    """The redaction of a file: the number of replacements by sanitizer rule; never the replaced text."""

    path: str
    rules: Mapping[str, int]


class NotRedacted(NamedTuple):
    """A file that could not be redacted, or not completely: why, and what to do."""

    path: str
    message: str
    hint: str


class RedactResult(NamedTuple):
    """What a redaction did, or would do; `git_history` states whether the repository contains versions of the files."""

    files: tuple[FileRedaction, ...]
    left: tuple[NotRedacted, ...]
    git_history: str


class _Work(NamedTuple):
    """A file to write: its present bytes (None: it is gone), the new ones, its seal, its sentence before and after.

    A manifest has neither seal nor sentence; its new bytes are made when it is written.
    """

    path: str
    rules: Mapping[str, int]
    present: bytes | None = None
    raw: bytes = b""
    seal: Seal | None = None
    before: str | None = None
    after: str | None = None


def select_artifacts(workspace: Workspace, agent_id: str, name: str | None) -> list[str]:
    """Returns the artifacts that `redact SESSION` examines, or (None) those of every agent.

    Of all agents, only those that may contain a secret by their rows, or that have no indexed row. Raises `UsageError`.
    """
    if name is None:
        return violations.list_redactable(workspace.database)
    found = {path for plan in remove.plan(workspace, agent_id, name) for path in plan.paths}
    return sorted(filter(is_artifact_path, found))


def preview(workspace: Workspace, paths: Sequence[str]) -> RedactResult:
    """Returns what `redact` would do; writes nothing."""
    left: list[NotRedacted] = []
    works = _examine_all(workspace, paths, SECRETS, left)
    found = tuple(FileRedaction(work.path, work.rules) for work in works)
    return RedactResult(found, tuple(left), history_repository.holds(workspace.root, sorted(paths)))


def redact(
    workspace: Workspace,
    paths: Sequence[str],
    why: str,
    now_us: int,
    *,
    cleaning: Cleaning = SECRETS,
) -> RedactResult:
    """Redacts artifacts, then runs a pass over them. After a crash, the same call continues."""
    found: list[FileRedaction] = []
    left: list[NotRedacted] = []
    for start in range(0, len(paths), _BATCH):
        with state_dir.workspace_lock(workspace.state):
            works = _examine_all(workspace, paths[start : start + _BATCH], cleaning, left)
            _record(workspace, works, why, now_us)
            for work in works:
                trouble = _write(workspace, work, cleaning)
                if trouble:
                    # Of a sealed file, the seal already has the new text: the next pass tries again.
                    hint = "this will be retried automatically" if work.seal is not None else "redact again"
                    left.append(NotRedacted(work.path, trouble, hint))
                if not trouble or work.seal is not None:
                    found.append(FileRedaction(work.path, work.rules))
    touched = frozenset(one.path for one in found)
    if touched or violations.is_redaction_due(workspace.database):
        engine.run_pass(workspace, Request(now_us=now_us, paths=touched or None, reread=touched))
    return RedactResult(tuple(found), tuple(left), history_repository.holds(workspace.root, sorted(paths)))


# ── what to write ──


def _examine_all(
    workspace: Workspace, paths: Iterable[str], cleaning: Cleaning, left: list[NotRedacted]
) -> list[_Work]:
    """Returns what to write for files with anything to redact; adds to `left` what cannot be redacted."""
    works = []
    for path in paths:
        name = artifact_name(path.rpartition("/")[2])
        if name is None or name.kind not in IMMUTABLE_KINDS:
            found = manifests.read(workspace.root, path, workspace.settings.max_file_bytes)
            if found is not None and (seen := _clean_manifest(found[2], found[1].body, cleaning)[2]):
                works.append(_Work(path, seen))
            continue
        work = _examine(workspace, path, name.kind, cleaning)
        if isinstance(work, NotRedacted):
            left.append(work)
        elif work is not None:
            works.append(work)
            if cleaning is SECRETS and (named := _find_secret_in_names(workspace, path, work.raw)) is not None:
                left.append(named)
    return works


def _examine(workspace: Workspace, path: str, kind: str, cleaning: Cleaning) -> _Work | NotRedacted | None:
    """Returns what to write for an immutable artifact; None if there is nothing to redact."""
    seal = artifacts.seal_of(workspace.database, path)
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if isinstance(found, Found):
        judgement = planner.judge_bytes(path, found.raw, workspace.noise, seal=seal)
        if judgement.verdict != "indexed" or judgement.redacted:
            return NotRedacted(path, judgement.message or judgement.code, planner.HINTS.get(judgement.code, ""))
        raw = found.raw
    elif found.code != "gone" or seal is None:
        return NotRedacted(path, found.message, planner.HINTS.get(found.code, ""))
    elif (kept := unpack_seal(seal.packed)) is not None:
        raw = kept
    else:
        return None  # neither file nor bytes
    try:
        made = rewrite_artifact(kind, raw, cleaning)
    except (FrontmatterProblem, FieldProblem) as problem:
        return NotRedacted(path, str(problem), "correct the problem, then redact again")
    if made is None:
        return _find_secret_in_names(workspace, path, raw) if cleaning is SECRETS else None
    new = planner.judge_bytes(path, made.raw, workspace.noise)
    if new.verdict != "indexed" or new.seal is None or new.row is None or not redacts(raw, made.raw):
        message = new.message or "its redacted form cannot be recognized as a redaction"
        return NotRedacted(path, message, "remove the session")
    old = planner.judge_bytes(path, raw, workspace.noise).row
    fresh = (seal or new.seal)._replace(
        digest=new.seal.digest,
        text_sha256=new.seal.text_sha256,
        file_sha256=new.seal.file_sha256,
        # A seal whose bytes were lost gets new ones: an interrupted flow needs them.
        packed=pack_seal(made.raw),
    )
    before = old.memory_sentence if old is not None else None
    present = raw if isinstance(found, Found) else None
    return _Work(path, made.rules, present, made.raw, fresh, before, new.row.memory_sentence)


def _find_secret_in_names(workspace: Workspace, path: str, raw: bytes) -> NotRedacted | None:
    """Reports what redaction cannot change: a secret in the names by which the file is identified."""
    if not any(note.code == "secret-suspected" for note in planner.judge_bytes(path, raw, workspace.noise).notes):
        return None
    return NotRedacted(
        path,
        "the session's id, its key or a path contains a secret, which redaction cannot change",
        "signet-sync remove deletes the session",
    )


def _clean_manifest(
    fields: Mapping[str, Any], body: str, cleaning: Cleaning
) -> tuple[dict[str, Any], str, dict[str, int]]:
    """Redacts a manifest's fields and body and counts the rules; a person may write into it, and other text stays."""
    clean_body = replace_secrets(body)[0] if cleaning is SECRETS else cleaning.body(body)
    found = rules(body, clean_body)
    clean = dict(fields)
    for name in ("project", "harness", *REPOSITORY_FIELDS):
        value = fields.get(name)
        if isinstance(value, str):
            clean[name] = cleaning.line(value)
            found += rules(value, clean[name])
    return clean, clean_body, dict(found)


# ── writing ──


def _record(workspace: Workspace, works: Sequence[_Work], why: str, now_us: int) -> None:
    """Stores the new seals, and when and why each file is redacted, before any file is written."""
    if not works:
        return
    with workspace.database.transaction(durable=True):
        artifacts.store_seals(workspace.database, [work.seal for work in works if work.seal is not None])
        # After a crash the files are unchanged: without signatures the next pass reads them again.
        artifacts.forget_signatures(workspace.database, [work.path for work in works])
        for work in works:
            counted = ", ".join(f"{rule} × {count}" for rule, count in sorted(work.rules.items()))
            told = f"{counted}: {sanitize_line(why)}"
            violations.record_redactions(workspace.database, [work.path], iso(now_us), told)
            seal = work.seal
            if seal is not None and work.before is not None and work.after is not None and work.before != work.after:
                session = (seal.agent_id, seal.session_token, seal.session_id)
                results.reword(workspace.database, session, work.before, work.after)


def _write(workspace: Workspace, work: _Work, cleaning: Cleaning) -> str:
    """Writes one file, unless it changed in the meantime; returns what went wrong."""

    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str] | None:
        clean, clean_body, found = _clean_manifest(fields, body, cleaning)
        return (clean, clean_body) if found else None

    try:
        if work.seal is None:
            manifests.swap(workspace, work.path, change)
        elif work.present is not None:
            done = writing.replace(workspace.root, work.path, work.raw, work.present)
            return "the file changed in the meantime" if done.displaced is not None else ""
    except (OSError, WorkspaceError, RevisionConflict) as error:
        return reason(error)
    return ""
