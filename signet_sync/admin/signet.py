"""Takes the hooks and MCP servers of Signet out of the harnesses; what only a person may take out is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from signet_sync.errors import SignetSyncError, sentence_of
from signet_sync.host.harness_settings import files, signet_entries
from signet_sync.host.harness_settings.registry import HARNESSES
from signet_sync.pages.signet_daemon import daemon_pid


@dataclass(slots=True)
class TakenOut:
    """What was taken out of which file, what is left to a person, and what failed: the same command tries it again."""

    done: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of it."""
        return {"taken_out": self.done, "by_hand": self.by_hand, "failed": self.failed}


def there(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns a line for each harness that has hooks or servers of Signet."""
    lines = []
    for harness in HARNESSES:
        with suppress(SignetSyncError, OSError):
            if words := signet_entries.found(harness, environ).words:
                lines.append(f"{harness}: Signet's {words}")
    return lines


def take_out(root: str, environ: Mapping[str, str] = os.environ) -> TakenOut:
    """Takes them out, harness by harness; everything else in the files stays, and a copy of each beside it."""
    result = TakenOut()
    for harness in HARNESSES:
        try:
            entries = signet_entries.found(harness, environ)
            for edit in entries.edits:
                files.apply(edit)
        except (SignetSyncError, OSError) as error:
            where = f"{error.path}: " if isinstance(error, SignetSyncError) else ""
            result.failed.append(f"{harness}: what it has of Signet is still there: {where}{sentence_of(error)}")
            continue
        if entries.words:
            result.done.append(f"{harness}: taken out are Signet's {entries.words}")
    result.by_hand += [f"delete Signet's plug-in: {path}" for path in signet_entries.plugins(environ)]
    if (pid := daemon_pid(root)) is not None:
        result.by_hand.append(f"stop Signet's daemon, beside which MEMORY.md and manifests are held back: kill {pid}")
    return result
