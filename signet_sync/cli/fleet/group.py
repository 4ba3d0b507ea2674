"""`fleet`: groups the commands over many workspaces."""

from __future__ import annotations

import click

from signet_sync.cli.fleet import check, index, report, search
from signet_sync.cli.parsing import Group

_HELP = """Check, index, search and report on many workspaces.

\b
TARGET  a workspace: a folder, or a URL (s3://, git://, zip:// and what else fsspec reads);
        a glob of them; or @FILE with one on each line

See docs/fleet.md.
"""


@click.group(cls=Group, help=_HELP, short_help="Check, index, search and report on many workspaces.")
def fleet() -> None:
    pass


fleet.add_command(check.check)
fleet.add_command(index.index)
fleet.add_command(report.report)
fleet.add_command(search.search)
