"""A dream sweep, killed at every step and with every write failing once: each memory rises once, and is shown once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from test_crash_memory import swept
from workbench import Vault

from signet_sync.formats.handle import handle

RISEN = 3


def dreamt(folder: Path, scenario: str, fault: str, every: int) -> list[str]:
    """What became of every point; the last one has ended as any sweep does."""
    (lines,) = swept(folder, scenario, [fault], every)
    vault = Vault(folder / "vault")
    promoted = [memory_id for (memory_id,) in vault.rows("select memory_id from memory_promotions")]
    assert len(promoted) == RISEN and vault.rows("select promoted from dream_sweeps") == [(RISEN,)]
    for page in ("MEMORY.md", "DREAMS.md"):
        shown = Counter(word for word in vault.page(page).split() if word.startswith("^m-"))
        assert {memory_id: shown[handle(memory_id)] for memory_id in promoted} == dict.fromkeys(promoted, 1)
    return [line["outcome"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "EIO", "ENOSPC", "sqlite-kill", "sqlite-EIO", "sqlite-ENOSPC"])
@pytest.mark.parametrize("scenario", ["dream", "first dream"])
def test_a_sweep_has_been_or_has_not_been(tmp_path: Path, scenario: str, fault: str) -> None:
    outcomes = dreamt(tmp_path, scenario, fault, 1)
    assert {"nothing", "all"} <= set(outcomes) or scenario == "first dream"


@pytest.mark.parametrize(
    ("scenario", "fault", "every"),
    [("dream", "kill", 67), pytest.param("first dream", "sqlite-kill", 47, marks=pytest.mark.slow)],
)
def test_a_sweep_has_been_or_has_not_been_at_a_few_points(
    tmp_path: Path, scenario: str, fault: str, every: int
) -> None:
    assert len(dreamt(tmp_path, scenario, fault, every)) > 3
