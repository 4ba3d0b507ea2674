"""Completes the names of sessions, handles and other things, and proposes what an unknown name was meant to be.

Reads the index without writing; without one there is nothing to propose. Only for completion and errors: it loads what
a command does without.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from signet_sync.cli.commands import ALIASES, MEANT
from signet_sync.errors import UsageError, proposing
from signet_sync.formats.paths import DEFAULT_AGENT, display
from signet_sync.recall.store.names import Name, names
from signet_sync.storage.database.connection import UNREADABLE, Database
from signet_sync.sync.store import counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import click

    from signet_sync.cli.main import Context
    from signet_sync.cli.parsing import Group

_SHOWN = 3
_COMPLETED = 100
_PATIENCE = 200  # milliseconds that it waits for a busy database
_WIDTH = 72  # characters of what a name stands for
_ALIKE = 70  # of 100: `rapidfuzz`'s ratio of two names
_NEAR = 80  # of 100: the same, for names that begin with another letter
_TOLD = 85  # of 100: how much of a word must be found in what a name stands for
# By an error's code: the kind of the name that was not found.
_KINDS = {
    "unknown-session": "session",
    "unknown-handle": "handle",
    "unknown-memory": "memory",
    "unknown-entity": "entity",
    "unknown-violation": "violation",
    "unknown-agent": "agent",
    "harness-unknown": "harness",
}


# ── completion ──


def completions(context: Context, kind: str, incomplete: str) -> list[CompletionItem]:
    """Returns the names of a kind that begin with a word, each with what it stands for; nothing if that fails."""
    mark = "^" if incomplete.startswith("^") and kind in ("handle", "memory", "project") else ""
    start = incomplete.removeprefix(mark)
    with suppress(*UNREADABLE):  # a line that is being typed is no place for the error
        found = _names(context, kind, start)
        return [CompletionItem(mark + word, help=about) for word, about in islice(_beginning(found, start), _COMPLETED)]
    return []


def _beginning(found: Iterable[Name], start: str) -> Iterator[tuple[str, str]]:
    for name in found:
        for word in (name.value, *name.others):
            # A shell would take what is behind a blank or a colon for another word.
            if word.startswith(start) and not set(word) & set(" :\t\n"):
                yield word, _shortened(name.about)
                break


def _names(context: Context, kind: str, start: str = "") -> list[Name]:
    if kind == "harness":
        from signet_sync.capture.stores.files import HARNESSES

        return [Name(harness, "") for harness in HARNESSES]
    database = Database(context.database_path(), readonly=True, traceless=True, wait_ms=_PATIENCE)
    try:
        if counts.half_enforced(database):  # readers finish an interrupted removal; this may not write
            return []
        return list(names(database, context.agent, kind, start))
    finally:
        database.connection.close()


def _shortened(text: str) -> str:
    return display(" ".join(text.split()))[:_WIDTH]


# ── what was meant ──


def unknown_command(ctx: click.Context, group: Group, name: str) -> UsageError:
    """Returns the error for a word that is no command of a group, with commands that are called nearly so."""
    known = [one for one in group.list_commands(ctx) if not _hidden(ctx, group, one)]
    meant = alike(name, [*known, *(alias for alias in ALIASES if group.named(ctx, alias))])
    words = ctx.command_path.partition(" ")[2]
    meant = [f"{words} {group.named(ctx, one)}".strip() for one in meant]
    if ctx.parent is None:
        below = [f"{one} {name}" for one in known if name in getattr(group.get_command(ctx, one), "commands", ())]
        meant = [MEANT[name]] if name in MEANT else below or meant
    error = UsageError(f"{words}{': ' if words else ''}no command {name[:60]!r}", hint=f"see {ctx.command_path} --help")
    return proposing(error, list(dict.fromkeys(meant)))


def _hidden(ctx: click.Context, group: Group, name: str) -> bool:
    command = group.commands.get(name)  # those of the program are loaded on use, none is hidden
    return command is not None and command.hidden


def add(context: Context, error: UsageError, given: Iterable[tuple[str, str]]) -> None:
    """Adds to an error about a name that does not exist which names of the same agent are like it.

    `given` are the names on the command line, each with the kind of its argument.
    """
    kind = _KINDS.get(error.code)
    if kind is None or error.suggestions:
        return
    with suppress(*UNREADABLE):  # the error that is reported counts
        others = _other_agents(context)
        if others:
            proposing(error, [f"--agent {agent}" for agent in others])
            return
        about = (kind, "session", "handle", "project")
        # The message quotes the name that it is about.
        wanted = next(
            (word.strip() for what, word in given if what in about and repr(word)[1:-1][:50] in error.message), ""
        )
        if not wanted:
            return
        found = _names(context, kind, wanted[0].removeprefix("^")[:1] if kind == "handle" else "")
        if kind == "handle":
            found += [name for other in ("project", "entity", "session") for name in _names(context, other)]
        proposing(error, *_nearest(wanted, found))


def _other_agents(context: Context) -> list[str]:
    """Returns the agents that may be meant, if the one that was chosen has nothing."""
    if context.agent == DEFAULT_AGENT:
        return []
    agents = [name.value for name in _names(context, "agent")]
    return [] if context.agent in agents else alike(context.agent, agents)


def _nearest(wanted: str, found: Sequence[Name]) -> tuple[list[str], list[str]]:
    """Returns the names that are most like a word or stand for it, and each with what it stands for."""
    from rapidfuzz import fuzz, process

    bare = wanted.removeprefix("^")
    spelled = [(word, number) for number, name in enumerate(found) for word in (name.value, *name.others)]
    # What was given may be the beginning of a name only.
    alike = process.extract(
        bare, [word[: len(bare) + 1] for word, _ in spelled], scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=_SHOWN
    )
    chosen = dict.fromkeys(spelled[place][1] for *_, place in alike)
    if not chosen and len(bare) > 3:
        told = process.extract(
            bare.casefold(),
            [name.about.casefold() for name in found],
            scorer=fuzz.partial_ratio,
            score_cutoff=_TOLD,
            limit=_SHOWN,
        )
        chosen = dict.fromkeys(place for *_, place in told)
    names = [found[place] for place in chosen][:_SHOWN]
    return (
        [name.value for name in names],
        [f"{name.value} ({_shortened(name.about)})" if name.about else name.value for name in names],
    )


def alike(word: str, known: Sequence[str]) -> list[str]:
    """Returns those of some names that begin with a word or are spelled nearly like it, the best first."""
    from rapidfuzz import fuzz, process

    found = process.extract(word, known, scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=_SHOWN)
    # Who mistypes a short word seldom begins it with another letter.
    near = [one for one, score, _ in found if score >= _NEAR or one[:1] == word[:1]]
    begun = [one for one in known if len(word) > 2 and one.startswith(word)]
    return list(dict.fromkeys([*begun, *near]))[:_SHOWN]
