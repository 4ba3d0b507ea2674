"""Decides when the agent is replaced by a signet-sync that was installed while it ran: once that is complete."""

from __future__ import annotations

from importlib import import_module

from loguru import logger

from signet_sync import __version__
from signet_sync.host import installed_version
from signet_sync.host.installed_version import Mark, Trial, Tried
from signet_sync.storage.database.tables import VERSION
from signet_sync.text.secrets import providers

# Seconds between checks of the installation; after a change it is checked at every beat of the agent.
EVERY = 60.0
# An installer replaces hundreds of files: a change is tried after so many seconds without another.
STILL = 10.0
# A longer trial counts as failed; a failed one is repeated, because a missing part may come later.
LONGEST_TRIAL = 60.0
AGAIN = 600.0

# Modules loaded only when first needed. By then another version may be on the disk.
_LOADED_LATE = (
    "apsw.unicode",
    "frontmatter",
    "signet_sync.entities.daily_summary",
    "signet_sync.entities.erase",
    "signet_sync.entities.relation_items",
    "signet_sync.formats.artifact",
    "signet_sync.sessions.digest.segments",
    "signet_sync.storage.database.salvage",
    "signet_sync.llm.prompts",
    "yaml",
)


def load_the_rest() -> None:
    """Loads the rest of this version while its files are still on the disk."""
    for name in _LOADED_LATE:
        import_module(name)
    providers.load()


class Upgrade:
    """Watches the installation for as long as the agent runs; used by one thread, which never waits here.

    `trouble` is the reason why an installed signet-sync does not replace us.
    """

    def __init__(self, now: float) -> None:
        self.trouble = ""
        self._ours = self._seen = installed_version.mark()
        self._since = self._not_before = now
        self._next = now + STILL
        self._trial: Trial | None = None
        self._loaded = False

    def is_ready(self, now: float) -> bool:
        """Returns whether to be replaced now; costs one `stat` a minute while nothing has changed."""
        if now < self._next:
            return False
        found = installed_version.mark()
        if found != self._seen:
            self._notice(found, now)
        elif found == self._ours:
            self._be_whole()
            self._next = now + EVERY
        elif self._trial is not None:
            return self._judge(self._trial, now)
        elif now - self._since >= STILL and now >= self._not_before:
            self._trial, self._since = Trial(), now
        return False

    def hurry(self) -> None:
        """Checks the installation sooner: a newer version, perhaps just installed, wrote the database."""
        self._next = 0.0

    def refuse(self, why: str, now: float) -> None:
        """Records why the installed version does not replace us for now."""
        self.end()
        told = f"{why}; the agent goes on as {__version__}"
        if told != self.trouble:
            logger.warning("{}", told)
        self.trouble = told
        self._not_before = now + AGAIN

    def end(self) -> None:
        """Ends a trial in progress."""
        if self._trial is not None:
            self._trial.end()
            self._trial = None

    def _be_whole(self) -> None:
        if not self._loaded:
            self._loaded = True
            load_the_rest()

    def _notice(self, found: Mark | None, now: float) -> None:
        self.end()
        self.trouble = ""
        self._seen = found
        self._since = self._not_before = self._next = now

    def _judge(self, trial: Trial, now: float) -> bool:
        tried = trial.result()
        if tried is None:
            if now - self._since < LONGEST_TRIAL:
                return False
            tried = Tried(trouble="it does not come to an end")
        self.end()
        if tried.trouble:
            self.refuse(f"what is installed as signet-sync does not start ({tried.trouble})", now)
        elif tried.schema < VERSION:
            self.refuse(f"signet-sync {tried.version} is installed, which cannot read the database", now)
        else:
            logger.info("signet-sync {} is installed now; the agent makes way for it", tried.version)
            return True
        return False
