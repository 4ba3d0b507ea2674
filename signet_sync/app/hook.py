"""Handles a harness's hook, with the context that `pages` composes; cheap to import, for harnesses wait for it."""

from __future__ import annotations

from signet_sync.capture import hook


def main(arguments: list[str]) -> int:
    """Runs `[--workspace PATH] hook HARNESS [--strict]`; returns the exit code."""
    return hook.main(arguments, _context)


def _context(root: str, agent_id: str, shared: bool) -> str:
    from signet_sync.pages.session_context import opening  # only the start of a session needs it

    return opening(root, agent_id, shared=shared)
