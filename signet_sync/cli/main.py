"""Runs the command line: click commands loaded on demand, errors turned into exit codes and JSON in one place."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from signet_sync import __version__
from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.text.phrases import counted as counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from signet_sync.settings.model import Settings
    from signet_sync.storage.state_dir import StateFolder
    from signet_sync.sync.read_only import Place
    from signet_sync.sync.workspace import Workspace

# Name: module and one line of help; the module contains a click command of the same name ("-" as "_"). No module may be
# called `run`: it would replace the function of that name.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("setup", "Make an empty workspace."),
    "demo": ("demo", "Make and index a workspace of sample sessions, and show what comes of it."),
    "run": ("agent", "Keep the index and MEMORY.md true: the background agent."),
    "reindex": ("reindex", "One full pass: validate, index, write MEMORY.md."),
    "check": ("check", "Judge the files alone; write nothing."),
    "render": ("render", "Print (or write) the generated page of an agent."),
    "status": ("status", "Is the agent alive, what is indexed, what is wrong."),
    "search": ("search", "Full text over all artifacts."),
    "recall": ("recall", "What answers a question: memories and facts, threads, summaries, transcripts."),
    "open": ("open", "Show a session: its segments, paths, lineage."),
    "expand": ("expand", "Follow a handle of MEMORY.md down to the transcript."),
    "graph": ("graph", "Draw the temporal graph: Mermaid, DOT or JSON."),
    "violations": ("violations", "Sealed files that changed or went: show, restore, accept."),
    "remove": ("remove", "Remove a session for good, to the last byte."),
    "redact": ("redact", "Take secrets out of sealed files, to the last byte."),
    "checkpoint": ("history", "Commit the workspace as it is now."),
    "history": ("history", "What happened to the workspace: list, compare, restore."),
    "hook": ("hook", "Take an event of a harness's hook (harnesses call this)."),
    "context": ("context", "What a session is told at its start."),
    "remember": ("memory", "Remember a text: MEMORY.md shows it, recall finds it."),
    "forget": ("memory", "Forget a memory, to the last byte."),
    "pin": ("memory", "Pin something to the head of MEMORY.md."),
    "unpin": ("memory", "Unpin it: decay and budget decide again."),
    "dream": ("dream", "Promote what was recalled often into MEMORY.md."),
    "stats": ("dream", "How much is remembered, recalled and promoted."),
    "entity": ("entity.group", "Keep curated files about the user, parts and relationships."),
    "mcp": ("mcp", "Serve an agent's memory as MCP tools over stdio or HTTP."),
    "ui": ("web", "Look at the workspace in a browser, on this machine alone."),
    "backup": ("backup", "Write, list and restore backups of what no file holds."),
    "export": ("bundle", "Write memories, pins and the like as JSON Lines."),
    "import-bundle": ("bundle", "Take in what export wrote."),
    "session": ("session", "Write a session's end or compaction into the vault."),
    "transcript": ("transcript", "Keep what is said in a session while it runs."),
    "hooks": ("hooks", "Let coding agents hand their sessions over."),
    "import": ("import_", "Write past sessions of a harness into the vault."),
    "service": ("service", "Install the agent as a service of systemd or launchd."),
    "eject": ("eject", "Leave a workspace: service, hooks and state go, the vault stays."),
    "logs": ("logs", "Where the logs are; follow them."),
    "telemetry": ("telemetry", "Access counters: show or reset."),
    "doctor": ("doctor", "Check the installation end to end."),
    "notify": ("notify", "Tell a line as the agent tells of trouble: a try."),
    "completion": ("completion", "Print the completion script of a shell."),
}


class _ReaderGone(Exception):
    """The reader of our stdout is gone. click would exit with 1, which means that problems were found."""


@contextmanager
def _noticing_the_reader() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGone from None


class LazyGroup(click.Group):
    """Loads a command's module only when it is called; `--help` needs none of them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _noticing_the_reader():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _noticing_the_reader():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"signet_sync.cli.{entry[0]}")
        # A command named like a builtin has a trailing underscore in its module.
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


