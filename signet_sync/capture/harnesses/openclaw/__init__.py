"""OpenClaw: a hook of ours in its gateway, and (in older versions) a JSON Lines file for each session."""

from __future__ import annotations

import os
from collections.abc import Sequence

from signet_sync.host.harness_settings.facts import Environ, HarnessFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signet_sync.host.harness_settings.harness import Program

_ENABLE = "openclaw hooks enable signet-sync  (then restart the gateway)"


class _OpenClaw(HarnessFacts):
    place = ".openclaw"
    folders = ("agents",)
    # A transcript that ended by a reset or was deleted is renamed.
    ending = r"\.jsonl(?:\.(?:reset|deleted)\.[0-9A-Za-z.:-]{1,40})?$"
    pattern = rf"agents/[^/]+/sessions/[^/]+{ending}"
    pathless = "a database"
    parser = "pi"
    instructions = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
    carries_chats = True
    memory = ("workspace/MEMORY.md", "workspace/USER.md", "workspace/memory/*.md")
    scripts = (("hooks/signet-sync/handler.js", "handler.js"), ("hooks/signet-sync/HOOK.md", "HOOK.md"))
    script_events = (
        *("agent:bootstrap", "command:new", "command:reset", "session:auto-reset"),
        "session:compact:after",
    )

    def manual_steps(self, program: Program, flags: Sequence[str] | None) -> tuple[str, ...]:
        """Returns the commands for a person: OpenClaw alone edits its settings, which are JSON5."""
        import json  # hooks need neither
        import shlex

        if flags is None:
            return (_ENABLE,)
        # One server serves all chats, groups included: MEMORY.md is available to all only with an explicit scope.
        words = [*program.start, "mcp", *flags, *(() if "--scope" in flags else ("--scope", "shared"))]
        entry = json.dumps(self.server_entry(words), ensure_ascii=False)
        command = shlex.join(["openclaw", "mcp", "set", "signet-sync", entry])
        return _ENABLE, f"{command}  (the MCP server; OpenClaw alone edits the list of them)"

    def leftovers(self, environ: Environ) -> tuple[str, ...]:
        """Names our server if its words are anywhere in the settings; the words of the hook do not count."""
        from signet_sync.errors import SignetSyncError
        from signet_sync.host.harness_settings import files  # not for hooks

        try:
            raw = files.read(os.path.join(self.own(environ), "openclaw.json")) or b""
        except (SignetSyncError, OSError):
            return ()
        return ("openclaw mcp unset signet-sync",) if b"signet_sync" in raw else ()


FACTS = _OpenClaw()
