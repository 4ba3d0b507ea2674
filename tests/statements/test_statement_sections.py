"""What an artifact lists under known headings: kinds, lines, what is done."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.statement import SECTION_OF
from signet_sync.statements.sections import ITEM_LENGTH, ITEMS_PER_ARTIFACT, items, normal


def said(body: str) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in items(body)]


KNOWN = {
    "decision": ("# Key decisions:", "## DECIDED", "## Decisions & Constraints", "## Decisions and constraints",
                 "## 3. Decisions", "## 2.1 Decisions", "## 4) Decisions", "## **Decisions:**", "##\tDecisions"),
    "constraint": ("## Constraints",), "preference": ("## Preferences",),
    "person": ("## People", "## People & Relationships", "## Who"),
    "blocker": ("## Open Blockers & Technical Notes", "## Risks", "## Known issues"),
    "question": ("## Open questions",), "note": ("## Technical Notes", "## Gotchas", "## Learnings"),
    "next": ("###### NEXT STEPS ######", "## ✅ Next steps", "## TODO", "## To-do", "## Action items", "## Follow-ups"),
    None: ("## Decisions made elsewhere", "## Decisions and cakes", "##Decisions", "####### Decisions", "Decisions",
           "**Decisions**", "## " + "Decisions" + " " * 60),
}  # fmt: skip


def test_headings():
    for kind, heading in ((kind, one) for kind, some in KNOWN.items() for one in some):
        assert said(f"{heading}\n- trim the wick\n") == ([(kind, "trim the wick")] if kind else []), heading


LISTS = {
    "## Decisions\n\n- trim wicks\n* fill lamps\n+ sweep quays\n1. ring bells\n2) light fires\n": [
        "trim wicks", "fill lamps", "sweep quays", "ring bells", "light fires"],
    "# Key decisions:\n\nTrim the whole\nwick.\n\nFill the lamp.\n": ["Trim the whole wick.", "Fill the lamp."],
    "## Open questions\n- a question\n  over two lines\n\n- another lamp\n": [
        "a question over two lines", "another lamp"],
    "## People\n- Ada knows Bob\n- Ada  knows Bob.\n": ["Ada knows Bob."],
    "## Decisions\n- kept item\n### Details\n- not kept\n": ["kept item"],
    "## Decisions\n- kept item\n#hashtag of it\n- next item\n": ["kept item #hashtag of it", "next item"],
    "## Decisions\n> quoted\n| a | table |\n- fill lamps\n": ["fill lamps"],
    "## Decisions\n```sh\n# comment\n- in code\n```\n- code ends\n": ["code ends"],
    "```md\n## Decisions\n- in code\n```\n": [],
    "~~~\n```\n## Decisions\n- fence ended\n": ["fence ended"],
    "## Decisions\n- a\n- !?\n- fill lamps\n": ["fill lamps"],
    "## Blockers\n- None.\n- n/a\n- No open blockers\n\nNothing yet\n": [],
    "## Next\n- real work\n- … 1,204 more …\n- … 3 before these …\n": ["real work"],
    "## Decisions\n": [],
    "": [],
    "## Decisions\n\n- # Injected line\n- > quoted line\n- - - deeper item\n- 1. numbered item\n- ~~~ fenced line\n": [
        "Injected line", "quoted line", "deeper item", "numbered item", "fenced line"],
    "## Decisions\n- see [[evil|x]] `code` <!-- c -->\n": ["see [ [evil|x] ] 'code' <! -- c -- >"],
    "## Decisions\n" + "".join(f"- item number {n}\n" for n in range(30)): [
        f"item number {n}" for n in range(30)],
}  # fmt: skip


def test_lists_and_paragraphs():
    for body, texts in LISTS.items():
        assert [item.text for item in items(body)] == texts, body


def test_lines_count_from_the_body_s_first():
    body = "# T\n\n## Decisions\n\n- light fires\n\nFill lamps\nof two quays\n\n```\n\n```\n"
    body += "## Next\n1. fill lamps\n   and wicks\n- trim wicks\n"
    assert [(item.line, item.text) for item in items(body)] == [
        (5, "light fires"), (7, "Fill lamps of two quays"), (14, "fill lamps and wicks"),
        (16, "trim wicks")]  # fmt: skip
    assert [item.line for item in items("## Next\n- trim wicks")] == [2]
    assert [item.line for item in items("\n## Next\n- trim wicks")] == [3]
    # What is said again counts where it was said last.
    again = items("## Next\n- trim wicks\n- fill lamps\n- Trim wicks.")
    assert [(item.line, item.text) for item in again] == [(3, "fill lamps"), (4, "Trim wicks.")]


def test_ticked_and_struck_items_are_done():
    body = (
        "## Next\n- [ ] open lamp\n- [x] ticked one\n  with more of it\n* [X] ticked two\n1. [x] numbered one\n"
        "- ~~struck one~~\n- ~~struck two~~ (done in #12)\n- ~~struck three~~ done\n"
        "\nwick still open\n"
    )
    assert [(item.text, item.done) for item in items(body)] == [
        ("open lamp", False), ("ticked one with more of it", True), ("ticked two", True), ("numbered one", True),
        ("struck one", True), ("struck two (done in #12)", True), ("struck three done", True),
        ("wick still open", False)]  # fmt: skip


def test_items_below_a_heading_of_what_is_done_are_done():
    body = "## Done\n- trim the wick\n- [x] fill the lamp\n## Resolved:\n- no oil\n## Next\n- light lamps\n"
    body += "## Summary\n- all well\n"
    assert [(item.kind, item.text, item.done) for item in items(body)] == [
        ("next", "trim the wick", True), ("next", "fill the lamp", True), ("blocker", "no oil", True),
        ("next", "light lamps", False)]  # fmt: skip


def test_only_our_own_digests_name_a_speaker():
    body = "## Decisions\n- burn oil\n- trim wicks (agent)\n## Next\n- light lamps\n"
    assert [item.speaker for item in items(body, own=True)] == ["person", "agent", "agent"]
    assert {item.speaker for item in items(body)} == {"file"}


EQUAL = [
    ("Use SQLite", "use  sqlite."),
    ("Use **SQLite**", "Use SQLite"),
    ("Use `SQLite`", "Use 'SQLite'"),
    ("Use _SQLite_!", "Use SQLite"),
    ("Caf\u00e9", "cafe\u0301"), ("Straße", "STRASSE"), ("用 SQLite。", "用 sqlite"),
]  # fmt: skip
OTHER = [("read_user", "readuser"), ("don't", "dont"), ("a.b", "ab"), ("2*3", "23"), ("x?", "y?")]


def test_which_texts_are_equal():
    assert [pair for pair in EQUAL if normal(pair[0]) != normal(pair[1])] == []
    assert [pair for pair in OTHER if normal(pair[0]) == normal(pair[1])] == []


def test_a_long_item_is_cut_and_an_artifact_says_only_so_much():
    (item,) = items("## Decisions\n- trim " + "word " * 200)
    assert len(item.text) <= ITEM_LENGTH and item.text.endswith("…")
    assert len(items("".join(f"## Next\n- step {n}\n" for n in range(500)))) == ITEMS_PER_ARTIFACT


@given(st.text(st.sampled_from("#-*~[]x `:\n\r1. aé中DecisionsNext|>"), max_size=400))
def test_any_body(body):
    lines = body.count("\n") + 1
    for item in items(body) + items(f"## Decisions\n{body}"):
        assert item.kind in SECTION_OF and 1 <= item.line <= lines + 1
        assert 0 < len(item.text) <= ITEM_LENGTH and "\n" not in item.text and normal(item.text)


def test_hostile_texts_are_read():
    """What is not linear takes minutes."""
    for body in (
        "## Next\n" * 30_000, "## Next\n- abc def\n" * 15_000, "## Decisions" + " " * 500_000 + "x", "```\n" * 75_000,
        "## Next\n" + "- " * 250_000, "## Next\n- ~~" + "~~a" * 200_000, "## Next\n- " + "_'" * 250_000,
        "## Notes\n- " + ":" * 500_000,
    ):  # fmt: skip
        items(body)
