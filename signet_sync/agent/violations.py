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
from signet_sync.contracts.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import UsageError
from signet_sync.index import artifacts, violations
from signet_sync.index.database import Database
from signet_sync.index.violations import OpenViolation
from signet_sync.reconcile import Seal
from signet_sync.vault import files


@dataclass(frozen=True, slots=True)
class Difference:
    """What was sealed and what stands there now: bytes, None where no file can be read, and `state` says why.

    Texts are sanitized: nobody is shown more than the index holds.
    """

    path: str
    sealed_at: str
    sealed: bytes
    present: bytes | None
    state: str

    def before(self) -> str:
        """The sealed text."""
        return _shown(self.sealed)

    def after(self) -> str:
        """The present text, empty where there is none."""
        return _shown(self.present or b"")

    def unified(self) -> str:
        """Both as a unified diff; empty where they differ only in what is never shown."""
        now = f"({self.state})" if self.present is None else f"{self.path} (now)"
        before = _lines(self.before())
        after = [] if self.present is None else _lines(self.after())
        return "".join(difflib.unified_diff(before, after, f"{self.path} (sealed {self.sealed_at})", now))


def _shown(raw: bytes) -> str:
    return sanitize_transcript_v2(raw.decode("utf-8", "replace"))


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")]


def listed(workspace: Workspace) -> list[list[OpenViolation]]:
    """Open violations; those that one pass found together stand together."""
    return [batch.files for batch in violations.batches(workspace.database)]


def difference(database: Database, root: str, path: str, limit: int) -> Difference:
    """What became of a sealed file, of which `limit` bytes are read at most.

    Raises `UsageError` where the path holds no open violation, or its sealed bytes are lost.
    """
    seal = _sealed(database, path)
    sealed = _sealed_bytes(seal)
    found = files.read(root, path, limit)
    if isinstance(found, Found):
        return Difference(path, seal.sealed_at, sealed, found.raw, "")
    return Difference(path, seal.sealed_at, sealed, None, "gone" if found.code == "gone" else found.message)


def _sealed(database: Database, path: str) -> Seal:
    seal = artifacts.seal_of(database, path)
    if seal is None or not violations.is_open(database, path):
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


def restore(workspace: Workspace, path: str) -> None:
    """Writes the sealed bytes back. Raises `UsageError` where they are lost or the path holds no violation."""
    seal = _sealed(workspace.database, path)
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
    seal = _sealed(workspace.database, path)
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
