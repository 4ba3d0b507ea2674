"""Parses the command line with click: options that may stand anywhere, groups with aliases, moments."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from signet_sync.cli.commands import ALIASES, INSTEAD
from signet_sync.errors import UsageError, proposing
from signet_sync.formats.timestamps import parse_moment
from signet_sync.storage.locations import make_relative, now_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GIVEN = "signet_sync.cli.given"  # in `click.Context.meta`, which the contexts of one command line share


class SharedOption(click.Option):
    """An option that may stand before the command, between the words of its name, or after them.

    The program declares each once, and so does a command that gives it a meaning or a default of its own. With
    `everywhere` it is for all commands.
    """

    def __init__(self, *given: Any, everywhere: bool = False, **more: Any) -> None:
        super().__init__(*given, **more)
        self.everywhere = everywhere

    @property
    def long_name(self) -> str:
        """Returns the name by which its values are shared."""
        return max(self.opts, key=len)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Returns the value from here or from before. Raises `click.UsageError` if both are given and differ."""
        value, source = super().consume_value(ctx, opts)
        given = _read_given(ctx)
        before = given.get(self.long_name)
        if source is not ParameterSource.COMMANDLINE:
            return (value, source) if before is None else (before, ParameterSource.COMMANDLINE)
        if self.count:
            value += before or 0
        elif before not in (None, value) and not ctx.resilient_parsing:
            raise click.UsageError(f"{self.long_name} is given twice, as {before!r} and as {value!r}", ctx)
        given[self.long_name] = value
        return value, source

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Returns nothing for a command that has it from the program, whose own help shows it."""
        return None if self in _list_passed_on(ctx) else super().get_help_record(ctx)


def _read_given(ctx: click.Context) -> dict[str, Any]:
    given: dict[str, Any] = ctx.meta.setdefault(_GIVEN, {})
    return given


def _list_passed_on(ctx: click.Context) -> list[SharedOption]:
    """Returns the program's shared options that a command has besides its own."""
    command = ctx.command
    if ctx.parent is None:
        return []
    own = {name for parameter in command.params for name in parameter.opts}
    return [
        option
        for option in ctx.find_root().command.params
        if isinstance(option, SharedOption)
        and (option.everywhere or isinstance(command, click.Group))
        and own.isdisjoint(option.opts)
    ]


def refuse_unknown(ctx: click.Context) -> None:
    """Raises `click.UsageError` for a shared option, given before the command, that it does not know."""
    known = {name for parameter in ctx.command.params for name in parameter.opts}
    known.update(name for option in _list_passed_on(ctx) if option.everywhere for name in option.opts)
    for name in _read_given(ctx):
        if name not in known and not ctx.resilient_parsing:
            raise click.NoSuchOption(name, f"{ctx.command_path} has no option {name}", ctx=ctx)


class UnknownCommand(click.UsageError):
    """A word that is no command; `error` says what may have been meant."""

    def __init__(self, error: UsageError, ctx: click.Context) -> None:
        super().__init__(error.message, ctx)
        self.error = error


class _Described(click.Command):
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns its own parameters and the program's."""
        own = super().get_params(ctx)
        return [*own, *(option for option in _list_passed_on(ctx) if option not in own)]

    def get_short_help_str(self, limit: int = 45) -> str:
        """Returns its first sentence; of one that is too long the clauses that fit."""
        whole = super().get_short_help_str(1000)
        ends = [] if len(whole) <= limit else [found.start() for found in re.finditer("[;:,] ", whole[:limit])]
        return f"{whole[: ends[-1]]}." if ends else super().get_short_help_str(limit)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes its commands, if it has any, its own options, and the names of the program's."""
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        names = [option.long_name for option in _list_passed_on(ctx) if option.everywhere]
        if names:
            formatter.write_paragraph()
            formatter.write_text(f"Options of all commands: {' '.join(names)} ({ctx.find_root().info_name} --help).")


