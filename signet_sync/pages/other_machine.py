"""Finds memories that a copied workspace shows and no row here has: they are in no file."""

from __future__ import annotations

import os

from signet_sync.formats import managed_block
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.storage import files

_MEMORY = late(r"\^m-[a-z2-7]{4,12}$")
_HOW = (
    "signet-sync backup create FILE there, then signet-sync backup restore FILE here"
    " (docs/multi-machine.md says what else stays on a machine)"
)


def lines_of_rows(text: str) -> list[str]:
    """Returns the lines of a page's text that show a memory."""
    return [line for line in text.split("\n") if _MEMORY.search(line)]


def advice(root: str, backups: str, *, indexed: bool) -> str:
    """Returns where a workspace without memories shows some, and how to bring them; "" if nowhere.

    `indexed`: its pages are written from rows, and only copies kept beside them can show those of another machine. With
    a backup in the folder `backups` it is this machine's database that is gone, which the next pass brings back.
    """
    if not indexed and os.path.isdir(backups) and any(name.endswith(".db") for name in os.listdir(backups)):
        return ""
    for agent_id in [DEFAULT_AGENT, *files.listing(root, "agents", "")]:
        folder, _, name = head_page(agent_id).rpartition("/")
        copies = files.listing(root, folder, f"{name.removesuffix('.md')}.user-") if indexed else ()
        for path in [os.path.join(folder, copy) for copy in copies] if indexed else [head_page(agent_id)]:
            found = files.read(root, path, PAGE_LIMIT)
            raw = found.raw if isinstance(found, Found) else b""
            text = raw.decode("utf-8", "replace") if indexed else managed_block.read_generated(raw)
            if lines_of_rows(text or ""):
                return f"{path} shows memories of another machine, which are not here: {_HOW}"
    return ""
