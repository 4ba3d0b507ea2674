"""What we write into OpenClaw's settings."""

from __future__ import annotations

import json
import os
import shlex

from signet_sync.capture.harnesses.openclaw import FACTS
from signet_sync.errors import SignetSyncError
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.harness import NAME, Environ, Flags, Harness, bare, program_and_arguments
from signet_sync.host.harness_settings.program import Program

_ENABLE = "openclaw hooks enable signet-sync  (then restart the gateway)"


def _by_hand(program: Program, flags: Flags) -> tuple[str, ...]:
    """Returns the commands for a person: OpenClaw alone edits its settings, which are JSON5."""
    if flags is None:
        return (_ENABLE,)
    # One server serves all chats, groups included: MEMORY.md is available to all only with an explicit scope.
    words = [*program.start, "mcp", *flags, *(() if "--scope" in flags else ("--scope", "shared"))]
    entry = json.dumps(program_and_arguments(words), ensure_ascii=False)
    command = shlex.join(["openclaw", "mcp", "set", NAME, entry])
    return _ENABLE, f"{command}  (the MCP server; OpenClaw alone edits the list of them)"


def _left(environ: Environ) -> tuple[str, ...]:
    """Names our server if its words are anywhere in the settings; the words of the hook do not count."""
    try:
        raw = files.read(os.path.join(FACTS.own(environ), "openclaw.json")) or b""
    except (SignetSyncError, OSError):
        return ()
    return (f"openclaw mcp unset {NAME}",) if b"signet_sync" in raw else ()


SETTINGS = Harness(
    "openclaw",
    FACTS.own,
    bare("agent:bootstrap", "command:new", "command:reset", "session:auto-reset", "session:compact:after"),
    scripts={"hooks/signet-sync/handler.js": "handler.js", "hooks/signet-sync/HOOK.md": "HOOK.md"},
    by_hand=_by_hand,
    left=_left,
)
