"""Parses the command line with click: commands loaded on demand, options that may stand anywhere, moments."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.commands import COMMANDS, GROUPS, INSTEAD
from signet_sync.errors import UsageError, add_suggestions
from signet_sync.formats.timestamps import parse_moment
from signet_sync.storage.locations import make_relative, now_us

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

_GIVEN = "signet_sync.cli.given"  # in `click.Context.meta`: the shared options that stand before the command


# ── values ──


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
        instant = parse_moment(value, ctx.obj.now_us if ctx and ctx.obj else now_us(), ends=self.ends)
        if instant is None:
            told = "write 2026-03-28, an ISO 8601 time, or 3w (10d) for so long ago"
            self.fail(f"{value!r} is no time: {told}", param, ctx)
        return instant


# ── options that commands share ──


class SharedOption(click.Option):
    """An option that may stand before the command or after it; its value becomes a field of the `Context`.

    One that is given before a command that does not have it is refused. With `everywhere` all commands have it, and the
    program's help tells of it.
    """

    def __init__(self, *given: Any, field: str, everywhere: bool = False, **more: Any) -> None:
        def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
            if value in (None, False, 0):
                return
            setattr(ctx.obj, field, value + getattr(ctx.obj, field) if self.count else value)
            if ctx.parent is None:
                ctx.meta.setdefault(_GIVEN, []).append(self)

        super().__init__(*given, callback=store, expose_value=False, **more)
        self.everywhere = everywhere

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Returns nothing for a command that has it as all have it."""
        return None if self.everywhere and ctx.parent is not None else super().get_help_record(ctx)


def _flag(name: str, text: str, **more: Any) -> click.Option:
    return click.Option([name], is_flag=True, help=text, **more)


# Of `command`; the program itself has the first three.
SHARED: dict[str, click.Option] = {
    "--agent": SharedOption(
        ["--agent"],
        field="agent_flag",
        metavar="ID",
        help="The agent's id (default: SIGNET_AGENT_ID, else that of the working directory, else default).",
    ),
    "--json": SharedOption(["--json"], field="as_json", is_flag=True, help="Print one JSON document on stdout."),
    "--now": SharedOption(
        ["--now"],
        field="now",
        type=Moment(ends=True),
        is_eager=True,  # other times may be told as so long ago
        metavar="TIME",
        help="Use this as the current time (ISO 8601), or the end of this day.",
    ),
    "--yes": _flag("--yes", "Do not ask for confirmation."),
    "--dry-run": _flag("--dry-run", "Show what would be done; change nothing."),
}
EVERYWHERE = (
    SharedOption(
        ["--workspace"],
        field="workspace_flag",
        everywhere=True,
        metavar="PATH",
        type=click.Path(),
        help="The workspace root (default: SIGNET_WORKSPACE, else ~/.agents).",
    ),
    SharedOption(
        ["--db"],
        field="database_flag",
        everywhere=True,
        metavar="PATH",
        type=click.Path(),
        help="The database (default: in the state folder), or :memory:.",
    ),
    SharedOption(
        ["-v", "--verbose"],
        field="verbose",
        everywhere=True,
        count=True,
        help="More output; -vv: tracebacks of unexpected errors.",
    ),
    SharedOption(["-q", "--quiet"], field="quiet", everywhere=True, is_flag=True, help="Less output."),
)


def refuse_unknown(ctx: click.Context) -> None:
    """Raises `click.UsageError` for a shared option, given before the command, that it does not know."""
    known = {name for parameter in ctx.command.params for name in parameter.opts}
    for option in ctx.meta.get(_GIVEN, ()):
        if known.isdisjoint(option.opts) and not ctx.resilient_parsing:
            name = option.opts[-1]
            raise click.NoSuchOption(name, f"{ctx.command_path} has no option {name}", ctx=ctx)


# ── commands and groups ──


