"""Temp and test sessions: indexed and searchable, but not shown on pages (contracts, *MEMORY.md*, rules of Signet)."""

from __future__ import annotations

from dataclasses import dataclass

from signet_sync.contracts.bodies import js_trim

TEMP_PROJECTS = ("/tmp/", "/private/tmp/")  # noqa: S108 - prefixes of text, nothing is opened
TEST_SESSIONS = ("test-", "spec-", "fixture-", "synthetic-", "tmp-")


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """The built-in prefixes plus those of the settings."""

    projects: tuple[str, ...] = TEMP_PROJECTS
    sessions: tuple[str, ...] = TEST_SESSIONS

    @classmethod
    def extended(cls, projects: tuple[str, ...], sessions: tuple[str, ...]) -> NoiseRule:
        """The built-in rule with more prefixes; sessions compare in lower case."""
        return cls(TEMP_PROJECTS + projects, TEST_SESSIONS + tuple(s.lower() for s in sessions))

    def is_noise(
        self, project: str | None, session_id: str | None, session_key: str | None, harness: str | None
    ) -> bool:
        """Project in a temporary folder; or no project and a test-like id, key or harness."""
        trimmed = js_trim(project or "")
        if trimmed:
            return trimmed.startswith(self.projects)
        for identity in (session_id, session_key):
            if identity and js_trim(identity).lower().startswith(self.sessions):
                return True
        return js_trim(harness or "").lower() == "test"
