"""Reads immutable files at a git revision as seals, so that a check finds what changed since."""

from __future__ import annotations

from signet_sync.formats.filename import IMMUTABLE_KINDS, artifact_name
from signet_sync.formats.seal import pack
from signet_sync.formats.snapshot import Found, Signature, Snapshot
from signet_sync.history import git_program, revisions
from signet_sync.sync import planner
from signet_sync.sync.planner import JudgeContext, Seal, Tombstones


class RevisionBaseline:
    """The files that changed since a revision, and a judging with the seals of that revision.

    Raises what `revisions.at` raises.
    """

    def __init__(self, root: str, name: str, seen: Snapshot, judging: JudgeContext) -> None:
        revision = revisions.at(root, name)
        self.changed = frozenset(revision.changed(seen))
        # If git knows none of the files nothing was compared: that must not be reported as a vault without problems.
        first = sorted(seen.files)[:1] if not self.changed else []
        self.is_blind = bool(git_program.ignored(root, first)) and not revision.knows(first[0])
        sealed = [path for path in self.changed if self._is_immutable(path)]
        self._files = revision.files(sorted(sealed))
        self._now = judging
        self.bench = judging._replace(seal_of=self._seal)

    @staticmethod
    def _is_immutable(path: str) -> bool:
        name = artifact_name(path.rpartition("/")[2])
        return name is not None and name.kind in IMMUTABLE_KINDS

    def bytes_of(self, path: str) -> bytes | None:
        """Returns the bytes of an immutable file at the revision."""
        return self._files.get(path)

    def _seal(self, path: str) -> Seal | None:
        """Returns the seal of the revision's file; None if it did not exist then, or was not valid."""
        raw = self._files.get(path)
        if raw is None:
            return None
        unsealed = self._now._replace(tombstones=Tombstones(), seal_of=lambda _: None)
        seal = planner.judge(path, Found(raw, Signature(len(raw), 0, 0, 0)), unsealed).seal
        return seal._replace(packed=pack(raw)) if seal is not None else None
