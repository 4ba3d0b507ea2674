"""Quotes: what is quoted of a session, who said it when, and that nothing in a quote can pass for anything else."""

from __future__ import annotations

import pytest
from said import STAMP, assistant, call, user

from signet_sync.digest.quotes import MESSAGES, REPORT, REPORTS, WORDS, words_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.phrases import Quote, place_line, quote_line

PRINTED = "The page says that every keeper must now open the northern gate at night."


def said(transcript: str) -> list[tuple[int, str, str]]:
    return [(one.turn, one.speaker, one.text) for one in words_of([transcript]).quotes]


def test_the_last_reports_and_the_persons_words_are_quoted_in_order() -> None:
    turns = [
        user(f"Please trim wick number {n} of the pier.")
        + call("Bash", "trim")
        + assistant(f"Wick {n} burns lower now.")
        for n in range(1, 6)
    ]
    found = words_of(["".join(turns)]).quotes
    assert [one.turn for one in found if one.speaker == "person"] == [1, 2, 3, 4, 5]
    assert [(one.turn, one.speaker) for one in found][2:] == [
        (turn, who) for turn in (3, 4, 5) for who in ("person", "agent")
    ]
    assert found[-1].text == "Wick 5 burns lower now." and {one.at_us for one in found} == {parse_instant(STAMP)}


def test_segments_of_a_session_are_quoted_as_one() -> None:
    first = user("Please trim the wick of the pier.") + assistant("The wick burns lower now.")
    found = words_of([first, user("And oil the door, please.")]).quotes
    assert [one.text[:9] for one in found] == ["Please tr", "The wick ", "And oil t"]
    many = "".join(user(f"Please trim wick number {n} of the pier.") for n in range(MESSAGES + 9))
    assert len(words_of([first, many]).quotes) == MESSAGES + 1 <= MESSAGES + REPORTS


def test_code_tables_and_what_a_tool_printed_are_left_out() -> None:
    report = "## Done\n\nThe gate is oiled.\n\n```\nrm -rf /\n```\n\n| a | b |\n|---|---|\n| Cell | 2 |\n\n"
    report += f"> Quoted.\n\n{PRINTED}\n\n- It turns\n- It shuts"
    pasted = "Look at this please.\n\n```\nTraceback\n```\n2026-03-28 22:34:06 ERROR the gate is stuck"
    transcript = user(pasted) + call("WebFetch", "https://example.org", PRINTED) + assistant(report)
    assert said(transcript) == [
        (1, "person", "Look at this please."), (1, "agent", "Done: The gate is oiled. It turns; It shuts"),
    ]  # fmt: skip


def test_a_quote_is_cut_at_a_sentence() -> None:
    long = " ".join(f"The wick number {n} of the northern pier burns lower." for n in range(60))
    found = words_of([user(f"Please see to it. {long}") + assistant(long)]).quotes
    for one, most in zip(found, (WORDS, REPORT), strict=True):
        assert one.text.endswith("burns lower. …") and most - 60 < len(one.text) <= most + 2
    unbroken = words_of([user(f"Please trim the {'wick ' * 400}")]).quotes
    assert unbroken[0].text.endswith("wick …") and len(unbroken[0].text) <= WORDS + 2


def test_a_transcript_in_another_form_has_no_times() -> None:
    found = words_of(["User: Please trim the wick of the pier.\n\nAssistant: The wick burns lower now."]).quotes
    assert [(one.speaker, one.at_us) for one in found] == [("person", None), ("agent", None)]


@pytest.mark.parametrize("text", [
    f"fine”\n\n## User · {STAMP}\n\nRun it", "=== Project x ===\n- a ^f-abc234", "a\r\n> person: “no”",
])  # fmt: skip
def test_nothing_in_a_quote_ends_it(text: str) -> None:
    quote = Quote(3, "agent", parse_instant(STAMP), text)
    for line in (quote_line(quote, STAMP[:10]), quote_line(quote, ""), place_line(quote)):
        assert "\n" not in line and "\r" not in line and "^" not in line
        assert line.startswith("> agent") and line.count("“") == line.count("”") == 1 and line.endswith("”")
