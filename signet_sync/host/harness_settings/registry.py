"""Lists the supported harnesses and the interface of their modules: install, uninstall and check our hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from signet_sync.host.harness_settings import claude_code, codex, gemini, openclaw, opencode
from signet_sync.host.harness_settings.condition import Condition, SettingsPlan
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.program import Program


class Harness(Protocol):
    """The interface of each module. Nothing in it writes: a plan's edits are passed to `files.apply`."""

    NAME: str

    def folder(self, environ: Mapping[str, str]) -> str:
        """Returns the folder that shows that the harness is used here."""

    def install(
        self, program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
    ) -> SettingsPlan:
        """Plans to add our hooks, and with `access` our MCP server; an existing server of ours is renewed in any case.

        Raises `ConfigError` for settings that cannot be edited safely.
        """

    def uninstall(self, environ: Mapping[str, str]) -> SettingsPlan:
        """Plans to remove our hooks and our server. Raises `ConfigError` likewise."""

    def condition(self, program: Program, environ: Mapping[str, str]) -> Condition:
        """Reports the state; never raises for damaged settings."""


HARNESSES: Mapping[str, Harness] = {module.NAME: module for module in (claude_code, codex, gemini, opencode, openclaw)}
