"""Notices a signet-sync installed while the agent runs: the service manager starts it, or the agent reports it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

from loguru import logger

import signet_sync
from signet_sync import __version__
from signet_sync.text.secrets import providers

# The agent's exit code when its service manager is to start the version that is installed now: `EX_TEMPFAIL` of
# sysexits.h. systemd restarts on it (`RestartForceExitStatus=`), launchd on every code but 0.
EXIT_CODE = 75
# Seconds between checks of the installation; after a change it is checked at every beat of the agent.
EVERY = 60.0
# An installer replaces hundreds of files: it has finished after so many seconds without another change.
STILL = 10.0

# Modules loaded only when first needed. By then another version may be on the disk.
_LOADED_LATE = (
    "apsw.unicode",
    "frontmatter",
    "signet_sync.entities.daily_summary",
    "signet_sync.entities.erase",
    "signet_sync.entities.relation_items",
    "signet_sync.formats.artifact",
    "signet_sync.text.digest.segments",
    "signet_sync.storage.database.row_checks",
    "signet_sync.storage.database.salvage",
    "signet_sync.llm.prompts",
    "yaml",
)

_Signature = tuple[int, int, int, int]  # device, inode, size and time of modification


def load_the_rest() -> None:
    """Loads the rest of this version while its files are still on the disk."""
    for name in _LOADED_LATE:
        import_module(name)
    providers.load()


class Upgrade:
    """Watches the installation for as long as the agent runs; used by one thread, which never waits here.

    `trouble` is what a person has to know or do about an installation that the agent cannot be replaced by.
    """

    def __init__(self, now: float, environ: Mapping[str, str] = os.environ) -> None:
        self.trouble = ""
        self._is_restarted = is_restarted(environ)
        self._ours = self._seen = _signature()
        self._since = now
        self._next = now + STILL
        self._loaded = False

    def is_due(self, now: float) -> bool:
        """Returns whether to end now, to be restarted as the installed version; costs one `stat` a minute."""
        if now < self._next:
            return False
        found = _signature()
        if found != self._seen:
            self._seen, self._since, self._next = found, now, now
        elif found == self._ours:
            self.trouble = ""
            self._next = now + EVERY
            if not self._loaded:
                self._loaded = True
                load_the_rest()
        elif now - self._since >= STILL:
            self._next = now + EVERY
            if found is not None and self._is_restarted:
                logger.info("another signet-sync is installed now; the agent ends to be restarted as that")
                return True
            self._report("was removed" if found is None else "was upgraded")
        return False

    def hurry(self) -> None:
        """Checks the installation sooner: a newer version, perhaps just installed, wrote the database."""
        self._next = 0.0

    def _report(self, what: str) -> None:
        trouble = f"signet-sync {what}; the agent continues as {__version__} until it is restarted"
        if trouble != self.trouble:
            logger.warning("{}", trouble)
        self.trouble = trouble


def is_restarted(environ: Mapping[str, str]) -> bool:
    """Returns whether this process belongs to a service of systemd or launchd, whose units restart the agent."""
    return "NOTIFY_SOCKET" in environ or environ.get("XPC_SERVICE_NAME", "").startswith("dev.signet-sync.agent")


def _signature() -> _Signature | None:
    """Returns a value that changes with every installation, which replaces this file; None while it is missing."""
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
