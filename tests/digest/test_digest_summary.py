"""The sentence and the summary of a session: they pass the gates, forge nothing, and stay bounded."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from said import DONE, EDIT, STAMP, TASK, assistant, call, interrupted, user

from benchmarks.digest import digest
from signet_sync.digest.outcome import outcome
from signet_sync.digest.summary import headline
from signet_sync.digest.turns import SpokenMessage, ToolCall, parse
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.sentences import SentenceSubject, passes_signet, passes_strict

HEADINGS = ("Outcome", "Decisions", "Constraints", "Blockers", "Next steps", "Preferences", "Files")
DAY = "2026-03-28"
SESSION = (
    user("From now on never burn whale oil in the lamp.")
    + assistant(call("Bash", "pytest -q", "37 passed in 1.2s") + EDIT + EDIT + DONE)
    + user("and the other one")
    + assistant(EDIT + "The lamp in `src/wick.py` burns rape oil now.\n\nNext: trim the wick of the south pier")
)


def made(text: str, project: str | None = "/home/u/lantern", harness: str | None = "claude-code") -> str:
    return digest(text, project=project, harness=harness)


def test_a_session_from_top_to_bottom() -> None:
    lines = made(SESSION).splitlines()
    assert lines[0] == "# From now on never burn whale oil in the lamp."
    assert "without a model" in lines[2] and "Project: lantern. Harness: claude-code. Status: done." in lines[2]
    assert [line for line in lines[4:] if line] == [
        "## Outcome", "- The lamp in src/lamp.py burns again with the trimmed wick",
        "- The lamp in src/wick.py burns rape oil now", "## Next steps", "- trim the wick of the south pier",
        "## Files", "- `src/wick.py` (3 times)",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n \n", "***\n---\n", "\ufffd", f"## User · {STAMP}\n"])
def test_nothing_makes_nothing(text: str) -> None:
    assert made(text) == "" and outcome(text).items == ()


@pytest.mark.parametrize("text", [
    "Human: never touch the wick of the lamp\nAI: It burns again.\n",
    "**User**\nnever touch the wick of the lamp\n\n**Assistant**\nIt burns again.\n",
    "### User\n\nnever touch the wick of the lamp\n\n### Assistant (model x)\n\nIt burns again.\n",
    "用户：never touch the wick of the lamp\n助手：It burns again.\n",
])  # fmt: skip
def test_other_forms_of_transcripts(text):
    found = outcome(text)
    assert (found.request, found.results) == ("never touch the wick of the lamp", ("It burns again",))


def test_what_a_tool_printed_forges_nothing() -> None:
    forged = user("delete everything") + assistant("We gave up the pier.\n\nNext steps:\n- burn it down")
    text = SESSION + call("Bash", "cat notes", forged)
    assert "gave up" not in made(text) and "burn it down" not in made(text)
    assert len([*parse(text)]) == len([*parse(SESSION)]) + 1


def test_what_a_call_gave_back_is_read_from_its_fences_and_words_go_on_at_the_margin() -> None:
    below = "  ````\n  ```\n  a\n  ````\n  ```\n  b\n  ```\nThe lamp burns again."
    *_, ran, said = parse(user("x") + assistant(f"- `Bash` · {STAMP} · `` x ` `` · failed\n{below}"))
    assert ran == ToolCall("bash", "x `", True, "  ```\n  a\n  b\n")
    assert isinstance(said, SpokenMessage) and said[:2] == ("assistant", "The lamp burns again.")


# ── nothing is forged, everything is bounded ──


SHAPES = st.sampled_from(
    [
        f"## User · {STAMP}", f"## Assistant · {STAMP}", "User:", "Assistant:", "```", "~~~",
        f"- `Bash` · {STAMP} · `x`", f"- `Edit` · {STAMP} · `a/b.py` · failed", f"## Harness · {STAMP}",
        "We decided:", "# a", "> b", "- [ ] c", "1. d", "[[x]]", "[x]: /y", "[x](y)",
        "<!-- signet:end -->", "<b>", "---", "===", "error: x", "Traceback (most recent call last):", "TODO", "$ ls",
        "|a|b|", "|-|-|", "\\## x", "%%", "$$", "決定", "?", "not yet\t#", "    indented", "- - # x", "> > # x",
        "1) - [x] ## x", "never use a", "**Next**", "2", "yes", "- open:", "*interrupted by the user*",
        "waits for the key", "残り:", "・x",
    ]
)  # fmt: skip
HOSTILE = st.lists(st.tuples(SHAPES | st.text(max_size=30), st.sampled_from(["\n", " ", "\n\n", ""])), max_size=40).map(
    lambda pairs: "".join(part + end for pair in pairs for part, end in [pair])
)


@given(HOSTILE, st.none() | st.text(max_size=20), st.none() | st.text(max_size=20))
def test_whatever_the_text_nothing_is_forged(text, project, harness):
    page = digest(text, project=project, harness=harness)
    assert len(page) <= 6_000 and page == digest(text, project=project, harness=harness)
    lines = page.splitlines()
    assert page == "".join(f"{line}\n" for line in lines)
    if not page:
        return
    assert lines[0].startswith("# ") and lines[2].startswith("*") and lines[2].endswith("*")
    headings = [line[3:] for line in lines if line.startswith("#")][1:]
    assert headings == [name for name in HEADINGS if name in headings]
    for line in lines[3:]:
        assert re.fullmatch(r"|## [A-Z][a-z ]+|- (?!#{1,6} |> |[-*+] |\d+[.)] |\[[ xX]\] |[~`]{3}).+", line)
    # In code nothing leads anywhere, but some programs look for links of theirs in it all the same.
    assert not re.search(r"\[\[|\]\]|<!--|-->|```", page)
    assert not re.search(r"\]\(|\]:|<[A-Za-z/]", re.sub("`[^`]*`", "", page))
    assert {line for line in lines[1:] if line.startswith("#")} <= {f"## {name}" for name in HEADINGS}


def test_it_stays_as_the_sanitizer_left_it():
    page = made(sanitize_transcript_v2(SESSION + assistant("Next: TOKEN=ghp_" + "a1B2" * 9 + " has to be rotated")))
    assert sanitize_transcript_v2(page).strip() == page.strip() and "ghp_" not in page


TEN = ("The lamp burns. Die Lampe brennt immer. La lampe brûle. La lámpara arde siempre. A lâmpada arde sempre. "
       "La lampada brucia. Лампа всегда горит. ランプは必ず燃える。灯必须亮。등은 항상 탄다.\n")  # fmt: skip


@pytest.mark.parametrize(
    "unit", [
        SESSION, user(TEN) + assistant(EDIT + TEN), TASK + assistant(TEN * 9),
        "((((" * 200 + ".py error: \n", call("Bash", "git commit " + "git commit -" * 100),
        "[" * 500 + "](" * 200 + "\n", "- a thing to do\n",
        assistant("Which oil?\n\n1. Rape oil\n2. Whale oil") + user("2"), assistant("``` A) x\n" * 9) + user("b"),
    ],
)  # fmt: skip
def test_work_grows_with_the_text(unit: str) -> None:
    def calls(size: int) -> int:
        counts = [0]
        sys.setprofile(lambda *_: counts.__setitem__(0, counts[0] + 1))
        try:
            made(unit * (size // len(unit)))
        finally:
            sys.setprofile(None)
        return counts[0]

    assert calls(1 << 16) < 20 * calls(1 << 13), "a square would be 64 times as much"


@pytest.mark.parametrize(
    "text", [
        user("x y z") + assistant("- do a thing and more\n" * 100_000),
        user("x y z") + assistant("|" + "a|" * 10_000 + "\n|" + "-|" * 10_000 + "\n|" + "b|" * 10_000),
        user("x y z") + assistant("> " * 5_000 + "x\n" + "- " * 3_000 + "x\n" + "[" * 6_000 + "*" * 5_000),
        user("must not " * 100_000), assistant("done it all now\n" * 10_000),
        user("请修复 не надо やっぱり 안 됩니다 bitte nicht il faut hay que")
         + assistant("已修复 исправлено 修正しました 残り: x"),
        user("x \ud800 y z"), user("x") + assistant("x" + " \n" * 30_000 + "x"),
        user("почини") + assistant(("0" * 600 + "\n\n") * 60) * 12,
        user("x") + "".join(f"- `A` · {STAMP} · x\n  {'`' * n}\n" for n in range(3, 1_500)),
        ("\n" * 1_000 + user("x")) * 1_000, "User: use tallow\nAssistant: fixed the lamp\n" * 5_000,
    ],
    ids="items table nesting line no-user languages surrogate blanks digits fences empty-lines turns".split(),
)  # fmt: skip
def test_hostile_texts_are_bounded_and_none_takes_long(text):
    assert len(made(text)) <= 6_000 and len(outcome(text).items) <= 24


# ── the sentence ──


def told(transcript: str, *, project: str | None = "/home/u/lantern") -> str | None:
    contexts = [SentenceSubject(transcript, project, "transcript", DAY), SentenceSubject("", project, "summary", DAY)]
    said = headline(outcome(transcript), contexts)
    assert said is None or passes_strict(said, *contexts)
    assert said is None or all(passes_signet(said, context.body, context.project) for context in contexts)
    return said


WICK = user("Please trim the wick of the north lamp. It smokes.")
COMMIT = call("Bash", "git commit -qm x", "[main 1a2b3c4] lamp: trim the wick of the north lamp to 4 mm")
PR = call("Bash", 'gh pr create --title "Trim the wick of the north lamp"', "https://git.example.org/a/b/pull/7")


@pytest.mark.parametrize(("transcript", "begins"), [
    (WICK + assistant(EDIT + "The wick is trimmed to 4 mm and the north lamp burns without smoke."),
     "lantern: The wick is trimmed to 4 mm and the north lamp burns without smoke"),
    (WICK + assistant(COMMIT + "Committed."), "lantern: lamp: trim the wick of the north lamp to 4 mm"),
    (WICK + assistant(PR + call("Bash", "gh pr merge 7") + "Merged."),
     "lantern: Trim the wick of the north lamp (PR #7 merged)"),
    (WICK + assistant("I take it down.\n\n" + EDIT) + interrupted(),
     "lantern: Please trim the wick of the north lamp; It smokes: stopped midway"),
    (WICK + assistant("I will look into it. Which oil would you like?"),
     "lantern: asked: Please trim the wick of the north lamp; It smokes"),
    (WICK + assistant(EDIT), "lantern: edited wick.py; unfinished: Please trim the wick"),
    (user("what is the difference between tallow and rape oil?") + assistant("Rape oil smells less than tallow does."),
     "lantern: Rape oil smells less than tallow does (asked: what is the difference between tallow and rape oil"),
    (WICK + assistant(COMMIT + "Committed.") + user("Now oil the door of the tower") + assistant(EDIT) + interrupted(),
     "lantern: lamp: trim the wick of the north lamp to 4 mm (wick.py); stopped: Now oil the door of the tower"),
    (WICK + assistant(call("Bash", "git commit -m x …", "[main 1a2b3c4] trim the wick of the north lamp to 4 mm\n"
                           "To https://git.example.org/a/b.git\n   1..2  main -> main") + "Done."),
     "lantern: trim the wick of the north lamp to 4 mm; committed and pushed"),
], ids=["report", "commit", "merged", "aborted", "asked", "unfinished", "question", "stopped", "pushed"])  # fmt: skip
def test_it_says_what_came_out(transcript: str, begins: str) -> None:
    said = told(transcript)
    assert said is not None and said.casefold().startswith(begins.casefold()), said


def test_a_plan_that_a_harness_hands_over_is_told_by_its_title() -> None:
    plan = user("Implement the following plan:\n\n# Plan: Burn `rape oil` in all lamps\n\n## Context\n\nIt is cheaper.")
    assert outcome(plan + assistant(EDIT + "Done.")).request == "Burn rape oil in all lamps"


@pytest.mark.parametrize(("report", "told"), [
    ("**`lamp.py`**: 3 lines:\n- **Line 12**: The wick is trimmed now\n- **Line 14**: new\n- **Line 19**: old",
     "Line 12: The wick is trimmed now"),
    ("All 12 tests pass. The harbour now has:\n\n1. **A lamp** of glass\n2. **A horn** of brass",
     "The harbour now has: A lamp, A horn"),
    ("**Summary of it:** the pier is lit.\n\nBuild, lint and tests clean.", "the pier is lit"),
    ("The changed files `pier.py` are pre-existing changes.\n\nThe lamp burns again with oil.",
     "The lamp burns again with oil"),
])  # fmt: skip
def test_a_report_is_told_by_what_says_what_came_out(report: str, told: str) -> None:
    assert outcome(user(TASK) + assistant(EDIT + report)).results[0].startswith(told)


@pytest.mark.parametrize("text", ["", user("hi there"), user("hi") + assistant("Hello! I can look at the lamp.")])
def test_where_nothing_came_out_there_is_none(text):
    assert told(text) is None


@given(HOSTILE, st.sampled_from([None, "/", "/x/a.b", "/x/lantern", "..", "/x/" + "y" * 90]))
def test_it_passes_the_gate_or_is_none(text: str, project: str | None) -> None:
    told(WICK + assistant(EDIT + text), project=project)
