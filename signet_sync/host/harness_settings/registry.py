"""Settings of coding agents on this machine: our hooks and MCP server put in, taken out, looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from signet_sync.host.harness_settings import claude_code, codex, gemini, openclaw, opencode
from signet_sync.host.harness_settings.condition import Condition, Plan
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.program import Program


class Harness(Protocol):
    """What each module offers. Nothing of it writes: a plan's edits are handed to `files.apply`."""

    NAME: str

    def folder(self, environ: Mapping[str, str]) -> str:
        """The folder that shows that the harness is used here."""

    def install(
        self, program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
    ) -> Plan:
        """What puts our hooks in, and with `access` our MCP server; one of ours that is there is renewed either way.

        Raises `ConfigError` for settings that cannot be edited safely.
        """

    def uninstall(self, environ: Mapping[str, str]) -> Plan:
        """What takes our hooks and our server out. Raises `ConfigError` likewise."""

    def look(self, program: Program, environ: Mapping[str, str]) -> Condition:
        """How it stands; raises nothing for damaged settings."""


HARNESSES: Mapping[str, Harness] = {module.NAME: module for module in (claude_code, codex, gemini, opencode, openclaw)}
