"""Runs the command line, and what all commands need: the context of a call, answers, errors as text and as JSON."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from signet_sync import __version__
from signet_sync.cli.parsing import EVERYWHERE, SHARED, Program, UnknownCommand, alike
from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError, add_suggestions
from signet_sync.formats.body import JOINERS, SELECTORS, UNSEEN
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import MEMORY, display
from signet_sync.storage import state_dir
from signet_sync.storage.locations import has_settings, locate_workspace, now_us, write_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from signet_sync.settings.model import Settings
    from signet_sync.storage.state_dir import StateFolder
    from signet_sync.sync.read_only import IndexPlace
    from signet_sync.sync.workspace import Workspace


class Context:
    """The options that commands share; everything else is computed on use."""

    def __init__(self, workspace_flag: str | None = None) -> None:
        self.workspace_flag = workspace_flag
        self.database_flag: str | None = None
        self.verbose = 0
        self.quiet = False
        self.warnings: list[str] = []
        self.agent_flag: str | None = None
        self.as_json = False
        self.now: int | None = None

    @property
    def agent(self) -> str:
        """Returns the agent that is named, else that of the working directory, as a hook there decides it."""
        if self.agent_flag is None:
            folder, places, rules = find_working_directory(), list[str](), ()
            if folder and has_settings(self.root):
                from signet_sync.host.repository import resolve, views  # most workspaces set nothing
                from signet_sync.settings import model

                rules = model.hook_settings(self.root)[0].get("agents_projects", ())
                places = views(folder, resolve(folder))
            from signet_sync.formats.ids import agent_for  # not for --help

            self.agent_flag = agent_for(places, os.environ, rules)
        return self.agent_flag

    @property
    def now_us(self) -> int:
        """`--now` as microseconds since 1970 UTC; without it the time of the first call."""
        if self.now is None:
            self.now = now_us()
        return self.now

    @property
    def root(self) -> str:
        """Returns the workspace root, absolute."""
        return locate_workspace(self.workspace_flag)

    def command_line(self, words: str, root: str | None = None) -> str:
        """Returns a command line that can be pasted into a shell; it names the workspace only if necessary."""
        return f"{write_program(root or self.root)} {words}"

    def state(self) -> StateFolder:
        """Returns the state folder, located without writing."""
        return state_dir.locate(self.root)

    @property
    def chosen_database(self) -> str | None:
        """Returns the database that `--db` or `SIGNET_DB` names, or None for the default path."""
        chosen = self.database_flag or os.environ.get("SIGNET_DB")
        if not chosen or chosen == ":memory:":
            return chosen or None
        return os.path.abspath(os.path.expanduser(chosen))

    def database_path(self) -> str:
        """Returns the path of the database: the chosen one, else in the state folder."""
        return self.chosen_database or self.state().database

    def require_database_file(self) -> None:
        """Raises `UsageError` for a database in memory, which would lose what the command writes."""
        if self.chosen_database == ":memory:":
            hint = "omit --db and SIGNET_DB, or name a file"
            raise UsageError("this command needs a database file, not :memory:", hint=hint)

    @contextmanager
    def open_workspace(
        self, *, settings: Settings | None = None, touch_nothing: bool = False, lasting: bool = False
    ) -> Iterator[Workspace]:
        """Opens the workspace for a command that indexes, and prints the events that occurred during it.

        `lasting` refuses a database in memory; `touch_nothing` is for looking, and needs an index.
        """
        if lasting:
            self.require_database_file()
        if touch_nothing:
            from signet_sync.sync.read_only import require_index  # loads the database

            require_index(self.place())
        settings, database = settings or self.settings(), self.chosen_database
        with open_to_write(self.root, settings, database=database, touch_nothing=touch_nothing) as workspace:
            try:
                yield workspace
            finally:
                for event in workspace.events:
                    self.say(event)

    def place(self, *, anyway: bool = False) -> IndexPlace:
        """Returns where the workspace and its index are, for reading; `anyway` as in `settings`."""
        from functools import partial

        from signet_sync.sync.read_only import IndexPlace  # loads the database, which not every command opens

        settings = partial(self.settings, anyway=anyway)
        return IndexPlace(self.root, self.chosen_database, settings, self.command_line, open_to_write)

    def ask(self, operation: str, *, anyway: bool = False, **given: Any) -> dict[str, Any]:
        """Returns the document of an operation on this index (`app.operations`); `anyway` as in `settings`."""
        from signet_sync.app import ask

        return ask.operation(
            operation,
            lambda: self.place(anyway=anyway),
            self.agent,
            given,
            root=self.root,
            chosen=self.chosen_database,
            command=self.command_line(""),
            anyway=anyway,
            say=self._warn,
        )

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            self.say(f"warning: {text}")

    def settings(self, *, anyway: bool = False) -> Settings:
        """Returns the settings; prints problems of the workspace's own file to stderr, each once.

        With `anyway` also prints problems of the user's file instead of raising `ConfigError`: for commands that
        programs call and that could not be repeated.
        """
        from signet_sync.settings import model  # all settings, which reading commands do without

        settings, remarks = model.load(self.root, anyway=anyway)
        for text in map(str, remarks):
            self._warn(text)
        return settings

    def log_to_person(self) -> None:
        """Sends log lines to stderr as plain text from now on; no warnings if quiet."""
        from signet_sync import log  # one command in ten logs

        log.log_for_people("ERROR" if self.quiet else "WARNING")

    # ── what is printed ──

    def say(self, text: str) -> None:
        """Prints a line on stderr, unless it is empty or `--quiet` is set."""
        if text and not self.quiet:
            click.echo(text, err=True)

    def answer(self, document: Any, shown: str | Callable[[], object]) -> None:
        """Prints the answer: as JSON if `--json` is given, else for a person, as a text or by a function."""
        if self.as_json:
            emit(document)
        elif callable(shown):
            shown()
        else:
            click.echo(shown)

    def confirm(self, question: str, *, yes: bool, listing: Callable[[], object] | None = None) -> None:
        """Asks a person before something that cannot be undone, after a `listing` of what it is about.

        Requires `--yes` if no answer is possible.
        """
        if yes:
            return
        if self.as_json or not sys.stdin.isatty():
            raise click.UsageError("confirmation is required: use --yes where no question can be answered")
        if listing is not None:
            listing()
        if not click.confirm(question, err=True):
            raise UsageError("nothing was done: the answer was no", code="declined")

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None] | None]:
        """Shows a progress bar to a person on a terminal, for work that may take over a second."""
        if self.as_json or self.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield None
            return
        bar = click.progressbar(label=what, length=1, show_pos=True, show_eta=False, file=sys.stderr)

        def advance(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        try:
            yield advance
        finally:
            if bar.pos:
                click.echo("\r\x1b[2K\x1b[?25h", nl=False, err=True)  # its line is free again, the cursor shown


def open_to_write(*given: Any, **options: Any) -> AbstractContextManager[Workspace]:
    """Opens a workspace, as the function of this name in `app.workspace` does."""
    from signet_sync.app import workspace  # loads the pass, which reading commands do without

    return workspace.open_to_write(*given, **options)


@click.group(
    cls=Program,
    params=[*EVERYWHERE[:2], *(SHARED[name] for name in ("--agent", "--json", "--now")), *EVERYWHERE[2:]],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="Exit codes: 0 success · 1 problems found · 2 usage · 3 workspace or database unusable · "
    "4 another agent is running · 5 halted for safety · 130 interrupted.",
)
@click.version_option(__version__, prog_name="signet-sync", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Keep a vault of agent memory valid, searchable and summarised in MEMORY.md.

    \b
    Options may stand before or after the command.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str]) -> int:
    """Runs one command line; returns the exit code. Prints no traceback without `-vv`."""
    context = Context()
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        result = group.main(args=arguments, prog_name="signet-sync", standalone_mode=False, obj=context)
        return result if isinstance(result, int) else 0
    except SystemExit:
        # click's, after completion, and with 1, which means that problems were found, if nobody reads stdout any more.
        # Prevents the interpreter's error about a closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except (click.Abort, KeyboardInterrupt):
        return _fail(SignetSyncError("interrupted", code="interrupted"), context.as_json, 130)
    except SignetSyncError as error:
        return _fail(error, context.as_json)
    except click.ClickException as error:
        # What was wrong may have been met before --json was.
        wants_json = context.as_json or "--json" in arguments[: (*arguments, "--").index("--")]
        if error.format_message().startswith("Usage: ") and not wants_json:
            # For a group without a command click's error is the whole help.
            click.echo(error.format_message(), err=True)
            return 2
        return _fail(_usage_error(error), wants_json)
    except Exception as error:
        if context.verbose > 1:
            raise
        return _fail(system_error(error, context.root), context.as_json)


def _usage_error(error: click.ClickException) -> SignetSyncError:
    if not isinstance(error, click.UsageError):
        return UsageError(error.format_message())
    if isinstance(error, UnknownCommand):
        return error.error
    command = error.ctx.command_path if error.ctx is not None else "signet-sync"
    hint = f"see {command} --help"
    if isinstance(error, click.NoSuchOption):
        meant = alike(error.option_name, error.possibilities or ())
        return add_suggestions(UsageError(error.message.removesuffix("."), hint=hint), meant)
    # click lists choices on separate lines.
    return UsageError(" ".join(error.format_message().split()).removesuffix("."), hint=hint)


def unwritable(root: str) -> WorkspaceError | None:
    """Returns the error for a workspace in which no file can be made; None for one that is missing or writable."""
    for path in (root, os.path.join(root, MEMORY)):
        if os.path.isdir(path) and not os.access(path, os.W_OK | os.X_OK):
            hint = "signet-sync doctor says what to do"
            return WorkspaceError("the workspace cannot be written", path=path, hint=hint)
    return None


def system_error(error: Exception, root: str) -> SignetSyncError:
    """Translates an error of the operating system, of SQLite, or one that nobody expected."""
    if isinstance(error, OSError):
        # The name of a file in a folder that is open does not say which folder that is.
        if isinstance(error, PermissionError) and (closed := unwritable(root)):
            return closed
        name = error.filename if isinstance(error.filename, str) else None
        hint = "check permissions and free space, then try again"
        return SignetSyncError(error.strerror or str(error), path=name, hint=hint, code="system")
    if type(error).__module__.partition(".")[0] == "apsw":
        import apsw

        from signet_sync.storage.database.connection import translate  # loaded, if the error is one of its own

        if isinstance(error, apsw.Error):
            return translate(error, None)
    return SignetSyncError(
        f"unexpected {type(error).__name__}: {error}",
        path=next(iter(getattr(error, "__notes__", ())), None),
        hint="run it again with -vv and report the output",
        code="unexpected",
    )


def one_line(error: SignetSyncError) -> str:
    """Returns an error for a person: what is wrong, where, and what to do next."""
    where = f" [{error.path}]" if error.path else ""
    remedy = f" — {error.hint}" if error.hint else ""
    return f"{error.message}{where}{remedy}"


def _fail(error: SignetSyncError, wants_json: bool, code: int | None = None) -> int:
    with suppress(OSError):  # a full disk may affect stderr, too; the exit code still reports the error
        if wants_json:
            document = {name: getattr(error, name) for name in ("code", "message", "hint", "path")}
            document |= {"suggestions": list(error.suggestions)} if error.suggestions else {}
            click.echo(_json({"error": document, **error.details}))
        else:
            click.echo(display(f"signet-sync: {one_line(error)}"), err=True)
    return error.exit_code if code is None else code


def emit(document: Any) -> None:
    """Prints one JSON document on stdout."""
    click.echo(_json(document, indent=2))


# Characters that control a terminal or are invisible: written as exact escapes.
_UNSAFE = late(f"[\x7f-\x9f\u2028\u2029{UNSEEN}{JOINERS}{SELECTORS}]")


def _json(document: Any, *, indent: int | None = None) -> bytes:
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text).encode("utf-8", "backslashreplace")


def find_working_directory() -> str | None:
    """Returns the folder in which the command was called; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def show_redactions(redactions: Mapping[str, int]) -> None:
    """Prints how many secrets were redacted, by rule."""
    if redactions:
        click.echo("Redacted: " + ", ".join(f"{rule} {count}" for rule, count in sorted(redactions.items())))


def show_by_hand(lines: Sequence[str]) -> None:
    """Prints the steps that are left to the person."""
    if lines:
        click.secho("left to do by hand:", bold=True)
        for line in lines:
            click.echo(f"  {line}")


def show_remedy(context: Context, found: str | None, what: str, paths: Iterable[str]) -> None:
    """Prints that the history contains something that was removed, if it was found there, and what takes it out."""
    if found != "contains":
        return
    from signet_sync.history import operations as history_operations  # most workspaces have no history

    line = history_operations.filter_line(context.root, context.state().key, paths)
    click.secho(f"  the workspace's git history {what}; {'in a fresh clone' if line else 'to delete it'}:", fg="yellow")
    click.secho(f"    {line or context.command_line('history forget')}", fg="yellow")
