"""The token estimate against cl100k's own counts, its laws over lines, and clipping."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.text.token_estimate import estimate_tokens

VAULTS = Path(__file__).resolve().parents[3] / "shared" / "vaults"


def _pages() -> list[tuple[str, Path, int]]:
    """Every page whose own count of cl100k is known: what it is, its file, its tokens."""
    pages = []
    for expected in sorted(VAULTS.glob("*/expected")):
        vault = expected.parent.name
        for told in sorted(expected.glob("fresh*.json")):
            for agent, facts in sorted(json.loads(told.read_text(encoding="utf-8"))["agents"].items()):
                page = expected / f"fresh.MEMORY.{agent}.content.md"
                pages.append((f"{vault}-fresh-{agent}", page, facts["tokens_cl100k"]))
        for told in sorted(expected.glob("live.head.*.json")):
            agent = told.name.split(".")[2]
            known = json.loads(told.read_text(encoding="utf-8"))["tokens_cl100k"]
            pages.append((f"{vault}-live-{agent}", expected / f"live.MEMORY.{agent}.content.md", known))
    return pages


@pytest.mark.parametrize(("page", "known"), [pytest.param(file, n, id=name) for name, file, n in _pages()])
def test_pages_are_never_undercounted_and_little_overcounted(page: Path, known: int) -> None:
    text = page.read_bytes().decode("utf-8")
    assert 0.98 <= estimate_tokens(text) / known <= 1.15
    lines = text.split("\n")
    assert sum(estimate_tokens(line) + 1 for line in lines) >= 0.98 * known


# Texts of our own, counted once by cl100k_base: name, text, its tokens, the bounds of estimate / tokens.
COUNTED = [
    ("prose", "The watcher lost two events when the disk was full, so the next pass looked at everything again and"
     " found nothing new.", 24, (0.98, 1.2)),
    ("row", "- 2026-03-28T22:34:06.792Z | session=5a1e403d-f30f-4494-a249-67221f5bdc3c | project=/home/ada/code/engine"
     " | Kept the cursor strict and let the queue retry."
     " [[memory/2026-03-28T22-34-06.792Z--h7k3n4p2m2x6q5r5--summary.md|summary]]"
     " [[memory/2026-03-28T22-34-06.792Z--h7k3n4p2m2x6q5r5--manifest.md|manifest]]", 145, (0.98, 1.2)),
    ("json", '{"agent_id": "default", "revision": 12, "lease": null, "files": ["a.md", "b.md"], "ok": true}', 34,
     (0.98, 1.2)),
    ("base32", "eyntjmnhivvs4rfm tpytisgm7zib3ymp lb7fq3zht32unb6p cdjl4xu5wlnx4xfp", 43, (0.8, 1.2)),
    ("sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 35, (0.9, 1.2)),
    ("german", "Die Sitzung wurde abgebrochen, weil die Wiederherstellung der Sicherung viel zu lange dauerte.", 25,
     (0.7, 1.3)),
    ("russian", "Сегодня мы перенесли базу данных и проверили, что ни одна запись не потеряна.", 30, (0.95, 1.4)),
    ("hindi", "आज हमने डेटाबेस को स्थानांतरित किया और बैकअप की जाँच की।", 56, (0.95, 1.5)),
    ("chinese", "今天我们迁移了数据库，并检查了所有备份是否完整。", 19, (0.98, 2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "known", "bounds"), [pytest.param(*row[1:], id=row[0]) for row in COUNTED])
def test_kinds_of_text_stay_near_their_true_count(text: str, known: int, bounds: tuple[float, float]) -> None:
    low, high = bounds
    ratio = estimate_tokens(text) / known
    assert low <= ratio <= high, f"{estimate_tokens(text)} for {known}: {ratio:.2f}"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0), (" ", 1), ("\n", 1), ("a", 1), ("7", 1), ("123", 1), ("1234", 2), ("2026-03-28", 6), (" 2026", 3),
        ("hello world", 2), ("readFile", 2), ("]] [[", 2), ("one\n\ntwo", 3),
    ],
)  # fmt: skip
def test_small_texts_are_exact(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


# Dense in what the classes turn on: digits by letters, runs, blank lines, scripts, surrogates.
PIECES = st.sampled_from(
    [
        "a", "B", "7", " ", "\n", "-", "]]", "\t", "\r\n", "é", "я", "字", "か", "—", "🎉", "\ud800", "word", "  ",
        "0abc",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(PIECES, max_size=30).map("".join),
    st.text(st.characters(categories=["Cs", "Ll", "Nd", "Zs", "Lo", "So"]), max_size=30),
)


@given(TEXTS, TEXTS)
def test_two_texts_joined_by_a_newline_cost_at_most_one_more_than_both(first: str, second: str) -> None:
    joined = estimate_tokens(first + "\n" + second)
    assert joined <= estimate_tokens(first) + estimate_tokens(second) + 1
    assert joined >= max(estimate_tokens(first), estimate_tokens(second))


@given(st.lists(TEXTS.map(lambda t: t.replace("\n", "")), max_size=6), TEXTS, st.integers(0, 6))
def test_adding_a_line_never_lowers_it(lines: list[str], new: str, at: int) -> None:
    more = [*lines[:at], new, *lines[at:]]
    assert estimate_tokens("\n".join(more)) >= estimate_tokens("\n".join(lines))
