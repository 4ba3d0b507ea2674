"""Words that would be more than words: on no page, in no answer on a terminal do they become anything else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES, EVERY, note, run
from markdown_it import MarkdownIt
from workbench import NOW, Vault

from benchmarks import mutation
from signet_sync.entities import document as documents
from signet_sync.entities.agent_text import fit, fit_item, item_text, log_item
from signet_sync.entities.events import token_of
from signet_sync.entities.repository import new_ulid
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import CORE
from signet_sync.formats.managed_block import CLOSING, OPENING, block
from signet_sync.formats.paths import leaves_workspace
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.score import Dream, DreamedView, Promotion, SweepView, Use
from signet_sync.pages.context import PromptHit, lay_out_hits, wrap
from signet_sync.pages.dreams_page import diary
from signet_sync.pages.memory_page import Projection, render
from signet_sync.pages.sections import BoardInputs, EntityEntry, NodeView, StatementView, ThreadView
from signet_sync.pages.session_log import LedgerRow, Part, WindowRow, compose, day_text

NOW_US = 1_774_785_600_000_000  # 2026-03-29T12:00:00Z
_ROOM = 1_000_000  # tokens: every line is shown
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# ── what is seen ──

_markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_SEEN = {"link_open": "href", "image": "src"}
_HASH = re.compile(r"(?<=signet:end )[0-9a-f]{16}")
_OBSIDIAN = re.compile(
    r"!?\[\[[^\[\]]*\]\]|%%|\$\$|<!--[^\n]*?-->| \^(?:m-[a-z2-7]{12}|[a-z]-[a-z2-7]{6})$"
    r"|\^[a-z]-(?=.* \^[a-z]-[a-z2-7]+$)|^\[\^[^\]]*\]:",
    re.MULTILINE,
)


def skeleton(page: str, *, authored: bool = False) -> list[tuple[str, ...]]:
    """All that is no words: blocks with their nesting, links, images, HTML, code; what Obsidian alone acts on; lines.

    On a page that has authors, links into the workspace and handles among their words are theirs.
    """
    found: list[tuple[str, ...]] = []
    for token in _markdown.parse(page):
        if token.type != "inline":
            found.append((token.type, token.tag, str(token.level), token.info, _html(token.content, token.type)))
            continue
        for inner in token.children or ():
            if inner.type in _SEEN:
                found.append((inner.type, str(inner.attrs.get(_SEEN[inner.type]))))
            elif inner.type in ("html_inline", "code_inline", "hardbreak", "softbreak"):
                found.append((inner.type, inner.content))
    found += [
        ("obsidian", _HASH.sub("", mark))
        for mark in _OBSIDIAN.findall(page)
        if not (authored and _is_the_authors(mark))
    ]
    return [*found, ("lines", str(len(page.splitlines())))]


def _html(content: str, kind: str) -> str:
    return _HASH.sub("", content) if kind in ("html_block", "fence", "code_block") else ""


def _is_the_authors(mark: str) -> bool:
    inside = mark.startswith("[[") and not leaves_workspace(mark[2:-2].split("|")[0])
    return mark.startswith(" ^") or (inside and not mark.startswith("[[memory/"))


# ── pages of words ──

Page = Callable[[Sequence[str]], str]


def _id(letter: str, number: int) -> str:
    return f"{letter}-aaaaaaaa{''.join(_LETTERS[number // 26**power % 26] for power in (3, 2, 1, 0))}"


def _path(number: int) -> str:
    return f"memory/2026-03-28T10-00-{number % 60:02d}.000Z--{'a' * 16}--summary.md"


def _row(words: Sequence[str], number: int) -> LedgerRow:
    sentence, project, key = (words[(number + shift) % len(words)] for shift in range(3))
    at = NOW_US - number * 1_000_000
    row = compose("default", "a" * 16, [Part(_path(number), "summary", key, key, project, sentence, at, at, 0)])
    assert row is not None
    return row


def memory_page(words: Sequence[str]) -> str:
    """A MEMORY.md in which every field of every kind of line is one of the words."""
    said = [*words, *words]
    count = len(words)

    def at(number: int) -> int:
        return NOW_US - number * 60_000_000

    seen = BoardInputs(
        [
            ThreadView(_id("t", n), *said[n : n + 3], "open", 1, at(n), said[n + 3] + " comes out of it", _path(n))
            for n in range(count)
        ],
        [
            StatementView(_id("f", n), _KINDS[n % len(_KINDS)], said[n] + " is stated", said[n + 1], at(n), _path(n))
            for n in range(count)
        ]
        + [StatementView(_id("m", n), "fact", said[n] + " was asked to be kept", "", at(n), "") for n in range(count)],
        [
            EntityEntry(_id("p", n), "part", said[n] + " p", said[n + 1], "active", said[n + 2], at(n), "entities/x.md")
            for n in range(count)
        ],
        {_id("f", n): Use(pinned=True) for n in range(0, count, 2)},
        {_id("m", n): DreamedView(at(n), 0.5, 3, 2) for n in range(0, count, 2)},
    )  # fmt: skip
    nodes = [
        NodeView(_id("k", n), said[n], at(n) - 9 * DAY, at(n) - 9 * DAY, said[n + 1], _path(n + 30))
        for n in range(count)
    ]
    rows = [_row(words, number) for number in range(count)]
    projection = Projection(
        "default", "", lambda _: seen, count, ["2026-03"],
        [WindowRow((row.session_token, str(n)), row.line, row.tokens, row.day) for n, row in enumerate(rows)],
        [], lambda condensed, _: () if condensed else nodes, NOW_US,
    )  # fmt: skip
    return block(render(projection, 3 * _ROOM).text).decode()


_KINDS = ("decision", "constraint", "preference", "person", "blocker", "question", "next", "note")


def ledger_page(words: Sequence[str]) -> str:
    """The page of a day."""
    return block(day_text("default", "2026-03-28", [_row(words, n).line for n in range(len(words))])).decode()


def dream_page(words: Sequence[str]) -> str:
    """A DREAMS.md whose memories say these words."""
    dreams = [
        Dream(Promotion(_id("m", n), 0.5, 3, 0.5, 0.5, 0.5, 0.5, 2, 2, NOW_US), word, NOW_US)
        for n, word in enumerate(words)
    ]
    sweep = SweepView("20260328T030000000Z", NOW_US - DAY, 9, 0, len(dreams), dreams)
    return block(diary([sweep])).decode()


def entity_page(words: Sequence[str]) -> str:
    """A profile: the words as items of its lists, as its title and in its log."""
    document = documents.blank(
        "part", title=words[0], entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at=iso(NOW_US)
    )
    for number, word in enumerate(words):
        evidence = item_text(word, words[number - 1], _path(number), token_of(new_ulid(NOW_US)))
        items = {"highlights": fit_item(word), "evidence": evidence, "change-log": log_item(iso(NOW_US), word)}
        for section, item in items.items():
            document = documents.append_item(document, section, item)
    return documents.render(document)


def narrated(word: str) -> list[str]:
    """The headings and the HTML of a profile in whose narrative an agent wrote this: what else is inside is its own."""
    document = _blank()
    document = documents.append(document, CORE["part"][0].anchor, fit(word))
    page = documents.render(document)
    found = documents.parse(page)
    assert all(not section.body.strip() for section in found.sections[1:])
    html = [mark for kind, *_, mark in skeleton(page) if kind in ("html_block", "html_inline")]
    return [*html, *(f"{section.heading} {section.anchor}" for section in found.sections)]


@cache
def _blank() -> documents.EntityDocument:
    return documents.blank("part", title="x", entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at=iso(NOW_US))


def prompt_page(words: Sequence[str]) -> str:
    """What a session receives at a prompt."""
    found = [PromptHit(word, words[n - 1], _path(n), _id("m", n)) for n, word in enumerate(words)]
    text = wrap(lay_out_hits(found, _ROOM, len)[0], "/home/ada/.agents", "signet-sync")
    assert text.startswith(OPENING) and text.endswith(CLOSING) and text.count("signet-memory>") == 2
    # Between HTML's marks nothing is read as Markdown; what a model reads into it is looked at without them.
    return "\n\n".join(text.split("\n")[1:-1])


PAGES: dict[str, Page] = {
    "MEMORY.md": memory_page,
    "a ledger's day": ledger_page,
    "DREAMS.md": dream_page,
    "an entity's profile": entity_page,
    "what a session is told": prompt_page,
}


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
@pytest.mark.parametrize("many", [1, pytest.param(50, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("more", [40, pytest.param(2_000, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("form", ["text", pytest.param("JSON", marks=pytest.mark.slow)])
def test_no_answer_holds_what_a_terminal_would_obey(evil: Vault, form: str) -> None:
    sealed = evil / made.path_for("summary", **WHO)
    sealed.write_bytes(sealed.read_bytes() + EVIL.encode())
    evil.call("reindex")
    # Those that write most come last.
    names = sorted(COMMAND_LINES, key=lambda name: (not COMMAND_LINES[name].reads, name in ("remove", "forget")))
    tried = [name for name in names if not COMMAND_LINES[name].serves and name not in NOT_TRIED]
    if form == "JSON":
        tried = [name for name in tried if any("--json" in one.opts for one in EVERY[name].params)]
    more = ("--json",) if form == "JSON" else ()
    for command in tried:
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
