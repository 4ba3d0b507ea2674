"""Pages of before a removal come back: no line of them with words of the removed session stays anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import artifacts_fixture as made
import pytest
from crash_runner import killed_after_its_swap
from workbench import NOW, Vault, numbered, sampled

from signet_sync.app.workspace import open_to_write
from signet_sync.pages import page_files
from signet_sync.settings.model import Settings

WORD = "qzxvheron"
LANTERN = "/home/ada/code/lantern"
OWN = "My own words."
REMOVED = 3  # the session that is removed: 1 and 2 are newer, 4 is older


def session(vault: Vault, number: int, *decisions: str, more: str = "", **given: Any) -> None:
    said = "".join(f"- {one}\n" for one in decisions)
    body = f"# Session {number}\n\n## Decisions\n\n{said}{more}" if decisions else f"# Session {number}\n\n{more}"
    vault.session(number, **{"project": LANTERN, "body": body, **given})


def sentence(word: str) -> str:
    return f"In lantern the {word} bounded the retry loop of src/queue.py so that every start ends in time."


def statement(vault: Vault) -> None:
    session(vault, 1, "Charts are drawn at night.")
    session(vault, REMOVED, f"The {WORD} keeps the queue.")


def thread(vault: Vault) -> None:
    session(vault, 4, "Charts are drawn at night.")
    session(vault, REMOVED, memory_sentence=sentence(WORD), more="Nothing else.\n")


def condensation(vault: Vault) -> None:
    session(vault, 1, "Charts are drawn at night.")
    session(vault, 4, "Tides are read at night.", captured_at="2026-02-03T10:00:00.000Z")
    then = "2026-02-05T10:00:00.000Z"
    session(vault, REMOVED, "Buoys are lit at noon.", captured_at=then, memory_sentence=sentence(WORD))
    session(vault, 5, "Lamps are lit at dusk.", captured_at="2026-02-04T10:00:00.000Z")


def memory(vault: Vault) -> None:
    session(vault, 1, "Charts are drawn at night.")
    session(vault, REMOVED, "Tides are read at night.")
    vault.reindex()
    who = ("--session", numbered(REMOVED)["session_id"], "--now", NOW)
    assert vault.call("remember", f"The {WORD} sleeps at noon.", *who).code == 0


# What a page shows, and the line of it that has the word, without a name of the session's file where one is left out.
KINDS: dict[str, tuple[Callable[[Vault], None], str]] = {
    "a statement": (statement, r"^- The WORD keeps the queue\. \(lantern, Mar 26\) \^f-\w+$"),
    "a thread": (thread, r"^- \*\*lantern\*\* .*WORD.* \^s-\w+ \^t-\w+$"),
    "a condensation": (condensation, r"^- Feb 3 to Feb 5 · lantern, 3 sessions: .*WORD.* \^a-\w+$"),
    "a memory": (memory, r"^- The WORD sleeps at noon\. .* \^m-\w+$"),
}


@pytest.fixture(params=sampled(KINDS, 2))
def before(request: pytest.FixtureRequest, tmp_path: Any) -> tuple[Vault, str]:
    """A vault, a session of which is removed, and its page of before."""
    vault = Vault(tmp_path / "vault")
    fill, line = KINDS[request.param]
    fill(vault)
    vault.reindex()
    page = vault.page()
    assert re.search(line.replace("WORD", WORD), page, re.MULTILINE), page
    remove(vault)
    assert leaks(vault) == []
    return vault, page


def remove(vault: Vault) -> None:
    answer = vault.call("remove", numbered(REMOVED)["session_id"], "--reason", "asked for", "--yes", "--now", NOW)
    assert answer.code == 0, answer


def leaks(vault: Vault) -> list[str]:
    places = [path for place in (vault.root, vault.state) for path in place.rglob("*") if path.is_file()]
    return [path.name for path in places if WORD[3:].encode() in path.read_bytes()]


def damaged(page: str) -> str:
    """The page with an owner's words, in a state in which all of it is kept."""
    return f"{OWN}\n{page.replace('signet:end', 'signet:END')}"


def as_kept_copy(vault: Vault, page: str) -> None:
    (vault / "MEMORY.user-20260329T110000Z.md").write_text(damaged(page))


def as_displaced_save(vault: Vault, page: str) -> None:
    killed_after_its_swap(vault, "MEMORY.md", damaged(page), vault.page())


def as_page(vault: Vault, page: str) -> None:
    (vault / "MEMORY.md").write_text(damaged(page))
    vault.reindex()
    assert list(vault.root.glob("MEMORY.user-*")) and WORD not in vault.page()


