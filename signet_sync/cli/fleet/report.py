"""`fleet report`: says what is wrong and what grows in many workspaces; only reads them."""

from __future__ import annotations

from importlib import resources

import click

from signet_sync.cli.fleet.options import over_workspaces
from signet_sync.cli.formats import fleet_report
from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.cli.reindex import progress_bar
from signet_sync.fleet.engines import Engine
from signet_sync.storage import user_files

_SARIF = b'{\n  "$schema": "https://json.schemastore.org/sarif-2.1.0.json"'


@click.command(cls=Command)
@over_workspaces
@click.option("--html", type=click.Path(), metavar="FILE", help="Also write it as a page, to be read or printed.")
@click.option("--sarif", type=click.Path(), metavar="FILE", help="Also write the findings to FILE as a SARIF log.")
@click.option("--with-index", is_flag=True, help="Also compare with the seals of indexes on the machine that reads.")
@now_option
@json_option
@pass_context
def report(
    context: Context, /, targets: tuple[str, ...], engine: Engine, html: str | None, sarif: str | None, with_index: bool
) -> int:
    """Report secrets, changes, versions and growth of many workspaces.

    A secret is named by its rule and file, never by its value. Exit 0 whatever was found: fleet check is what fails.
    """
    from signet_sync.fleet.report import page, total  # with the pass, which other commands do not need

    with progress_bar("reading", show=not context.as_json and not context.quiet) as advance:
        document = total.report(targets, engine, context.now_us, with_index=with_index, progress=advance)
    if html is not None:
        _write(html, page.page(document, _look()), page.BEGINNING.encode())
    if sarif is not None:
        _write(sarif, f"{fleet_report.sarif(document)}\n", _SARIF)

    def show() -> None:
        for line in fleet_report.lines(document):
            click.echo(line)

    context.answer(document, show)
    return 0


def _look() -> str:
    """Returns the style sheet: that of the page of a workspace, and what only a report has."""
    package = resources.files("signet_sync")
    sheets = ("web/static/style.css", "fleet/report/page.css")
    return "".join(package.joinpath(sheet).read_text(encoding="utf-8") for sheet in sheets)


def _write(path: str, text: str, beginning: bytes) -> None:
    """Writes a report, whole or not at all; replaces a former one, and nothing else."""
    with user_files.replacing(path, lambda head: head.startswith(beginning)) as beside:
        user_files.write(beside, [text.encode("utf-8", "backslashreplace")])
