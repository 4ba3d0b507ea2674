"""A session that two programs capture, under two tokens or under two ids, is shown once."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import Vault, numbered, sampled

ID = numbered(1)["session_id"]
KEY = "claude-code:lantern:1"
TOKENS = {"ours": made.token_for(session_id=ID, session_key=KEY), "signet": made.token_for(session_id=ID)}


def write(vault: Vault, who: str, *, minute: int = 1, **given: object) -> None:
    key = KEY if who == "ours" else None
    fields = {"session_key": key, "captured_at": f"2026-03-28T10:{minute:02d}:00.000Z", **given}
    sentence = f"In lantern the program {who} bounded the retry loop of src/queue.py so that it always ends."
    vault.session(1, memory_sentence=sentence, **fields)


def shown(vault: Vault) -> list[str]:
    """Who is shown in MEMORY.md and on the page of the day, which agree; the count of the day is of one row each."""
    found = [who for who in TOKENS if f"the program {who} bounded" in vault.page()]
    day = vault.page("ledger/2026/03/28.md")
    assert found == [who for who in TOKENS if f"the program {who} bounded" in day]
    assert f"{len(found)} session" in day
    return found


def test_the_later_one_is_shown_and_the_other_when_that_goes(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    vault.reindex()
    assert shown(vault) == ["ours"]
    write(vault, "signet", minute=2)
    vault.reindex()
    assert shown(vault) == ["signet"]
    hits = vault.call("recall", "--json", "bounded the retry loop").json["hits"]
    assert len([hit for hit in hits if hit["tier"] == "session"]) == 1
    assert vault.call("open", "--json", ID).json["session_token"] == TOKENS["signet"]
    assert vault.call("open", "--json", KEY).json["session_token"] == TOKENS["ours"]
    assert vault.dump() == vault.dump_from_scratch()
    for path in vault.memory.glob(f"*{TOKENS['signet']}*"):
        path.unlink()
    vault.reindex("--accept-removals")
    assert shown(vault) == ["ours"]
    assert vault.dump() == vault.dump_from_scratch()


@pytest.mark.parametrize("first", TOKENS)
def test_whoever_comes_first_the_same_is_shown(tmp_path: Path, first: str) -> None:
    vault = Vault(tmp_path / "vault")
    for who in sorted(TOKENS, key=lambda who: who != first):
        write(vault, who)
        vault.reindex()
    assert shown(vault) == [max(TOKENS, key=lambda who: TOKENS[who])]
    assert vault.dump() == vault.dump_from_scratch()


def test_of_another_harness_it_is_another_session(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours")
    write(vault, "signet", minute=2, harness="codex")
    vault.reindex()
    assert shown(vault) == ["ours", "signet"]


def test_a_removal_by_its_id_takes_both(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(2)
    write(vault, "ours")
    write(vault, "signet", minute=2)
    vault.reindex()
    assert vault.call("remove", ID, "--reason", "asked for", "--yes", "--json").code == 0
    assert not [path for path in vault.memory.glob("*.md") if any(token in path.name for token in TOKENS.values())]
    assert "the program" not in vault.page()


# ── Signet of June 2026: an id of its own for each ending, and the harness's id as its key ──

PLACE = "/home/ada/.claude/projects/lantern"


def ended(
    vault: Vault, number: int, file: str | None, key: str, minute: int = 2, digest: str = "0a1b2c3d4e5f6071"
) -> str:
    """What Signet writes of an ending; gives the word that its sentence has."""
    name = f"path:{PLACE}/{file}" if file else key
    word = f"ended{number:02d}x{minute}"
    sentence = f"In lantern the other program {word} bounded the retry loop of src/queue.py so that it always ends."
    given = {"session_id": f"session-end:{name}:{digest}" if digest else f"session-end:{name}"}
    given |= {
        "captured_at": f"2026-03-28T11:{minute:02d}:00.000Z",
        "memory_sentence": sentence,
        "manifest_path": "memory/x",
    }
    files = [made.summary(**numbered(number) | given), made.transcript(**numbered(number) | given)]
    # Its token is that of the id, whatever the key is.
    vault.put({name: raw.replace(b"session_key: null", f'session_key: "{key}"'.encode()) for name, raw in files})
    return word


DIGESTS = ("0a1b2c3d4e5f6071", "3f0c2b1e-0000-4000-8000-00000000000a", "")


@pytest.mark.parametrize(("digest", "order"), sampled(product(DIGESTS, ["ours first", "signet first"]), 3))
def test_an_ending_under_another_id_is_shown_once(tmp_path: Path, order: str, digest: str) -> None:
    vault = Vault(tmp_path / "vault")
    write(vault, "ours", session_key=ID) if order == "ours first" else ended(vault, 1, f"{ID}.jsonl", ID, digest=digest)
    vault.reindex()
    write(vault, "ours", session_key=ID) if order != "ours first" else ended(vault, 1, f"{ID}.jsonl", ID, digest=digest)
    vault.reindex()
    assert shown(vault) == ["ours"] and "other program" not in vault.page()
    assert vault.dump() == vault.dump_from_scratch()
    hits = vault.call("recall", "--json", "bounded the retry loop").json["hits"]
    assert len([hit for hit in hits if hit["tier"] == "session"]) == 1
    assert vault.call("open", "--json", ID).json["session_id"] == ID
    for path in vault.memory.glob(f"*{made.token_for(session_id=ID)}*"):
        path.unlink()
    vault.reindex("--accept-removals")
    assert "other program ended" in vault.page()
    assert vault.call("remove", ID, "--reason", "asked for", "--yes").code == 0
    assert not list(vault.memory.glob("*--*.md"))


@pytest.mark.parametrize("compacted", [False, True])
def test_sessions_of_a_key_that_never_changes_are_not_one(tmp_path: Path, compacted: bool) -> None:
    vault = Vault(tmp_path / "vault")
    words = [ended(vault, number, f"{number}.jsonl", "agent:main:main", number) for number in (1, 2, 3)]
    if compacted:  # which Signet names by the key
        vault.put(made.compaction(session_id="agent:main:main", session_key="agent:main:main"))
    vault.reindex()
    assert all(word in vault.page() for word in words)