class Context:
    """The options before the command's name; everything else is computed on use."""

    def __init__(
        self,
        workspace_flag: str | None = None,
        database_flag: str | None = None,
        verbose: int = 0,
        quiet: bool = False,
    ) -> None:
        self.workspace_flag = workspace_flag
        self.database_flag = database_flag
        self.verbose = verbose
        self.quiet = quiet
        self.warnings: list[str] = []

    @property
    def root(self) -> str:
        """The workspace root, absolute."""
        from signet_sync.storage.locations import locate_workspace

        return locate_workspace(self.workspace_flag)

    def command_line(self, words: str, root: str | None = None) -> str:
        """Returns a command line that can be pasted into a shell; it names the workspace only if necessary."""
        import shlex

        from signet_sync.storage.locations import locate_workspace

        root = root or self.root
        place = "" if root == locate_workspace(None) else f"--workspace {shlex.quote(root)} "
        return f"signet-sync {place}{words}"

    def state(self) -> StateFolder:
        """Returns the state folder, located without writing."""
        from signet_sync.storage import state_dir

        return state_dir.locate(self.root)

    def database_path(self) -> str:
        """Returns the path of the database: `--db`, `SIGNET_DB`, else in the state folder."""
        chosen = self.database_flag or os.environ.get("SIGNET_DB")
        if chosen:
            return chosen if chosen == ":memory:" else os.path.abspath(os.path.expanduser(chosen))
        return self.state().database

    @property
    def chosen_database(self) -> str | None:
        """The database that flag or environment name, or None for the default path."""
        chosen = self.database_flag or os.environ.get("SIGNET_DB")
        if not chosen or chosen == ":memory:":
            return chosen or None
        return os.path.abspath(os.path.expanduser(chosen))

    def place(self, *, anyway: bool = False) -> Place:
        """Returns where the workspace and its index are, for reading; `anyway` as in `settings`."""
        from functools import partial

        from signet_sync.sync.read_only import Place

        def opener(*given: Any, **options: Any) -> AbstractContextManager[Workspace]:
            from signet_sync.app.workspace import opened

            return opened(*given, **options)

        settings = partial(self.settings, anyway=anyway)
        return Place(self.root, self.chosen_database, settings, self.command_line, opener)

    def settings(self, *, anyway: bool = False) -> Settings:
        """Returns the settings; prints problems of the workspace's own file to stderr.

        With `anyway` also prints problems of the user's file instead of raising `ConfigError`: for commands that
        programs call
        and that could not be repeated.
        """
        from signet_sync.settings import model

        settings, remarks = model.load(self.root, anyway=anyway)
        self.warnings += map(str, remarks)
        for remark in remarks:
            self.say(f"warning: {remark}")
        return settings

    def log_to_person(self) -> None:
        """Sends log lines to stderr as plain text from now on; no warnings if quiet."""
        from signet_sync import log

        log.for_people("ERROR" if self.quiet else "WARNING")

    def say(self, text: str) -> None:
        """Prints a line for the person on stderr, unless quiet."""
        if not self.quiet:
            click.echo(text, err=True)