class _Described(click.Command):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes its commands, if it has any, its own options, and the names of those that all commands have."""
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        if ctx.parent is not None:
            names = " ".join(max(option.opts, key=len) for option in EVERYWHERE)
            formatter.write_paragraph()
            formatter.write_text(f"Options of all commands: {names} ({ctx.find_root().info_name} --help).")


class Command(_Described):
    """A command that also takes the options of all commands."""

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
            name = parameter.name or ""
            if isinstance(parameter.type, OfWorkspace) and (value := ctx.params.get(name)):
                several = parameter.nargs == -1
                paths = tuple(make_relative(ctx.obj.root, one) for one in (value if several else [value]))
                ctx.params[name] = paths if several else paths[0]
        return super().invoke(ctx)


def command(
    *shared: str, of: click.Command | None = None, name: str | None = None, **about: Any
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Makes a function a command, alone or of a group; it gets the `Context` and its own parameters.

    `shared` are those options of `SHARED` that it takes; it returns its exit code, if that is not 0.
    """

    def make(act: Callable[..., int | None]) -> click.Command:
        made: click.Command = click.command(name, **{"cls": Command, **about})(click.pass_obj(act))  # type: ignore[no-untyped-call]
        made.params += [*(SHARED[one] for one in shared), *EVERYWHERE]
        if isinstance(of, click.Group):
            of.add_command(made)
        return made

    return make


class UnknownCommand(click.UsageError):
    """A word that is no command; `error` says what may have been meant."""

    def __init__(self, error: UsageError, ctx: click.Context) -> None:
        super().__init__(error.message, ctx)
        self.error = error


class Group(_Described, click.Group):
    """A group of commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of its commands."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the first word stands for. Raises `UsageError` with what was perhaps meant."""
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing and not args[0].startswith("-"):
            words = ctx.command_path.partition(" ")[2]
            message = f"{words}{': ' if words else ''}no command {args[0][:60]!r}"
            hint = INSTEAD.get(args[0], f"see {ctx.command_path} --help")
            # The program's, loaded on use, are in no list of its own.
            shown = [
                one for one in self.list_commands(ctx) if one not in self.commands or not self.commands[one].hidden
            ]
            meant = [f"{words} {one}".strip() for one in alike(args[0], shown)]
            raise UnknownCommand(add_suggestions(UsageError(message, hint=hint), meant), ctx)
        return super().resolve_command(ctx, args)


class Program(Group):
    """Loads a command's module only when it is called; `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"signet_sync.cli.{entry.module}")
        # A command named like a builtin has a trailing underscore in its module.
        name = cmd_name.replace("-", "_")
        found: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group.capitalize()):
                listed = [(name.ljust(width), one.help) for name, one in COMMANDS.items() if one.group == group]
                formatter.write_dl(listed)
        formatter.write_paragraph()
        formatter.write_text("signet-sync COMMAND --help explains one.")


def alike(word: str, known: Sequence[str]) -> list[str]:
    """Returns those of some names that are spelled nearly like a word, the best first."""
    from difflib import get_close_matches  # only for errors

    return get_close_matches(word, known, 3, 0.7)


# ── what is read ──


def stdin_text(limit: int) -> str:
    """Reads stdin, UTF-8 with or without a byte order mark, at most the first `limit` bytes.

    Raises `UsageError` (`input-invalid`).
    """
    raw = sys.stdin.buffer.read(limit)
    try:
        # A text cut inside a character is too long in any case.
        return raw.decode("utf-8-sig", "strict" if len(raw) < limit else "replace")
    except UnicodeDecodeError as error:
        message = f"the text is not UTF-8: byte {error.start}"
        raise UsageError(message, hint="convert it first", code="input-invalid") from None


def read_json(source: BinaryIO, command: str) -> Any:
    """Parses JSON. Raises `UsageError`, which refers to the help of `command`."""
    try:
        return json.loads(source.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"the input is not UTF-8: byte {error.start}"
    except (ValueError, RecursionError) as error:
        what = f": {error}" if isinstance(error, json.JSONDecodeError) else " that can be parsed"
        problem = f"the input is not JSON{what}"
    hint = f"see signet-sync {command} --help for the format"
    path = None if source.name == "<stdin>" else source.name
    raise UsageError(problem, path=path, hint=hint, code="input-invalid")
