"""Makes the entities of the sample workspace by ordinary operations, so that their event logs record them."""

from __future__ import annotations

import os
import tomllib
from importlib.resources import files as package_files
from typing import Any

from signet_sync.entities import operations
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY
from signet_sync.sync.workspace import Workspace


def make_entities(workspace: Workspace, now_us: int) -> list[str]:
    """Makes the sample entities of an indexed sample workspace; returns the paths of their profiles."""
    samples = tomllib.loads((package_files("signet_sync.admin.demo") / "demo_entities.toml").read_text("utf-8"))
    return [_make_entity(workspace, sample, now_us) for sample in samples["entity"]]


def _make_entity(workspace: Workspace, sample: dict[str, Any], now_us: int) -> str:
    made = operations.create(
        workspace,
        DEFAULT_AGENT,
        sample["kind"],
        sample["name"],
        relation=sample.get("type"),
        between=sample.get("between", ()),
        now_us=now_us,
    )
    for section, text in sample["sections"].items():
        operations.set_section(workspace, DEFAULT_AGENT, made.id, section, text, now_us=now_us)
    for item in sample.get("items", ()):
        operations.append(workspace, DEFAULT_AGENT, made.id, item["section"], item["text"], now_us=now_us)
    for item in sample.get("evidence", ()):
        source = _line(workspace.root, item["says"])
        operations.append(workspace, DEFAULT_AGENT, made.id, "evidence", item["why"], evidence=source, now_us=now_us)
    for section in sample.get("pins", ()):
        operations.guard("pin", workspace, DEFAULT_AGENT, made.id, section, now_us=now_us)
    return made.path


def _line(root: str, words: str) -> str:
    """Returns `PATH#LINE` of the newest summary with these words, else of the newest transcript. Names sort by time."""
    names = sorted(os.listdir(os.path.join(root, MEMORY)), key=lambda name: (name.endswith("--summary.md"), name))
    for name in reversed(names):
        if name.endswith(("--summary.md", "--transcript.md")):
            with open(os.path.join(root, MEMORY, name), encoding="utf-8") as handle:
                for number, line in enumerate(handle, 1):
                    if words in line and not line.startswith("memory_sentence"):
                        return f"{MEMORY}/{name}#{number}"
    raise LookupError(f"no sample says {words!r}")
