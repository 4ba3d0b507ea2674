"""OpenCode: a plug-in of ours, and one database of all sessions."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.facts import Environ, HarnessFacts, Payload
from signet_sync.host.folders import home


def folder(environ: Environ) -> str:
    """Returns its folder of settings."""
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")


class _OpenCode(HarnessFacts):
    folders = ("",)
    pattern = r"opencode\.db"
    ending = r"\.db$"
    depth = 0
    pathless = "a database"
    first_prompt = ("opencode", "--prompt")

    def homes(self, environ: Environ) -> tuple[str, ...]:
        data = environ.get("XDG_DATA_HOME") or os.path.join(home(environ), ".local/share")
        return os.path.join(data, "opencode"), folder(environ)

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our plug-in sees the program's words


FACTS = _OpenCode()
