"""Imports: no cycle, and the lists of `pyproject.toml` are complete."""

import re
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).parents[2]
# These import only what rules may import, but use the process: its input, its clock, or what
# the extra of the page reads and sends for them.
NO_RULES = {"signet_sync.web.formatting", "signet_sync.web.security"}


@cache
def contract(name: str) -> dict[str, Any]:
    """The contract whose name begins so."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = (one for one in contracts if one["name"].startswith(name))
    return found


def test_no_modules_import_each_other():
    """Imports inside functions count, those for the type checker only do not; a cycle raises `CycleError`."""
    graph = grimp.build_graph("signet_sync", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules}).prepare()


def test_the_fields_of_a_named_tuple_are_no_texts():
    """A type that is a text is compiled when the class is made: that takes as long again as all else of it."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "signet_sync").rglob("*.py")}
    named = [path for path, text in texts.items() if re.search(r"^class \w+\(NamedTuple\)", text, re.M)]
    assert named and not [path for path in named if "from __future__ import annotations" in texts[path]]


def test_every_module_that_is_pure_is_held_to_it():
    """A module of rules that is in no list could begin to read the disk."""
    rules = contract("Rules are pure")
    graph = grimp.build_graph("signet_sync", include_external_packages=True, cache_dir=None)
    for allowed in rules["ignore_imports"]:
        importer, imported = allowed.split(" -> ")
        graph.remove_import(importer=importer, imported=imported)
    named = [module for one in rules["source_modules"] for module in graph.find_matching_modules(one)]
    held = {below for one in named for below in (one, *graph.find_descendants(one))}
    ours = {one for one in graph.modules if one.startswith("signet_sync.") and not graph.find_children(one)}
    pure = {one for one in ours if not graph.find_upstream_modules(one) & set(rules["forbidden_modules"])}
    assert sorted(pure - held - NO_RULES) == []
    assert pure >= NO_RULES


def test_every_stage_is_above_the_rows_of_its_package():
    """The contract names stages and operations one by one, since import-linter has no pattern for a layer."""
    inside = contract("Inside a capability")
    listed = {
        f"{package}.{name.strip(' ()')}" for package in inside["containers"] for name in inside["layers"][0].split(":")
    }
    package = ROOT / "signet_sync"
    there = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in package.rglob("*.py")
        if (path.stem == "operations" or path.stem.endswith("stage")) and any(path.parent.glob("store*"))
    }
    assert sorted(there - listed) == [], "`pyproject.toml` must name these in *Inside a capability*"
