"""Handles a harness's hook: the agent answers, else it is done here, with the context that `pages` composes.

Cheap to import, for harnesses wait for it.
"""

from __future__ import annotations

from signet_sync.app import ask

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_sync.capture.hook import HookAnswer
    from signet_sync.capture.hook_session import HookSession, Injection, Moment
    from signet_sync.storage.locations import StateFolder


def main(arguments: list[str]) -> int:
    """Runs `[--workspace PATH] hook HARNESS [--strict]`; returns the exit code."""
    payload = ask.read_stdin()
    if ask.is_moment(payload):  # only the agent is asked
        with ask.no_longer_than(ask.MOMENT):
            return ask.ask(arguments, payload) or 0
    if (code := ask.ask(arguments, payload)) is not None:
        return code
    from signet_sync.capture import hook  # most hooks are answered by the agent

    return hook.main(arguments, payload, _context)


def answer(
    arguments: list[str], payload: bytes, environ: Mapping[str, str], root: str, folder: StateFolder
) -> HookAnswer:
    """Returns what a hook prints, for the agent of a workspace; what the session gets is recorded by the caller."""
    from signet_sync.capture import hook

    return hook.answer(arguments, payload, _context, environ, root, folder, later=True)


def _context(session: HookSession, words: str | Moment | None, source: str | None, budget: int) -> Injection:
    if isinstance(words, tuple):
        from signet_sync.pages import moments  # only the agent does that

        return moments.answer_moment(session, words)
    from signet_sync.pages import hook_context  # only starts and prompts need it

    if words is None:
        return hook_context.answer_start(session, source, budget)
    return hook_context.answer_prompt(session, words, budget)