pass_context = click.make_pass_decorator(Context)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="Exit codes: 0 fine · 1 problems found · 2 usage · 3 workspace or database unusable · "
    "4 another agent runs · 5 halted for safety · 130 interrupted.",
)
@click.option("--workspace", metavar="PATH", help="The workspace root (else SIGNET_WORKSPACE, else ~/.agents).")
@click.option(
    "--db", "database", metavar="PATH", help="The database (else in the state folder); :memory: for one command."
)
@click.option("-v", "--verbose", count=True, help="Say more; twice: tracebacks of unexpected errors.")
@click.option("-q", "--quiet", is_flag=True, help="Say less.")
@click.version_option(__version__, prog_name="signet-sync", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context, workspace: str | None, database: str | None, verbose: int, quiet: bool) -> None:
    """Keeps a vault of agent memory valid, searchable and summed up in MEMORY.md."""
    ctx.obj = Context(workspace, database, verbose, quiet)
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str]) -> int:
    """Runs one command line; returns the exit code. Prints no traceback without `-vv`."""
    wants_json = "--json" in arguments
    verbose = sum(a.count("v") for a in arguments if a.startswith("-v") and set(a[1:]) == {"v"})
    try:
        result = group.main(args=arguments, prog_name="signet-sync", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except SignetSyncError as error:
        return _fail(error.code, error.message, error.hint, error.path, error.exit_code, wants_json, error.details)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", "interrupted", "", None, 130, wants_json)
    except click.UsageError as error:
        if isinstance(error, click.MissingParameter):
            from signet_sync.cli import absent

            try:
                absent.look(error)
            except SignetSyncError as first:
                return _fail(first.code, first.message, first.hint, first.path, first.exit_code, wants_json)
        if error.format_message().startswith("Usage: ") and not wants_json:
            # For a group without a command click's error is the whole help.
            click.echo(error.format_message(), err=True)
            return 2
        command = error.ctx.command_path if error.ctx is not None else "signet-sync"
        # click lists choices on separate lines.
        message = " ".join(error.format_message().split()).removesuffix(".")
        return _fail("usage", message, f"see {command} --help", None, 2, wants_json)
    except click.ClickException as error:
        return _fail("usage", error.format_message(), "", None, 2, wants_json)
    except _ReaderGone:
        _silence_stdout()
        return 0
    except OSError as error:
        if verbose > 1:
            raise
        message = error.strerror or str(error)
        name = error.filename if isinstance(error.filename, str) else None
        return _fail("system", message, "check permissions and free space, then try again", name, 3, wants_json)
    except Exception as error:
        if verbose > 1:
            raise
        translated = _translated(error)
        if translated is not None:
            return _fail(
                translated.code, translated.message, translated.hint, translated.path, translated.exit_code, wants_json
            )
        message = f"unexpected {type(error).__name__}: {error}"
        path = next(iter(getattr(error, "__notes__", ())), None)
        return _fail("unexpected", message, "run it again with -vv and report what it prints", path, 3, wants_json)


def _translated(error: Exception) -> SignetSyncError | None:
    if type(error).__module__.partition(".")[0] != "apsw":
        return None
    import apsw

    from signet_sync.storage.database.connection import translate

    return translate(error, None) if isinstance(error, apsw.Error) else None


def _silence_stdout() -> None:
    """Prevents the interpreter's error about a closed pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(
    code: str,
    message: str,
    hint: str,
    path: str | None,
    exit_code: int,
    wants_json: bool,
    details: Mapping[str, object] | None = None,
) -> int:
    from signet_sync.formats.paths import display

    with suppress(OSError):  # a full disk may affect stderr, too; the exit code still reports the error
        if wants_json:
            told = {"code": code, "message": message, "hint": hint, "path": path}
            document: dict[str, object] = {"error": told, **(details or {})}
            click.echo(_json(document))
        else:
            where = f" [{path}]" if path else ""
            remedy = f" — {hint}" if hint else ""
            click.echo(display(f"signet-sync: {message}{where}{remedy}"), err=True)
    return exit_code


def emit(document: Any) -> None:
    """Prints one JSON document on stdout."""
    click.echo(_json(document, indent=2))


# Characters that control a terminal or are invisible: written as exact escapes.
_OBEYED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def _json(document: Any, *, indent: int | None = None) -> bytes:
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8", "backslashreplace")


def resolve_now(text: str | None) -> int:
    """Returns `--now` as microseconds since 1970 UTC; the present if it is not given."""
    from signet_sync.formats.timestamps import instant_of, parse_instant

    if text is None:
        from datetime import UTC, datetime

        return instant_of(datetime.now(UTC))
    instant = parse_instant(text)
    if instant is None:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 date and time", param_hint="--now")
    return instant


def agreed(question: str, *, yes: bool, as_json: bool) -> None:
    """Asks a person before something that cannot be undone; requires `--yes` if no answer is possible."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("this asks first; give --yes where nobody can answer")
    click.confirm(question, abort=True, err=True)


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


now_option = click.option("--now", metavar="TIME", help="Take this as the present (ISO 8601).")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
agent_option = click.option("--agent", metavar="ID", default="default", show_default=True, help="Whose memory.")