def as_conflict_copy(vault: Vault, page: str) -> None:
    (vault / "MEMORY.sync-conflict-20260329-101010-ABCDEFG.md").write_text(damaged(page))


def after_a_lost_database(vault: Vault, page: str) -> None:
    for path in vault.state.glob("*.db*"):
        path.unlink()
    as_kept_copy(vault, page)


def as_whole_page(vault: Vault, page: str) -> None:
    (vault / "MEMORY.md").write_text(page)


# The last one takes the index with it.
WAYS = [as_whole_page, as_kept_copy, as_displaced_save, as_page, as_conflict_copy, after_a_lost_database]


@pytest.mark.parametrize("ways", [WAYS[:2] + WAYS[-1:], pytest.param(WAYS, marks=pytest.mark.slow)], ids=len)
def test_no_word_of_it_stays(before: tuple[Vault, str], ways: list[Callable[[Vault, str], None]]) -> None:
    vault, page = before
    for way in ways:
        way(vault, page)
        vault.reindex()
        assert leaks(vault) == [], way.__name__
        kept = [path for path in vault.root.glob("MEMORY*.md") if OWN in path.read_text()]
        assert bool(kept) is (way is not as_whole_page), way.__name__
        for path in kept:
            path.unlink()


# ── what stays ──


def of_a_statement(vault: Vault) -> str:
    """Has a statement of a session removed; the line that showed it."""
    statement(vault)
    vault.reindex()
    (line,) = re.findall(rf"^- The {WORD} keeps .*$", vault.page(), re.MULTILINE)
    remove(vault)
    assert vault.rows("select count(*) from removed_handles")[0][0]
    return str(line)


def is_kept_whole(vault: Vault, line: str) -> bool:
    """Whether a kept copy with this line stays as it is."""
    kept = vault / "MEMORY.user-20260329T110000Z.md"
    text = f"{OWN}\n{line}\n"
    kept.write_text(text)
    vault.reindex()
    return kept.read_text() == text


def test_a_line_stays_if_another_session_says_the_same(tmp_path: Any) -> None:
    vault = Vault(tmp_path / "vault")
    line = of_a_statement(vault)
    with open_to_write(str(vault.root), Settings()) as workspace:
        assert page_files.shows_removed(workspace, "default", line.encode())
    session(vault, 2, f"The {WORD} keeps the queue.")
    vault.reindex()
    with open_to_write(str(vault.root), Settings()) as workspace:
        assert not page_files.shows_removed(workspace, "default", line.encode())
    assert is_kept_whole(vault, line)


def test_an_undo_drops_what_was_kept_of_handles(tmp_path: Any) -> None:
    vault = Vault(tmp_path / "vault")
    line = of_a_statement(vault)
    assert vault.call("remove", numbered(REMOVED)["session_id"], "--undo").code == 0
    assert vault.rows("select * from removed_handles") == []
    assert is_kept_whole(vault, line)


def test_a_handle_of_another_agent_is_none_of_the_removed(tmp_path: Any) -> None:
    vault = Vault(tmp_path / "vault")
    line = of_a_statement(vault)
    vault.put(made.summary(agent_id="scout", session_id="of-scout", captured_at=numbered(1)["captured_at"]))
    (vault / "agents/scout").mkdir(parents=True)
    kept = vault / "agents/scout/MEMORY.user-20260329T110000Z.md"
    kept.write_text(f"{OWN}\n{line}\n")
    vault.reindex()
    assert kept.read_text() == f"{OWN}\n{line}\n"


def test_a_line_goes_though_its_session_was_never_in_this_index(tmp_path: Any) -> None:
    """The database was lost, and the removal comes from another machine before the next pass."""
    vault = Vault(tmp_path / "vault")
    statement(vault)
    vault.reindex()
    (line,) = re.findall(rf"^- The {WORD} keeps .*$", vault.page(), re.MULTILINE)
    (other,) = re.findall(r"^- Charts are .*$", vault.page(), re.MULTILINE)
    kept = vault / "MEMORY.user-20260329T110000Z.md"
    kept.write_text(f"{OWN}\n{line}\n{other}\nsee ^f-aaaaaa\n")
    for path in vault.db.parent.glob(f"{vault.db.name}*"):
        path.unlink()
    vault.put(made.tombstone(session_id=numbered(REMOVED)["session_id"], removed_at=NOW), "memory/tombstones")
    vault.reindex()
    assert leaks(vault) == []
    assert kept.read_text() == f"{OWN}\n{other}\nsee ^f-aaaaaa\n"