class Command(_Described):
    """A command that also takes the program's options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does; refuses options, given before the command, that it does not know."""
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click forgets it where a value is missing
            raise
        refuse_unknown(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Calls the command; a path of the workspace is given to it as the workspace has it."""
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if isinstance(parameter.type, OfWorkspace) and value:
                several = [make_relative(ctx.obj.root, one) for one in (value if parameter.nargs == -1 else [value])]
                ctx.params[parameter.name or ""] = tuple(several) if parameter.nargs == -1 else several[0]
        return super().invoke(ctx)


class Group(_Described, click.Group):
    """A group of commands in the order in which they were added, each also called by its aliases."""

    command_class = Command
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of its commands."""
        return list(self.commands)

    def _shown(self, ctx: click.Context) -> list[str]:
        hidden = {one for one, command in self.commands.items() if command.hidden}  # none of the program, loaded on use
        return [one for one in self.list_commands(ctx) if one not in hidden]

    def named(self, ctx: click.Context, name: str) -> str | None:
        """Returns the name of the command that a name or an alias stands for."""
        names = self.list_commands(ctx)
        return next((one for one in (name, *ALIASES.get(name, ())) if one in names), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the first word stands for. Raises `UsageError` with what was perhaps meant."""
        name = self.named(ctx, args[0])
        if name is None and not ctx.resilient_parsing and not args[0].startswith("-"):
            words = ctx.command_path.partition(" ")[2]
            message = f"{words}{': ' if words else ''}no command {args[0][:60]!r}"
            hint = INSTEAD.get(args[0], f"see {ctx.command_path} --help")
            meant = [f"{words} {one}".strip() for one in alike(args[0], self._shown(ctx))]
            raise UnknownCommand(proposing(UsageError(message, hint=hint), meant), ctx)
        return super().resolve_command(ctx, args if name is None else [name, *args[1:]])


def alike(word: str, known: Sequence[str]) -> list[str]:
    """Returns those of some names that are spelled nearly like a word, the best first."""
    from difflib import get_close_matches  # only for errors

    return get_close_matches(word, known, 3, 0.7)


class OfWorkspace(click.types.StringParamType):
    """What may be a path of the workspace, read when it is known which workspace that is (see `Command.invoke`)."""


class Moment(click.types.StringParamType):
    """A day (2026-03-28), an ISO 8601 time, or `10d`, `3w`, `4 weeks ago`. Microseconds since 1970 UTC.

    With `ends` a day alone stands for its end.
    """

    name = "time"

    def __init__(self, *, ends: bool = False) -> None:
        self.ends = ends

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the instant. Raises `click.BadParameter`."""
        if isinstance(value, int):
            return value
        instant = parse_moment(
            value, ctx.obj.now_us if ctx is not None and ctx.obj is not None else now_us(), ends=self.ends
        )
        if instant is None:
            self.fail(
                f"{value!r} is no time: write 2026-03-28, an ISO 8601 time, or 3w (10d) for so long ago", param, ctx
            )
        return instant


def stdin_text(limit: int) -> str:
    """Reads stdin, UTF-8 with or without a byte order mark, at most the first `limit` bytes.

    Raises `UsageError` (`input-invalid`).
    """
    raw = sys.stdin.buffer.read(limit)
    try:
        # A text cut inside a character is too long in any case.
        return raw.decode("utf-8-sig", "strict" if len(raw) < limit else "replace")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the text is not UTF-8: byte {error.start}", hint="convert it first", code="input-invalid"
        ) from None


def read_json(source: str, command: str) -> Any:
    """Parses JSON from a file, or from stdin for `-`. Raises `UsageError`, which refers to the help of `command`."""
    try:
        if source == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        raise UsageError(
            f"the input cannot be read: {error.strerror}", path=source, hint="give a file, or - for stdin"
        ) from None
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"the input is not UTF-8: byte {error.start}"
    except json.JSONDecodeError as error:
        problem = f"the input is not JSON: {error}"
    except RecursionError:
        problem = "the input is not JSON that can be parsed: it is nested too deeply"
    except ValueError:
        problem = "the input is not JSON that can be parsed: a number has too many digits"
    raise UsageError(
        problem,
        path=None if source == "-" else source,
        hint=f"see signet-sync {command} --help for the format",
        code="input-invalid",
    )
