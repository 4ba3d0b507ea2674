"""Reads a file and judges it, in the pass or in a worker."""

from __future__ import annotations

import os

from signet_sync.formats.paths import MEMORY
from signet_sync.formats.seal import pack
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage import files
from signet_sync.storage.files import Vault
from signet_sync.storage.safe_paths import folder
from signet_sync.sync import planner
from signet_sync.sync.index_records import Seal
from signet_sync.sync.planner import JudgeContext, Judgement


def read(vault: Vault | None, path: str, limit: int) -> Found | Trouble:
    """Reads a file of the open folder `memory/`; if it changes meanwhile, reads it again, a few times."""
    if vault is None:
        return Trouble("gone", "its folder is gone")
    return vault.read(path.rpartition("/")[2], limit)


def is_unsettled(found: Found | Trouble) -> bool:
    """Returns whether a file cannot be judged now: it is gone, or changes while it is read."""
    return isinstance(found, Trouble) and found.code in ("gone", "unsettled")


def judge_and_pack(path: str, found: Found | Trouble, judging: JudgeContext) -> Judgement:
    """Judges a file; a new seal holds its bytes in the stored form."""
    judgement = planner.judge(path, found, judging)
    if not judging.keeps:
        return judgement._replace(raw=None)
    if judgement.seal is None or judgement.raw is None:
        return judgement
    return judgement._replace(seal=judgement.seal._replace(packed=pack(judgement.raw)), raw=None)


class FileJudge:
    """Judges files in a worker, by their paths and seals."""

    def __init__(self, root: str, judging: JudgeContext) -> None:
        self._root = root
        self._judge_context = judging._replace(seal_of=_no_seal)
        self._vault: Vault | None = None

    def __call__(self, asked: tuple[str, Seal | None]) -> Judgement | None:
        """Returns None if the pass itself has to look: the file is unsettled, or has to be redacted again."""
        path, seal = asked
        if self._vault is None:
            with folder(self._root, MEMORY) as descriptor:
                self._vault = files.DiskVault(os.dup(descriptor))  # open as long as the worker runs
        found = read(self._vault, path, self._judge_context.max_file_bytes)
        if is_unsettled(found):
            return None
        judging = self._judge_context if seal is None else self._judge_context._replace(seal_of=lambda _: seal)
        judgement = judge_and_pack(path, found, judging)
        return None if judgement.sealed is not None else judgement


def _no_seal(_path: str) -> Seal | None:
    return None
