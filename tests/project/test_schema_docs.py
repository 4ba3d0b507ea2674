"""docs/schema.md and docs/fleet-tables.md follow from what tables declare; says how to bring them up to date."""

from __future__ import annotations

import os
from pathlib import Path

from signet_sync.fleet.tables.schema import OPEN_TABLES, VERSION, OpenTable
from signet_sync.storage.database.table import Table
from signet_sync.storage.database.tables import TABLES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema.md"
OPEN = PAGE.with_name("fleet-tables.md")
BEGIN = "## The tables"

HEAD = """\
# The schema

The tables of the index, generated from their declarations in `storage/database/tables`. Creation, rebuild, backup,
salvage of a damaged database and removal follow from the same declarations.

A rebuild drops derived tables and keeps native ones. *Backed up: yes* means every backup; *elsewhere* means
that files of the state folder hold the rows, so that only `backup create FILE` includes them. Daily backups
leave out the bytes of seals.

*Goes with*: what deletes a row: its session or artifact, the memory or node whose id it has, or the removal of a text
that alone had one of its words. `captures`, `live_sessions` and `session_transcripts` name sessions differently, and
have rules of their own.
"""


def generated() -> str:
    page = HEAD
    for kind, more in (("native", " backed up |"), ("derived", "")):
        page += f"\n## {kind.capitalize()} tables\n\n| table | holds | goes with |{more}\n"
        page += f"|---|---|---|{'---|' if more else ''}\n"
        page += "".join(row(table) for table in TABLES.values() if table.kind == kind)
    return page


def row(table: Table) -> str:
    goes = {"session": table.session, "artifact": table.artifact, "id": table.handle, "words": table.texts}
    cells = [f"`{table.name}`", table.holds, ", ".join(name for name in goes if goes[name]) or "–"]
    if table.kind == "native":
        cells.append("–" if table.row is None else "yes" if table.kept == "always" else table.kept)
    return f"| {' | '.join(cells)} |\n"


def test_the_page_of_the_schema_is_what_the_tables_declare() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"


TYPES = {"int": "int64 · bigint", "bool": "bool · boolean", "time": "timestamp[us, UTC] · timestamptz"}


def opened(table: OpenTable) -> str:
    """The section of a table of many workspaces."""
    lines = [f"### {table.name}", "", f"{table.holds[0].upper()}{table.holds[1:]}. Unique within a workspace:"]
    lines[-1] += f" {', '.join(f'`{name}`' for name in table.key)}."
    lines += ["", "| column | type | holds |", "|---|---|---|"]
    for column in table.columns:
        lines.append(f"| `{column.name}` | {TYPES.get(column.kind, 'string · text')} | {column.holds} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_the_open_tables_ends_with_what_they_declare() -> None:
    before, begin, _ = OPEN.read_text(encoding="utf-8").partition(BEGIN)
    version = f"Version {VERSION}. Types are those of Parquet and of PostgreSQL."
    page = "\n".join([before + begin, "", version, "", *map(opened, OPEN_TABLES)])
    if os.environ.get("WRITE_DOCS"):
        OPEN.write_text(page, encoding="utf-8")
    assert begin and OPEN.read_text(encoding="utf-8") == page, "WRITE_DOCS=1 pytest brings it up to date"
