"""What a review found: settings, tombstones and budgets after which rows or pages were not what a rebuild makes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import artifacts_fixture as made
from workbench import Vault

from signet_sync.storage.database.tables import NODES

PRISM = "/home/ada/code/prism"


def settle_noise(*projects: str) -> None:
    config = Path(os.environ["SIGNET_CONFIG"])
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[noise]\nprojects = {list(projects)}\n", encoding="utf-8")


def noise(vault: Vault) -> list[Any]:
    return vault.rows("select distinct noise from memory_artifacts where project = ?", PRISM)


# ── settings ──


def test_what_settings_say_is_noise_is_so_with_the_next_pass(vault: Vault) -> None:
    vault.session(1, project=PRISM)
    vault.session(2)
    vault.reindex()
    assert noise(vault) == [(0,)]
    settle_noise(PRISM)
    assert vault.reindex()["counts"]["read"] == 6
    assert noise(vault) == [(1,)]
    assert PRISM not in vault.page()
    assert vault.dump() == vault.dump_from_scratch()
    assert vault.reindex()["counts"]["read"] == 0
    settle_noise()
    vault.reindex()
    assert noise(vault) == [(0,)]
    assert PRISM in vault.page()


# ── tombstones ──


def test_a_removal_takes_the_files_that_carry_the_token_of_the_other_identity(vault: Vault) -> None:
    who = {"session_id": "s2", "project": PRISM}
    vault.put(made.summary(**who))
    vault.put(made.summary(**who, session_key="K1", captured_at="2026-03-27T10:00:00.000Z", body="# Quartz\n"))
    vault.put(made.summary(session_id="s3", session_key="K1", captured_at="2026-03-26T10:00:00.000Z"))
    vault.reindex()
    assert vault.hits("quartz")
    answer = vault.call("remove", made.token_for(session_id="s2"), "--reason", "asked", "--yes")
    assert answer.code == 0, answer
    assert not vault.hits("quartz")
    assert not vault.rows(f"select 1 from {NODES} where session_id = 's2'")
    vault.reindex()
    before = vault.dump()
    vault.reindex("--full")
    assert vault.dump() == before
    assert vault.rows("select distinct session_id from memory_artifacts") == [("s3",)]


# ── clocks that ran ahead ──


def test_what_a_session_of_the_future_states_is_shown_and_ends_only_what_it_says(vault: Vault) -> None:
    said = "# A\n\n## Next steps\n\n- measure the queue\n\n## Blockers\n\n- no oil for the lamp\n"
    will = "# B\n\n## Decisions\n\n- Storage: SQLite\n\n## Next steps\n\n- [x] measure the queue\n"
    vault.put(made.summary(session_id="now", captured_at="2026-03-20T10:00:00.000Z", body=said))
    vault.put(made.summary(session_id="later", captured_at="2027-03-20T10:00:00.000Z", body=will))
    vault.reindex()
    lines = "\n".join(line for line in vault.page().splitlines() if "^f-" in line)
    assert "Storage: SQLite (lantern, 2027-03-20)" in lines and "no oil for the lamp" in lines
    assert "measure the queue" not in lines
