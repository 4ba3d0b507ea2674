"""OpenCode: a plug-in of ours, and one database of all sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from signet_sync.host.harness_settings.facts import Environ, HarnessFacts, Payload, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _OpenCode(HarnessFacts):
    folders = ("",)
    pattern = r"opencode\.db"
    ending = r"\.db$"
    depth = 0
    keeps_database = True
    pathless = "a database"
    first_prompt = ("opencode", "--prompt")
    scripts = (("plugins/signet-sync.js", "plugin.js"),)  # a plug-in is loaded from its folder
    script_events = (
        *("session.created", "session.idle", "session.compacted", "dispose"),
        *("experimental.chat.system.transform", "tool.execute.after"),
    )
    servers = "opencode.json"  # it is read whether or not `opencode.jsonc` is beside it

    def homes(self, environ: Environ) -> tuple[str, ...]:
        data = environ.get("XDG_DATA_HOME") or os.path.join(home(environ), ".local/share")
        return os.path.join(data, "opencode"), self.settings_folder(environ)

    def settings_folder(self, environ: Environ) -> str:
        return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")

    def server_way(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the newer way if the file has it already, else the one that every version reads."""
        servers = data.get("mcp")
        newer = servers.get("servers") if isinstance(servers, dict) else None
        return ("mcp", "servers") if isinstance(newer, dict) and "type" not in newer else ("mcp",)

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "local", "command": list(words)}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our plug-in sees the program's words


FACTS = _OpenCode()
