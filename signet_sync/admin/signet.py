"""Takes the hooks and MCP servers of Signet out of the harnesses; what only a person may take out is named."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signet_sync.errors import SignetSyncError, reason
from signet_sync.host.harness_settings import codex, files, signet_hooks, signet_servers
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
    """Returns a line for each file that has hooks or servers of Signet which can be taken out."""
    lines = []
    for harness in signet_hooks.HARNESSES:
        hooks = signet_hooks.found(harness, environ)
        lines += [f"{hooks.path}: Signet's hooks for {', '.join(hooks.events)}"] if hooks.events else []
    for harness in signet_servers.HARNESSES:
        servers = signet_servers.found(harness, environ)
        if servers.names and not servers.by_hand:
            lines.append(f"{servers.path}: Signet's MCP servers {', '.join(servers.names)}")
    return lines


def take_out(root: str, environ: Mapping[str, str] = os.environ) -> TakenOut:
    """Takes them out, file by file; everything else in the files stays."""
    result = TakenOut()
    plans = [(harness, "hooks", signet_hooks.taking_out) for harness in signet_hooks.HARNESSES]
    plans += [(harness, "MCP servers", signet_servers.taking_out) for harness in signet_servers.HARNESSES]
    for harness, what, planned in plans:
        try:
            plan = planned(harness, environ)
            if plan is not None:
                files.apply(plan[0])
                result.done.append(f"{harness}: Signet's {what} are taken out of {plan[0].path}")
                if harness == codex.NAME:  # it knows hooks by their position
                    result.by_hand.append("codex: if it asks again whether it may run hooks: /hooks inside Codex")
        except (SignetSyncError, OSError) as error:
            why = f"{error.message}: {error.hint}" if isinstance(error, SignetSyncError) else reason(error)
            result.failed.append(f"{harness}: Signet's {what} are still there: {why}")
    for harness in signet_servers.HARNESSES:
        servers = signet_servers.found(harness, environ)
        if servers.by_hand:
            result.by_hand += [f"{harness} mcp remove {shlex.quote(name)}" for name in servers.names]
    result.by_hand += [f"delete Signet's plug-in: {path}" for path in signet_servers.plugins(environ)]
    if (pid := daemon_pid(root)) is not None:
        result.by_hand.append(f"stop Signet's daemon, beside which MEMORY.md and manifests are held back: kill {pid}")
    return result
