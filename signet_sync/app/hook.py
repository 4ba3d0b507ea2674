"""Handles a harness's hook, with the context that `pages` composes; cheap to import, for harnesses wait for it."""

from __future__ import annotations

from signet_sync.capture import hook

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from signet_sync.capture.hook_session import HookSession


def main(arguments: list[str]) -> int:
    """Runs `[--workspace PATH] hook HARNESS [--strict]`; returns the exit code."""
    return hook.main(arguments, _context)


def _context(session: HookSession, words: str | None, source: str | None, budget: int) -> str:
    from signet_sync.pages import hook_context  # only starts and prompts need it

    if words is None:
        return hook_context.at_start(session, source, budget)
    return hook_context.at_prompt(session, words, budget)
