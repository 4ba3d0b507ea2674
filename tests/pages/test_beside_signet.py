"""Who writes the pages beside Signet: held while its daemon lives, or taken over, without losing a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from signet_writer import DAEMON, Signet, process_of
from workbench import NOW, Vault, contents, numbered


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2):
        vault.session(number)
    vault.reindex()
    return vault


@pytest.fixture
def daemon(vault: Vault):
    """A process that the workspace names as Signet's daemon."""
    with process_of(vault.root) as process:
        yield process


def is_ours(vault: Vault) -> bool:
    return vault.page().startswith("<!-- signet:begin -->")


def test_a_hold_ends_with_the_daemon(vault, daemon):
    Signet(vault.root).page("- rows of its own")
    for _ in range(2):
        assert str(daemon.pid) in vault.reindex()["held"] and not is_ours(vault)
    daemon.kill()
    daemon.wait()
    assert vault.reindex()["held"] is None
    assert is_ours(vault)
    assert len(list(vault.root.glob("MEMORY.signet-*.md"))) == 1


@pytest.mark.parametrize(
    ("words", "folder", "held"),
    [
        (("sh", "-c", "sleep 600; exit", "signet-sync", "run"), ".daemon", False),
        (DAEMON, "runtime", True),
        (("sh", "-c", "sleep 600; exit", "/src/platform/daemon/src/daemon.ts"), ".daemon", True),
    ],
)
def test_another_program_with_the_id_of_a_daemon_that_has_gone_holds_nothing(vault, words, folder, held):
    """After a restart of the machine, or in a copy of the workspace, a pid file may name any process."""
    Signet(vault.root).page("- rows of its own")
    with process_of(vault.root, words, folder):
        assert bool(vault.reindex()["held"]) == held == (not is_ours(vault))


# ── takeover ──


def take_over(vault: Vault) -> None:
    (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")


def test_takeover_replaces_its_page_beside_a_daemon_and_keeps_a_copy_once(vault, daemon):
    signet = Signet(vault.root)
    signet.page("## Open Threads\n\n- a thread\n\n## My section\n\nTyped by me.\n")
    theirs = vault.page()
    assert str(daemon.pid) in vault.reindex()["held"] and vault.page() == theirs
    take_over(vault)
    assert vault.reindex()["held"] is None
    assert is_ours(vault) and "number 1 bounded" in vault.page() and "a thread" not in vault.page()
    signet.page("- rows of its own")
    assert vault.reindex()["held"] is None and is_ours(vault)
    assert [kept.read_text() for kept in vault.root.glob("MEMORY.signet-*.md")] == [theirs]
    before = contents(vault.root)
    vault.reindex()
    assert contents(vault.root) == before


def test_signets_page_is_not_kept_if_it_shows_what_was_removed(vault, daemon):
    removed = numbered(1)
    path = next(vault.memory.glob("2026-03-28*--summary.md")).name
    sentence, session = removed["memory_sentence"], removed["session_id"]
    row = f"- {NOW} | session={session} | project=lantern | {sentence} [[memory/{path}|summary]]"
    text = f"## Thread Heads (Tier 2)\n\n### lantern\n- {sentence}\n\n## Temporal Index\n\n{row}\n- {session}\n"
    Signet(vault.root).page(text)
    assert vault.call("remove", removed["session_id"], "--reason", "x", "--yes", "--json", "--now", NOW).code == 0
    take_over(vault)
    vault.reindex()
    assert not list(vault.root.glob("MEMORY.signet-*.md"))
    assert session not in vault.page() and sentence not in vault.page()
