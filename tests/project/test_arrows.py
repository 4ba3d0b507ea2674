"""The arrows between the rooms, the types and the style are part of the tests."""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports_run_one_way() -> None:
    run("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))")


def test_no_modules_import_each_other() -> None:
    """Imports inside functions count, those for the type checker only do not; a cycle raises `CycleError`."""
    graph = grimp.build_graph("signet_sync", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules}).prepare()


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=["rules", "format"])
def test_style(command: tuple[str, ...]) -> None:
    run("-m", "ruff", *command, "--no-cache", "-q", ".")


def test_types_are_strict() -> None:
    run("-m", "mypy", "--strict", "--no-error-summary")
