"""Rows that another sanitizer made are derived anew by the next full pass, once, though no file changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import NOW, Vault

from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.sync.engine import run_pass
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Request
from signet_sync.text.digest_mark import VERSION
from signet_sync.text.sanitizer import sanitizer_stamp

NOW_US = parse_instant(NOW) or 0
RULES = f"{sanitizer_stamp()} digest {VERSION}"
STAMP = "select version from derivers where name = 'artifacts'"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2, 3):
        vault.session(number)
    vault.reindex()
    return vault


def as_an_older_one_left_it(vault: Vault, *, stamped: bool = True) -> None:
    """A row holds what an older sanitizer did not know to be a secret."""
    database = Database(str(vault.db))
    try:
        with database.transaction():
            database.execute("update memory_artifacts set project = 'old-secret' where source_kind = 'summary'")
            database.execute("delete from derivers where name = 'artifacts'")
            if stamped:
                artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
    finally:
        database.close()


def is_quiet(vault: Vault, *arguments: str) -> bool:
    document = vault.reindex(*arguments)
    return bool(document["counts"]["read"] == 0 and document["counts"]["unchanged"] == 9)


@pytest.mark.parametrize("stamped", [True, False], ids=["older", "none"])
@pytest.mark.parametrize("arguments", [(), ("--index-only",)], ids=["writing", "index-only"])
def test_another_stamp_derives_every_row_anew_and_then_no_more(
    vault: Vault, stamped: bool, arguments: tuple[str, ...]
) -> None:
    as_an_older_one_left_it(vault, stamped=stamped)
    document = vault.reindex(*arguments)
    assert (document["counts"]["read"], document["counts"]["unchanged"]) == (9, 0)
    assert vault.rows("select count(*) from memory_artifacts where project = 'old-secret'") == [(0,)]
    assert vault.rows(STAMP) == [(RULES,)]
    assert vault.dump() == vault.dump_from_scratch()
    assert is_quiet(vault, *arguments)


def test_the_rows_of_damaged_files_are_derived_anew_from_their_seals(vault: Vault) -> None:
    path = next(path for path in vault.memory.iterdir() if path.name.endswith("summary.md"))
    path.write_bytes(path.read_bytes() + b"changed\n")
    vault.reindex()
    as_an_older_one_left_it(vault)
    vault.reindex()
    assert vault.rows("select count(*) from memory_artifacts where project = 'old-secret'") == [(0,)]
    assert vault.rows("select count(*) from memory_artifacts where source_kind = 'summary'") == [(3,)]


def test_a_halted_pass_leaves_the_old_stamp(vault: Vault) -> None:
    as_an_older_one_left_it(vault)
    vault.memory.rename(vault.root / "elsewhere")
    vault.reindex(code=5)
    assert vault.rows(STAMP) != [(RULES,)]
    (vault.root / "elsewhere").rename(vault.memory)
    assert vault.reindex()["counts"]["read"] == 9


def test_hinted_passes_do_not_vouch_for_rows_that_they_did_not_see(vault: Vault) -> None:
    as_an_older_one_left_it(vault)
    paths = frozenset(vault.session(4).values())
    with opened(str(vault.root), Settings()) as workspace:
        assert run_pass(workspace, Request(NOW_US, paths)).read == 3
        assert run_pass(workspace, Request(NOW_US)).read == 12
        assert run_pass(workspace, Request(NOW_US)).read == 0


def test_a_hinted_pass_over_an_empty_index_is_a_beginning(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    paths = frozenset(vault.session().values())
    with opened(str(vault.root), Settings()) as workspace:
        assert run_pass(workspace, Request(NOW_US, paths)).read == 3
        assert run_pass(workspace, Request(NOW_US)).read == 0
