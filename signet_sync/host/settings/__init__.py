"""Settings of coding agents on this machine: our hooks put in, taken out and looked at, one module a harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from signet_sync.host.settings import claude_code, codex, gemini, openclaw, opencode
from signet_sync.host.settings.condition import Condition, Plan
from signet_sync.host.settings.program import Program


class Harness(Protocol):
    """What each module offers. Nothing of it writes: a plan's edits are handed to `files.apply`."""

    NAME: str

    def folder(self, environ: Mapping[str, str]) -> str:
        """The folder that shows that the harness is used here."""

    def install(self, program: Program, environ: Mapping[str, str], *, trust: bool = False) -> Plan:
        """What puts our hooks in. Raises `ConfigError` for settings that cannot be edited safely."""

    def uninstall(self, environ: Mapping[str, str]) -> Plan:
        """What takes our hooks out. Raises `ConfigError` likewise."""

    def look(self, program: Program, environ: Mapping[str, str]) -> Condition:
        """How it stands; raises nothing for damaged settings."""


HARNESSES: Mapping[str, Harness] = {module.NAME: module for module in (claude_code, codex, gemini, opencode, openclaw)}
