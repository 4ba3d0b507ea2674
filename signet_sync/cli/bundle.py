"""`export` and `import-bundle`: write what exists only in rows as JSON Lines, and add the rows of such a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from signet_sync.cli.backup import (
    ask,
    left_out,
    opened,
    say_events,
    tell,
    told_rows,
    told_sifted,
    told_size,
    warn_of_another,
)
from signet_sync.cli.main import Context, counted, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.errors import UsageError
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from typing import BinaryIO

    from signet_sync.backup.incoming import Incoming

_HEAD = 128

_EXPORT = """Write what no file holds as JSON Lines: memories, pins, promotions, hits of recall, counters, seals,
live turns.

FILE is any place outside the workspace, or - for stdout. The first line says what it is, then stands one
row a line, and the last line holds their number and a checksum. Equal rows make equal bytes.

It holds the memories of all agents in plain, private ones too, and with the seals the text of every
artifact (zstd, base64): only you can read the file. A later removal cannot reach it, but what was removed
since is left out when it is imported.

\b
Examples:
  signet-sync export ~/signet-rows.jsonl
  signet-sync export - --no-seals --agent scout | grep '"table": "memories"'
"""

_IMPORT = """Take in rows that export wrote, here or on another machine; rows that are there win.

FILE is such a file, or - for stdin. It is looked at to the last line before anything is written, and
then all of it comes in or nothing. What was removed or forgotten here stays gone, rows of one agent
never become another's, and the same file again changes nothing. What was there before is kept as a
backup. Seals come in for files that are here; the others are counted.
"""


@click.command(help=_EXPORT, short_help="Write memories, pins and the like as JSON Lines.")
@click.argument("file", default="-")
@click.option("--no-seals", is_flag=True, help="Leave out the sealed bytes; their hashes stay.")
@click.option("--agent", metavar="ID", help="Only this agent's rows (else those of all).")
@now_option
@json_option
@pass_context
def export(context: Context, file: str, no_seals: bool, agent: str | None, now: str | None, as_json: bool) -> int:
    from signet_sync.backup import operations as backup_operations
    from signet_sync.formats.ids import require_agent

    if agent is not None:
        require_agent(agent)
    instant = resolve_now(now)
    with opened(context) as workspace:
        rows, lines = backup_operations.export(workspace, agent, seals=not no_seals, now_us=instant)
        say_events(context, workspace)
        if file != "-":
            size = backup_operations.write_bundle(workspace, file, lines)
    if file == "-":
        # The output is JSON Lines already, so --json changes nothing.
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return 0
    if as_json:
        emit({"path": file, "bytes": size, "rows": rows, "total": sum(rows.values())})
        return 0
    click.echo(f"wrote {file} ({told_size(size)}): {told_rows(rows) or 'nothing is kept yet'}")
    click.echo("A later removal cannot reach this file; importing it leaves out what was removed since.")
    return 0


@click.command("import-bundle", help=_IMPORT, short_help="Take in what export wrote.")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Say what would come in.")
@click.option("--agent", metavar="ID", help="Only this agent's rows (else those of all).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@now_option
@json_option
@pass_context
def import_bundle(
    context: Context, file: str, dry_run: bool, agent: str | None, yes: bool, now: str | None, as_json: bool
) -> int:
    from signet_sync.backup import incoming
    from signet_sync.backup import operations as backup_operations
    from signet_sync.formats.ids import require_agent

    if agent is not None:
        require_agent(agent)
    instant = resolve_now(now)
    with (
        _reading(file) as stream,
        incoming.of_bundle(_lines(stream), file, backup_operations.places(context.root), agent) as rows,
        opened(context, touch_nothing=dry_run) as workspace,
    ):
        comes = backup_operations.preview_merge(workspace, rows, instant, absent=False)
        warn_of_another(context, workspace, rows)
        _say_unknown(context, rows)
        if dry_run:
            _dry(file, comes, rows, as_json)
            return 0
        ask(comes, rows.dropped, yes=yes, as_json=as_json)
        done = backup_operations.merge_rows(workspace, rows, instant, absent=False)
        say_events(context, workspace)
    tell(context, file, done, rows.dropped, as_json=as_json, unknown=rows.unknown)
    return 0


@contextmanager
def _reading(file: str) -> Iterator[BinaryIO]:
    from signet_sync.storage.database import native_backup

    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(
            f"the bundle cannot be read: {error.strerror}",
            path=file,
            hint="name a file that signet-sync export wrote, or - for stdin",
            code="bundle-unreadable",
        ) from None
    with stream:
        if native_backup.is_backup(stream.peek(_HEAD)):  # a pipe cannot be read twice
            raise UsageError(
                "this is a backup and no bundle",
                path=file,
                hint="signet-sync backup restore FILE brings it back",
                code="bundle-invalid",
            )
        yield stream


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    from signet_sync.backup.bundle_format import LONGEST_LINE

    while line := stream.readline(LONGEST_LINE):
        yield line


def _say_unknown(context: Context, rows: Incoming) -> None:
    for name, count in sorted(rows.unknown.items()):
        what = "field" if "." in name else "table"
        context.say(
            f"note: {counted(count, 'row')} of the {what} {display(name)} that this version does not know; left out"
        )


def _dry(file: str, comes: dict[str, int], rows: Incoming, as_json: bool) -> None:
    if as_json:
        emit(
            {
                "dry_run": True,
                "source": file,
                "rows": comes,
                "total": sum(comes.values()),
                "left_out": left_out(rows.dropped),
                "removed_files": list(rows.dropped.goes),
                "unknown": rows.unknown,
            }
        )
        return
    click.echo(f"would come in: {told_rows(comes) or 'nothing that is not there'}")
    for line in told_sifted(rows.dropped):
        click.echo(line)
    for path in rows.dropped.goes:
        click.echo(f"would be deleted, its session was removed elsewhere: {path}")
    click.echo("nothing was changed (--dry-run)")
