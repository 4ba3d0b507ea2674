"""Who owns the pages beside Signet: held while its daemon lives, left to it, or taken over, without losing a word."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from signet_writer import Signet
from workbench import NOW, Vault, contents, numbered, tree


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
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (vault / ".daemon").mkdir()
    (vault / ".daemon/pid").write_text(f"{process.pid}\n")
    yield process
    process.kill()
    process.wait()


def is_ours(vault: Vault) -> bool:
    return vault.page().startswith("<!-- signet:begin -->")


@pytest.mark.parametrize("clean", [True, False], ids=["it deletes its pid file", "it is killed"])
def test_a_hold_ends_when_the_daemon_has_gone(vault, daemon, clean):
    Signet(vault.root).page("- rows of its own")
    for _ in range(2):
        assert str(daemon.pid) in vault.reindex()["held"]
    daemon.kill()
    daemon.wait()
    if clean:
        (vault / ".daemon/pid").unlink()
    assert vault.reindex()["held"] is None
    assert is_ours(vault)
    assert len(list(vault.root.glob("MEMORY.signet-*.md"))) == 1


def test_another_program_with_the_id_of_a_daemon_that_has_gone_holds_nothing(vault):
    """After a restart of the machine a pid file may name any process."""
    (vault / ".daemon").mkdir()
    (vault / ".daemon/pid").write_text(f"{os.getppid()}\n")
    long_ago = time.time() - 400 * 86_400
    os.utime(vault / ".daemon/pid", (long_ago, long_ago))
    Signet(vault.root).page("- rows of its own")
    assert vault.reindex()["held"] is None and is_ours(vault)


def test_a_page_that_is_replaced_after_the_end_comes_from_another_machine(vault):
    """Else two machines would replace each other's page for ever."""
    (vault / ".daemon").mkdir()
    vault.reindex()
    assert is_ours(vault)
    time.sleep(0.01)
    Signet(vault.root).page("- rows of another machine")
    before = tree(vault.root)
    assert "Signet replaced" in vault.reindex()["held"]
    assert tree(vault.root) == before
    past = time.time() + 10
    os.utime(vault / ".daemon", (past - 9.999, past - 9.999))  # a daemon began and ended here meanwhile
    assert vault.reindex()["held"] is None and is_ours(vault)


# ── yield ──

NOTE = "My own note: the lantern is in the shed.\n\n"


def answered(vault: Vault, *words: str) -> dict:
    answer = vault.call("signet", *words, "--json")
    assert answer.code == 0, answer
    return answer.json


def test_yield_leaves_the_pages_to_signet_and_nothing_of_a_person_goes(vault):
    (vault / "MEMORY.md").write_text(NOTE + vault.page() + "\nBelow it.\n")
    (vault / "signet-sync.toml").write_text("# mine\n[noise]\nprojects = ['/x/']\n")
    vault.reindex()
    done = answered(vault, "yield", "--yes", "--now", NOW)
    assert done["owner"] == "signet" and "ledger/2026/03/28.md" in done["pages"]
    (kept,) = vault.root.glob("MEMORY.user-*.md")
    assert NOTE.strip() in kept.read_text() and "Below it." in kept.read_text()
    assert not (vault / "ledger").exists() and "[projection]\nyield = true" in vault.page("signet-sync.toml")
    assert vault.page("signet-sync.toml").startswith("# mine\n[noise]\nprojects = ['/x/']\n")
    signet = Signet(vault.root)
    signet.page("- rows of its own")
    signet.render_manifests()
    before = tree(vault.root, but=["tmp", "memories.db"])
    vault.session(3)
    assert "projection.yield" in vault.reindex()["held"]
    assert vault.hits("number3x")
    after = tree(vault.root, but=["tmp", "memories.db"])
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    assert not [path for path in changed if "number" not in path and not path.startswith("memory")], "no page of ours"
    assert not [path for path in changed if path in before and path != "memory"], "and no manifest"
    assert "page" not in {f["name"] for f in vault.call("doctor", "--json").json["findings"] if f["level"] != "fine"}
    vault.call("remove", numbered(1)["session_id"], "--reason", "x", "--yes", "--json", "--now", NOW)
    assert not (vault / "ledger").exists() and vault.page().startswith("<!-- generated")


# ── takeover ──


def test_takeover_keeps_its_page_and_puts_a_persons_text_back(vault):
    (vault / "MEMORY.md").write_text(NOTE + vault.page() + "\nBelow it.\n")
    vault.reindex()
    signet = Signet(vault.root)
    signet.page("## Open Threads\n\n- a thread\n\n## My section\n\nTyped by me.\n\n## Temporal Index\n\n- x\n")
    signet.page(vault.page().split("# Working Memory Summary\n\n")[1])  # another render: its newest backup has no block
    theirs = vault.page()
    assert vault.reindex()["held"]
    assert answered(vault, "status")["pages"] == {"MEMORY.md": "signet"}
    done = answered(vault, "takeover", "--yes", "--now", NOW)
    assert done["owner"] == "signet-sync" and done["pages"] == ["MEMORY.md"]
    page = vault.page()
    assert page.startswith(NOTE + "<!-- signet:begin -->") and "number 1 bounded" in page
    assert page.rstrip().endswith("## My section\n\nTyped by me.") and "Below it." in page
    assert "a thread" not in page and page.count("My own note") == 1
    assert [kept.read_text() for kept in vault.root.glob("MEMORY.signet-*.md")] == [theirs]
    before = tree(vault.root)
    again = answered(vault, "takeover", "--yes", "--now", NOW)
    assert again["pages"] == [] and vault.reindex()["held"] is None
    assert {p: t for p, t in tree(vault.root).items() if not t[0].startswith("0o4")} == {
        p: t for p, t in before.items() if not t[0].startswith("0o4")
    }


