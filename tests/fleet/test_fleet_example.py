"""The example of docs/fleet.md on real parts: Ray on this machine, moto as S3, PostgreSQL of Debian, git, DuckDB."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT, blocks

PARTS = ("ray", "s3fs", "moto", "psycopg", "pyarrow", "duckdb", "dulwich", "duckdb_extension_fts")
PROGRAMS = ("git", "moto_server", "signet-sync")


def lacking() -> str:
    """What of the example is not on this machine."""
    found = [name for name in PARTS if importlib.util.find_spec(name) is None]
    found += [name for name in PROGRAMS if shutil.which(name, path=path()) is None]
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and shutil.which("initdb") is None:
        found.append("postgresql")
    return ", ".join(found)


def path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def shown() -> list[str]:
    """The lines of the page's examples, in order."""
    page = ROOT / "docs" / "fleet.md"
    return [line for block in blocks(page) if block.language == "console" for line in block.text.splitlines()]


def missing(lines: list[str], said: str) -> str | None:
    """The first line that was not said after those before it; `…` stands for anything."""
    heard = iter(said.splitlines())
    for line in lines:
        pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
        if line.strip("… ") and not any(re.fullmatch(pattern, one.rstrip()) for one in heard):
            return line
    return None


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    if lack := lacking():
        pytest.skip(f"not installed: {lack}")
    environ = {**os.environ, "PATH": path(), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    script = ROOT / "docs" / "fleet-example" / "run.sh"
    folder = tmp_path / "fleet"
    done = subprocess.run(["sh", script, folder], env=environ, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert missing(shown(), done.stdout) is None, done.stdout + done.stderr
    # The search after the removal finds the session only where nothing can be removed.
    assert [line.split()[0] for line in done.stdout.rpartition("\n$ ")[2].splitlines()[1:] if line[0] != " "] == [
        f"git+file://{folder}/agents/cleo@main"
    ]
    for name in ("report.html", "report.sarif", "plan.json.report.md"):
        assert (folder / name).stat().st_size
    assert not [line for line in running() if str(folder) in line]


def running() -> list[str]:
    """The command lines of all processes."""
    return [one.read_bytes().decode(errors="replace") for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()]


def test_a_line_that_is_not_said_would_be_noticed() -> None:
    assert missing(["a …c", "…", "d"], "x\na b c\ny\nd\n") is None
    assert missing(["d", "a …c"], "a b c\nd\n") == "a …c"
    assert shown()
