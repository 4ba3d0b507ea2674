"""Violations in a person's hands: shown with a diff, healed from the seal, or accepted with a reason."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from signet_sync import reconcile as desk
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.artifacts import Content, validate
from signet_sync.contracts.bodies import body_sha256, normalize
from signet_sync.contracts.frontmatter import FrontmatterProblem, parse, unknown_entries, write
from signet_sync.contracts.names import artifact_name
from signet_sync.contracts.observed import Found
from signet_sync.contracts.records import FieldProblem
from signet_sync.contracts.sanitizer import sanitize_line, sanitize_transcript_v1
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import UsageError
from signet_sync.index import artifacts
from signet_sync.reconcile import Seal
from signet_sync.vault import files


@dataclass(frozen=True, slots=True)
class Violation:
    """One open violation with what can be done about it."""

    path: str
    code: str
    message: str
    found_at: str
    restorable: bool


def listed(workspace: Workspace) -> list[list[Violation]]:
    """Open violations; those that one pass found together stand together."""
    batches: dict[str, list[Violation]] = {}
    for batch, path, code, message, found_at, restorable in workspace.database.execute(
        "select v.batch, v.path, v.code, v.message, v.found_at, coalesce(length(s.packed), 0) > 0 from violations v"
        " left join seals s on s.path = v.path order by v.found_at, v.path"
    ):
        batches.setdefault(batch, []).append(Violation(path, code, message, found_at, bool(restorable)))
    return list(batches.values())


def _sealed(workspace: Workspace, path: str) -> Seal:
    seal = artifacts.seal_of(workspace.database, path)
    open_ = workspace.database.value("select count(*) from violations where path = ?", (path,))
    if seal is None or not open_:
        raise UsageError(
            f"{path} is no open violation",
            path=path,
            hint="signet-sync violations list shows them",
            code="unknown-violation",
        )
    return seal


def _sealed_bytes(seal: Seal) -> bytes:
    raw = desk.unpack(seal)
    if raw is None:
        let_go = seal.packed is not None and not seal.packed
        raise UsageError(
            "the sealed bytes of this file "
            + ("were let go (seals.keep_days, seals.max_bytes)" if let_go else "were lost with a database"),
            path=seal.path,
            hint="restore it from a copy of your own, or accept it with --reason",
        )
    return raw


def diff(workspace: Workspace, path: str) -> str:
    """A unified diff from the sealed text to the present one, both sanitized."""
    seal = _sealed(workspace, path)
    raw = _sealed_bytes(seal)
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    present = found.raw if isinstance(found, Found) else b""
    return "".join(
        difflib.unified_diff(
            _lines(raw),
            _lines(present),
            f"{path} (sealed {seal.sealed_at})",
            f"{path} (now)" if present else "(gone)",
        )
    )


def _lines(raw: bytes) -> list[str]:
    text = sanitize_transcript_v1(raw.decode("utf-8", "replace"))
    return [line + "\n" for line in text.split("\n")]


def restore(workspace: Workspace, path: str) -> None:
    """Writes the sealed bytes back. Raises `UsageError` where they are lost or the path holds no violation."""
    seal = _sealed(workspace, path)
    raw = _sealed_bytes(seal)
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if isinstance(found, Found):
        if found.raw != raw and files.replace(workspace.root, path, raw, found.raw).displaced is not None:
            raise UsageError("it was saved again meanwhile", path=path, hint="look at it once more, then restore again")
    elif found.code == "gone":
        files.create_once(workspace.root, path, raw)
    else:
        raise UsageError(found.message, path=path, hint="move away what stands there, then restore again")


def accept(workspace: Workspace, path: str, reason: str, now_us: int) -> None:
    """Seals what the file holds now, and corrects its `content_sha256`: the one sanctioned write to an immutable file.

    Raises `UsageError` where the present file is no artifact of the same agent and session.
    """
    seal = _sealed(workspace, path)
    name = artifact_name(path.rpartition("/")[2])
    found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
    if name is None or not isinstance(found, Found):
        raise UsageError(
            "there is no file to accept",
            path=path,
            hint="restore it, or make its absence official with: signet-sync remove",
        )
    try:
        document = parse(found.raw)
        body = normalize(document.body)
        actual = body_sha256(body)
        artifact = validate(name.kind, {**document.fields, "content_sha256": actual})
    except (FrontmatterProblem, FieldProblem) as problem:
        raise UsageError(
            f"it cannot be accepted as it is: {problem}", path=path, hint="mend what is named, or restore it"
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
        known = frozenset(type(artifact).model_fields)
        fields = {**artifact.fields(), **dict(unknown_entries(document.head, known))}
        raw = write(fields, document.body.removesuffix("\n"))
    judgement = desk.judge(
        path,
        Found(raw, found.signature),
        desk.Bench(desk.Tombstones(), workspace.noise, lambda _: None, iso(now_us), workspace.settings.max_file_bytes),
    )
    if judgement.verdict != "indexed" or judgement.seal is None:
        raise UsageError(
            f"it cannot be accepted as it is: {judgement.message}",
            path=path,
            hint="mend what is named, or restore it",
        )
    # The new seal first: after a crash in between the file is a violation of it, and can be accepted or restored again.
    with workspace.database.transaction(durable=True):
        artifacts.store_seals(workspace.database, [judgement.seal._replace(packed=desk.pack(raw))])
        workspace.database.set_meta(f"accepted:{path}", f"{iso(now_us)} {sanitize_line(reason)}")
    if raw != found.raw:
        files.replace(workspace.root, path, raw, found.raw)
