"""Pages made of given words, and what a reader of Markdown sees in them besides words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from markdown_it import MarkdownIt

from signet_sync.entities.documents import document as documents_document
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import fit, fit_item, log_item
from signet_sync.entities.evidence import Evidence, item_text
from signet_sync.formats.entity_paths import CORE
from signet_sync.formats.managed_block import CLOSING, OPENING, block
from signet_sync.formats.paths import leaves_workspace
from signet_sync.formats.session_log_rows import WindowRow
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.promotion_score import Dream, Promotion, Signals, SweepView
from signet_sync.memories.score import DreamedView, Use
from signet_sync.pages.context import PromptHit, lay_out_hits, wrap
from signet_sync.pages.dreams_page import diary
from signet_sync.pages.memory_page import NodeView, Projection, Shares, render
from signet_sync.pages.sections import (
    EntityEntry,
    MemoryView,
    PinnedView,
    SectionInputs,
    StatementView,
    ThreadView,
    candidates,
)
from signet_sync.pages.session_log import LedgerRow, Part, compose, day_text

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

    def told(number: int) -> tuple[str, str]:
        """Outcome and next step: as all lines of the page, no two say the same."""
        return said[number + 3] + " comes out of it", said[number + 4] + " follows after this"

    seen = SectionInputs(
        [
            ThreadView(_id("t", n), *said[n : n + 3], "open", 1, at(n), *told(n), _path(n))
            for n in range(count)
        ],
        [
            StatementView(_id("f", n), _KINDS[n % len(_KINDS)], said[n] + " is stated", said[n + 1], at(n), _path(n))
            for n in range(count)
        ],
        [MemoryView(_id("m", n), "fact", said[n] + " was asked to be kept", at(n)) for n in range(count)],
        [PinnedView(_id("s", n), "summary", said[n] + " s", said[n + 1], at(n), _path(n)) for n in range(count)],
        {_id("s", n): Use(pinned=True) for n in range(count)},
        {_id("m", n): DreamedView("### 2026-03-28", at(n), 0.5, 3, 2) for n in range(0, count, 2)},
        [
            EntityEntry(_id("p", n), "part", said[n] + " p", said[n + 1], "active", said[n + 2], at(n), "entities/x.md")
            for n in range(count)
        ],
    )  # fmt: skip
    nodes = [
        NodeView(_id("k", n), "session", said[n], at(n), at(n), 1, [(at(n), said[n + 1], _path(n + 30))])
        for n in range(count)
    ]
    rows = [_row(words, number) for number in range(count)]
    projection = Projection(
        "default", "", lambda _: (candidates(seen, NOW_US), seen), count, ["2026-03"],
        [WindowRow((row.session_token, str(n)), row.line, row.tokens, row.day) for n, row in enumerate(rows)],
        [], [], nodes, NOW_US,
    )  # fmt: skip
    return block(render(projection, Shares(3 * _ROOM, _ROOM, _ROOM)).text).decode()


_KINDS = ("decision", "constraint", "preference", "person", "blocker", "question", "next", "note")


def ledger_page(words: Sequence[str]) -> str:
    """The page of a day."""
    return block(day_text("default", "2026-03-28", [_row(words, n).line for n in range(len(words))])).decode()


def dream_page(words: Sequence[str]) -> str:
    """A DREAMS.md whose memories say these words."""
    dreams = [
        Dream(Promotion(_id("m", n), 0.5, Signals(3, 0.5, 0.5, 0.5, 0.5, 2), 2, NOW_US), word, NOW_US)
        for n, word in enumerate(words)
    ]
    sweep = SweepView("20260328T030000000Z", NOW_US - DAY, 9, 0, len(dreams), dreams)
    return block(diary([sweep])).decode()


def entity_page(words: Sequence[str]) -> str:
    """A profile: the words as items of its lists, as its title and in its log."""
    document = documents_document.blank(
        "part", title=words[0], entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at=iso(NOW_US)
    )
    for number, word in enumerate(words):
        evidence = item_text(Evidence(word, words[number - 1], _path(number), None))
        items = {"highlights": fit_item(word), "evidence": evidence, "change-log": log_item(iso(NOW_US), word)}
        for section, item in items.items():
            document = edits.append_item(document, section, item)
    return documents_document.render(document)


def narrated(word: str) -> list[str]:
    """The headings and the HTML of a profile in whose narrative an agent wrote this: what else is inside is its own."""
    document = _blank()
    document = edits.append(document, CORE["part"][0].anchor, fit(word)[0])
    page = documents_document.render(document)
    found = documents_document.parse(page)
    assert all(not section.body.strip() for section in found.sections[1:])
    html = [mark for kind, *_, mark in skeleton(page) if kind in ("html_block", "html_inline")]
    return [*html, *(f"{section.heading} {section.anchor}" for section in found.sections)]


@cache
def _blank() -> documents_document.EntityDocument:
    return documents_document.blank(
        "part", title="x", entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at=iso(NOW_US)
    )


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
