"""Words that would be more than words: on no page, in no answer on a terminal do they become anything else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES, EVERY, note, run
from forged_pages import PAGES, narrated, skeleton
from workbench import NOW, Vault

from benchmarks import mutation
from signet_sync.errors import UsageError

AUTHORED = "an entity's profile"
# Lines of a page; an entity's file is written anew for each.
ON_A_PAGE = {AUTHORED: 12}


def batches(words: Sequence[str], size: int) -> Iterator[list[str]]:
    """The words by pages: in front of an honest word on one, behind it on the next, so that none says nothing."""
    for number, start in enumerate(range(0, len(words) - size + 1, size)):
        shape = "{0} w{1}" if number % 2 else "w{1} {0}"
        yield [shape.format(word, place) for place, word in enumerate(words[start : start + size])]


def forged(name: str, words: Sequence[str]) -> int:
    """Makes pages of the words and holds each to the page of honest ones; how many fields were words of these."""
    make, size, authored = PAGES[name], ON_A_PAGE.get(name, 40), name == AUTHORED
    expected = skeleton(make([f"honest w{number}" for number in range(size)]), authored=authored)
    tried = 0
    for said in batches(words, size):
        found = skeleton(make(said), authored=authored)
        wrong = next((pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]), None)
        assert found == expected, (wrong, said)
        tried += len(said)
    return tried


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("many", [1, pytest.param(500, marks=pytest.mark.slow)])
def test_no_words_forge_anything_on_a_page(name: str, many: int) -> None:
    """Those that were thought of, or many more that are drawn from them."""
    known = [*mutation.HOSTILE_WORDS, *mutation.HOSTILE_WORDS][:200]
    more = len(known) * many // (8 if name == AUTHORED else 1)
    assert forged(name, known if many == 1 else list(mutation.words(more, seed=1))) > 0


@pytest.mark.parametrize("name", [name for name in PAGES if name != AUTHORED])
def test_a_million_letters_become_a_line_like_any_other(name: str) -> None:
    """Into an entity's file nobody gets them: there they are refused."""
    said = "x" * 500_000 + " wick" * 100_000
    page = PAGES[name]([said, *(f"honest w{number}" for number in range(5))])
    assert max(len(line) for line in page.split("\n")) < 4_000


def narratives(count: int, seed: int) -> int:
    """Profiles in whose narrative somebody wrote hostile words; how many could be written."""
    expected = narrated("honest")
    written = 0
    for word in mutation.words(count, seed):
        try:
            found = narrated(word)
        except UsageError:
            continue  # it says nothing, or it cannot be made safe: it is refused, with the reason
        assert found == expected, word
        written += 1
    return written


@pytest.mark.parametrize("more", [40, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_narrative_leaves_its_section(more: int) -> None:
    assert narratives(len(mutation.HOSTILE_WORDS) + more, seed=1) > 100


# ── the terminal ──

EVIL = (
    "\x1b[31mred\x1b[0m \x9b32m \u202egnp \x07\x08 [bold]x[/bold] \u2028# h \x85 \x1b]0;t\x07 \ufeff \x1b]8;;https://e.example"
    "\x1b\\x in lantern src/queue.py is a thing that was looked at by all of us who came along."
)
# What moves a cursor, changes a colour or a title, or turns letters around.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
WHO = {"session_id": "5e551001-0000-4000-8000-000000000001", "captured_at": "2026-03-21T10:00:00.000Z"}
# These end a workspace, or make one.
NOT_TRIED = ("eject", "init", "demo")


@pytest.fixture
def evil(tmp_path: Path) -> Vault:
    """A vault whose every field, body, name and memory is hostile to a terminal."""
    vault = Vault(tmp_path / "vault")
    body = f"# {EVIL}\n\n## Decisions\n\n- {EVIL}\n\n## Next\n\n- {EVIL}\n\n## People\n\n- @ben {EVIL}"
    for number, given in enumerate(
        ({"project": EVIL}, {"harness": EVIL}, {"body": body}, {"memory_sentence": EVIL}), 2
    ):
        who = {"session_id": f"s{number}", "captured_at": f"2026-03-2{number}T10:00:00.000Z", "session_key": EVIL}
        vault.put(dict([made.summary(**who, **given), made.transcript(**who, **given)]))
    vault.put(made.summary(**WHO, body=body, memory_sentence=EVIL))
    vault.put((f"{EVIL[:12]}.md", b"x"))
    vault.put((f"2026-03-28T10-00-00.000Z--{'a' * 16}--summary.md", f'---\n"k\\x1b": x\n{EVIL}: x\n---\n'.encode()))
    stone, raw = made.tombstone(session_id="gone", reason=EVIL)
    vault.put((stone, raw), "memory/tombstones")
    (vault / "AGENTS.md").write_text(EVIL)
    (vault / "signet-sync.toml").write_text('"\\u001b[31m" = 1\n[projection]\n"x\\u009b" = 2\n')
    vault.call("reindex", "--json", "--now", NOW)
    memory = vault.call("remember", EVIL, "--json").json["id"]
    entity = vault.call("entity", "create", "part", EVIL, "--json").json["id"]
    vault.call("entity", "protect", "lock", entity, "role")
    proposal = vault.call("entity", "set", entity, "role", "--propose", "--text", EVIL, "--json").json["event_id"]
    who = {
        "session": "5e551001",
        "other": "s2",
        "memory": memory,
        "statement": "f-aaaaaaaaaaaa",
        "entity": entity,
        "drifted": entity,
    }
    note(vault, **who, edit=proposal, proposal=proposal, changed=made.path_for("summary", **WHO))
    return vault


def test_no_answer_holds_what_a_terminal_would_obey(evil: Vault) -> None:
    sealed = evil / made.path_for("summary", **WHO)
    sealed.write_bytes(sealed.read_bytes() + EVIL.encode())
    evil.call("reindex")
    # Those that write most come last.
    names = sorted(COMMAND_LINES, key=lambda name: (not COMMAND_LINES[name].reads, name in ("remove", "forget")))
    tried = [name for name in names if not COMMAND_LINES[name].serves and name not in NOT_TRIED]
    documents = [name for name in tried if any("--json" in one.opts for one in EVERY[name].params)]
    for command, *more in (*((name,) for name in tried), *((name, "--json") for name in documents)):
        answer = run(evil, command, *more)
        assert answer.code in (0, 1, 2, 3), answer
        found = CONTROL.search(answer.out + answer.err)
        assert found is None, (command, more, found, answer)
        assert "unexpected" not in answer.err
    for place in (evil.root, evil.state):
        for path in place.rglob("*"):
            if path.suffix in (".md", ".log", ".jsonl") and path.is_file() and "memory" not in path.parts:
                text = path.read_text("utf-8", "surrogateescape")
                assert path.name == "AGENTS.md" or CONTROL.search(text) is None, os.fsencode(path)
