"""Recognizes noise: temporary, test and headless sessions, which are kept and found but not shown one by one."""

from typing import NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.ids import is_in_model_folder

# Which artifact represents a session: the one of the highest kind, the newest of these.
KINDS = {"summary": 3.0, "compaction": 2.0, "transcript": 1.0}
# Noise because its text has no content; another segment of its session may have some.
NOTHING = 2
# Noise because no person spoke: pages have one line a day for all of these.
HEADLESS = 3

# Folders for temporary files of Linux and macOS, whose own are in `/private` as well.
TEMP_FOLDERS = tuple(f"{top}{folder}" for top in ("", "/private") for folder in ("/tmp", "/var/tmp", "/var/folders"))  # noqa: S108 - texts, nothing is opened
TEMP_PROJECTS = tuple(f"{folder}/" for folder in TEMP_FOLDERS)
TEST_SESSIONS = tuple(f"{word}{sign}" for word in ("test", "spec", "fixture", "synthetic", "tmp") for sign in "-_")


def weight(kind: str, noise: int) -> float:
    """Returns an artifact's weight to represent its session; a summary without content only exceeds a transcript."""
    return min(KINDS[kind], 1.5) if noise == NOTHING else KINDS[kind]


class NoiseRule(NamedTuple):
    """The built-in prefixes plus those of the settings."""

    projects: tuple[str, ...] = TEMP_PROJECTS
    sessions: tuple[str, ...] = TEST_SESSIONS
    headless: bool = True

    @classmethod
    def extended(cls, projects: tuple[str, ...], sessions: tuple[str, ...], *, headless: bool = True) -> "NoiseRule":
        """Extends the built-in rule by more prefixes; sessions compare in lower case."""
        return cls(TEMP_PROJECTS + projects, TEST_SESSIONS + tuple(s.lower() for s in sessions), headless)

    def is_noise(
        self, project: str | None, session_id: str | None, session_key: str | None, harness: str | None
    ) -> bool:
        """Returns whether the project is in a temporary folder, or without one id, key or harness look like a test.

        So are our questions to a model, where another program captured them.
        """
        trimmed = js_trim(project or "")
        if trimmed:
            return trimmed.startswith(self.projects) or trimmed in TEMP_FOLDERS or is_in_model_folder(trimmed)
        for identity in (session_id, session_key):
            if identity and js_trim(identity).lower().startswith(self.sessions):
                return True
        return js_trim(harness or "").lower() == "test"