def test_text_above_signets_page_is_a_persons(vault):
    Signet(vault.root).page("- rows")
    (vault / "MEMORY.md").write_text(NOTE + vault.page())
    answered(vault, "takeover", "--yes", "--now", NOW)
    assert vault.page().startswith(NOTE + "<!-- signet:begin -->") and "- rows" not in vault.page()


def test_takeover_restores_the_texts_of_manifests(vault):
    manifest = next(vault.memory.glob("*--manifest.md"))
    manifest.write_bytes(manifest.read_bytes().rstrip(b"\n") + b"\n\nWhat I noted below it.\n")
    vault.reindex()
    signet = Signet(vault.root)
    for _ in range(2):
        signet.render_manifests()
        vault.reindex("--full")
    assert b"What I noted" not in manifest.read_bytes()
    done = answered(vault, "takeover", "--yes", "--now", NOW)
    assert done["manifests"] == [f"memory/{manifest.name}"]
    assert b"What I noted below it." in manifest.read_bytes()
    assert vault.hits("noted") == [f"memory/{manifest.name}"]
    session = numbered(1 if numbered(1)["captured_at"][:10] in manifest.name else 2)["session_id"]
    signet.render_manifests()
    vault.reindex()
    assert vault.rows("select count(*) from manifest_bodies") == [(1,)]
    vault.call("remove", session, "--reason", "x", "--yes", "--json", "--now", NOW)
    assert vault.rows("select count(*) from manifest_bodies") == [(0,)]


def test_what_was_removed_is_not_kept_with_signets_page(vault):
    removed = numbered(1)
    path = next(vault.memory.glob("2026-03-28*--summary.md")).name
    sentence, session = removed["memory_sentence"], removed["session_id"]
    row = f"- {NOW} | session={session} | project=lantern | {sentence} [[memory/{path}|summary]]"
    text = f"## Thread Heads (Tier 2)\n\n### lantern\n- {sentence}\n- kept\n\n## Temporal Index\n\n{row}\n- {session}\n"
    Signet(vault.root).page(text)
    assert vault.call("remove", removed["session_id"], "--reason", "x", "--yes", "--json", "--now", NOW).code == 0
    answered(vault, "takeover", "--yes", "--now", NOW)
    (kept,) = vault.root.glob("MEMORY.signet-*.md")
    assert "- kept" in kept.read_text()
    for place in (kept, vault / "MEMORY.md"):
        assert session not in place.read_text() and sentence not in place.read_text()


def test_undo_decides_nothing(vault, daemon):
    (vault / "signet-sync.toml").write_text("[projection]\nwindow_days = 20 # mine\ntakeover = false\n")
    done = answered(vault, "takeover", "--yes", "--now", NOW)
    assert str(daemon.pid) in done["by_hand"][0]
    assert vault.page("signet-sync.toml") == "[projection]\nwindow_days = 20 # mine\ntakeover = true\n"
    assert vault.reindex()["held"] is None
    assert answered(vault, "takeover", "--undo", "--yes", "--now", NOW)["owner"] == "undecided"
    assert vault.page("signet-sync.toml") == "[projection]\nwindow_days = 20 # mine\n"
    assert str(daemon.pid) in vault.reindex()["held"]


@pytest.mark.parametrize("text", ["projection = 3", "[projection"])
def test_settings_that_cannot_be_changed_safely_stop_it(vault, text):
    (vault / "signet-sync.toml").write_text(text)
    before = vault.page()
    assert vault.call("signet", "yield", "--yes", "--json").code == 2
    assert vault.page("signet-sync.toml") == text and vault.page() == before and (vault / "ledger").exists()


def test_two_hundred_steps_of_two_writers_lose_no_word_of_a_person(vault):
    """After a decision a second pass writes nothing; before it, a person's last text survives every replacement."""
    random = Random(24)
    signet = Signet(vault.root)
    note = 0
    for step in range(200):
        match random.choice(["signet", "manifests", "note", "pass", "takeover", "yield"]):
            case "signet":
                signet.page(f"## Open Threads\n\n- step {step}\n")
            case "manifests":
                signet.render_manifests()
            case "note" if is_generated(vault):
                note = step
                (vault / "MEMORY.md").write_text(f"Note {step} of a person.\n\n" + _block(vault))
            case "pass":
                vault.reindex()
            case "takeover" if random.random() < 0.3:
                answered(vault, "takeover", "--yes", "--now", NOW)
                assert not note or f"Note {note} of a person." in vault.page()
                assert is_at_rest(vault)
            case "yield" if random.random() < 0.3:
                answered(vault, "yield", "--yes", "--now", NOW)
                assert is_at_rest(vault)
    answered(vault, "takeover", "--yes", "--now", NOW)
    assert f"Note {note} of a person." in vault.page()


def is_generated(vault: Vault) -> bool:
    return "<!-- signet:begin -->" in vault.page()


def _block(vault: Vault) -> str:
    return vault.page()[vault.page().index("<!-- signet:begin -->") :]


def is_at_rest(vault: Vault) -> bool:
    before = contents(vault.root)
    vault.reindex()
    return contents(vault.root) == before
