"""docs/internals/memory-model.md shows what really happens: its commands are run, their output is compared.

`WRITE_DOCS=1 pytest -n 0 tests/project/test_memory_model.py` writes the output anew.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.memories.score import HALF_LIVES, WEIGHTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "internals" / "memory-model.md"
FENCE = re.compile(r"^```(json|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = {"next": "next step"}


def shown(vault: Vault, folder: Path, kind: str, content: str, before: str) -> str:
    """A block as it should be: given files as they are, commands with what they say."""
    if kind == "json":
        name = re.findall(r"`(\w+\.json)`", before)[-1]
        (folder / name).write_text(content, encoding="utf-8")
        return content
    told = []
    for line in content.splitlines():
        if line.startswith("$ signet-sync "):
            words = [str(folder / word) if word.endswith(".json") else word for word in shlex.split(line)[2:]]
            answer = vault.call(*words)
            assert answer.code == 0, f"{line}\n{answer.err}"
            told.append(f"{line}\n{answer.out}")
    return "".join(told)


def test_the_example_is_what_happens(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    page = PAGE.read_text(encoding="utf-8")
    made, place = [], 0
    for block in FENCE.finditer(page):
        made += [page[place : block.start(2)], shown(vault, tmp_path, block[1], block[2], page[: block.start()])]
        place = block.end(2)
    text = "".join([*made, page[place:]])
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert text == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_and_half_lives_are_those_of_the_code(kind: str) -> None:
    row = f"| {NAMES.get(kind, kind)} | {WEIGHTS[kind]:g} | {HALF_LIVES[kind]:g} |"
    assert row.replace("| 1 |", "| 1.0 |") in PAGE.read_text(encoding="utf-8")
