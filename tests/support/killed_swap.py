"""A writer that dies right after it swapped a file in."""

from __future__ import annotations

import os
import subprocess
import sys

from workbench import ROOT, Vault

# Ends right after its swap: what an editor saved in the moment before it lies under a temporary name.
KILLED = """
import os, sys
from pathlib import Path
from signet_sync.storage import writing
root, path, before, saved, ours = sys.argv[1:]
real = writing._rename

def rename(*given):
    if saved:
        (Path(root) / path).write_text(saved)
    real(*given)
    os._exit(0)

writing._rename = rename
writing.replace(root, path, ours.encode(), before.encode())
"""


def killed_after_its_swap(vault: Vault, path: str, saved: str, ours: str) -> None:
    """Ends a process after it swapped `ours` in for the page, where `saved` was written in between."""
    before = (vault / path).read_text()
    subprocess.run(
        [sys.executable, "-c", KILLED, str(vault.root), path, before, saved, ours],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        timeout=300,
    )
    assert (vault / path).read_text() == ours
