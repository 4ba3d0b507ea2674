"""What we write into OpenCode's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from signet_sync.capture.harnesses.opencode import folder
from signet_sync.host.harness_settings.harness import Harness, ServerList, bare


def _way(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the newer way if the file has it already, else the one that every version reads."""
    servers = data.get("mcp")
    newer = servers.get("servers") if isinstance(servers, dict) else None
    return ("mcp", "servers") if isinstance(newer, dict) and "type" not in newer else ("mcp",)


# A plug-in is loaded from its folder. `opencode.json` is read whether or not `opencode.jsonc` is beside it.
SETTINGS = Harness(
    "opencode",
    folder,
    bare(
        *("session.created", "session.idle", "session.compacted", "dispose"),
        *("experimental.chat.system.transform", "tool.execute.after"),
    ),
    scripts={"plugins/signet-sync.js": "plugin.js"},
    servers=ServerList(
        lambda environ: os.path.join(folder(environ), "opencode.json"),
        _way,
        lambda words: {"type": "local", "command": list(words)},
    ),
)
