"""Finds memories and pins that a copied workspace shows and no row here has: they are in no file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from signet_sync.formats import managed_block
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, KEPT_COPY, head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.storage import files
from signet_sync.text.phrases import counted

_MEMORY = late(r"\^m-[a-z2-7]{4,12}$")
_PINNED = "- 📌"
_HOW = (
    "signet-sync backup create FILE there, then signet-sync backup restore FILE here"
    " (docs/multi-machine.md says what else stays on a machine)"
)


def lines_of_rows(text: str) -> list[str]:
    """Returns the lines of a page's text that show a memory or something pinned."""
    return [line for line in text.split("\n") if line.startswith(_PINNED) or _MEMORY.search(line)]


def advice(root: str, backups: str, *, indexed: bool) -> str:
    """Returns what a workspace without memories and pins shows of them, and how to bring them; "" if nothing.

    `indexed`: its pages are written from rows, and only copies kept beside them can show those of another machine. With
    a backup in the folder `backups` it is this machine's database that is gone, which the next pass brings back.
    """
    if not indexed and os.path.isdir(backups) and any(name.endswith(".db") for name in os.listdir(backups)):
        return ""
    memories = pins = 0
    where = ""
    for path, text in _kept(root) if indexed else _pages(root):
        shown = lines_of_rows(text)
        here = sum(_MEMORY.search(line) is not None for line in shown)
        # A kept copy without a memory may show a pin of this machine that was taken away since.
        if here or (shown and not indexed):
            where, memories = where or path, memories + here
            pins += sum(line.startswith(_PINNED) for line in shown)
    counts = [(memories, "memory", "memories"), (pins, "pin", "pins")]
    what = " and ".join(counted(count, one, more) for count, one, more in counts if count)
    return f"{where} shows {what} of another machine, which are not here: {_HOW}" if where else ""


def _pages(root: str) -> Iterator[tuple[str, str]]:
    for agent_id in [DEFAULT_AGENT, *files.listing(root, "agents", "")]:
        path = head_page(agent_id)
        found = files.read(root, path, PAGE_LIMIT)
        text = managed_block.generated(found.raw) if isinstance(found, Found) else None
        if text is not None:
            yield path, text


def _kept(root: str) -> Iterator[tuple[str, str]]:
    for agent_id in [DEFAULT_AGENT, *files.listing(root, "agents", "")]:
        folder, _, name = head_page(agent_id).rpartition("/")
        for copy in files.listing(root, folder, f"{name.removesuffix('.md')}.user-"):
            path = f"{folder}/{copy}" if folder else copy
            found = files.read(root, path, PAGE_LIMIT)
            if KEPT_COPY.fullmatch(path) and isinstance(found, Found):
                yield path, found.raw.decode("utf-8", "replace")
