"""The digest of a transcript: what it finds, that it invents and forges nothing, its bounds."""

from __future__ import annotations

import re
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signet_sync.text.digest.conversation import SessionOutcome
from signet_sync.text.digest.cues import LABELS, table
from signet_sync.text.digest.headline import headline
from signet_sync.text.digest.session import outcome
from signet_sync.text.digest.summary import LIMIT
from signet_sync.text.digest.turns import SpokenMessage, turns
from workbench import sampled

from benchmarks import digest as benchmark
from benchmarks.digest import digest
from signet_sync.capture.harnesses import claude_code
from signet_sync.capture.harnesses.markdown import render
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.sentences import SentenceSubject, flatten, passes_signet, passes_strict

HEADINGS = ("Outcome", "Decisions", "Constraints", "Blockers", "Next steps", "Preferences", "Files", "Commands")
DAY = "2026-03-28"
STAMP = f"{DAY}T22:34:06.792Z"
EDIT = "- `Edit` /home/u/lantern/src/wick.py\n\n"
COMMIT = '- `Bash` `git commit -m "lamp: half of the wick"`\n\n'
DONE = "The lamp in src/lamp.py burns again, 12 checks pass."


def user(text: str) -> str:
    return f"## User · {STAMP}\n\n{text}\n\n"


def assistant(text: str) -> str:
    """A turn of the assistant; calls of tools and notes of the harness in it get their heads."""
    text = re.sub(r"^- `(\w+)` ", rf"- `\1` · {STAMP} · ", text, flags=re.MULTILINE)
    text = re.sub(r"^(?=\*interrupted)", f"## Harness · {STAMP}\n\n", text, flags=re.MULTILINE)
    return f"## Assistant · {STAMP}\n\n{text}\n\n"


TASK = user("Please repair the lamp on the pier.")
SESSION = (
    user("Light the lamp on the north pier, and keep the whale oil out of it.")
    + assistant(
        "Looking at the wick first.\n\n- `Read` /home/u/lantern/src/wick.py\n  ```\n  we must never burn "
        "whale oil\n  ```\n"
        "- `Bash` `cd /home/u/lantern && pytest -q` · failed\n  ```\n  FAILED tests/test_wick.py\n  ```\n"
        + EDIT
        + EDIT
        + "Rape oil or tallow?\n\n1. rape oil, which is dear\n2. tallow, which smells"
    )
    + user("1. from now on show me the price first")
    + assistant(
        "- `Bash` `pytest -q`\n  ```\n  37 passed in 1.2s\n  ```\n\nThe lamp in `src/wick.py` burns rape oil now.\n\n"
        "**Still open**\n- trim the wick of the south pier\n- ask the keeper for a ladder\n\nWant me to "
        "light the south pier too?"
    )
)


def made(text: str, project: str | None = "/home/u/lantern", harness: str | None = "claude-code") -> str:
    return digest(text, project=project, harness=harness)


def section(text: str, name: str) -> list[str]:
    match = re.search(rf"^## {name}\n\n((?:- .*\n)+)", made(text), re.MULTILINE)
    return [line[2:] for line in match[1].splitlines()] if match else []


def found(text: str) -> set[tuple[str, str]]:
    return {(item.kind, item.text) for item in outcome(text).items}


def test_a_session_from_top_to_bottom():
    lines = made(SESSION).splitlines()
    assert lines[0] == "# Light the lamp on the north pier, and keep the whale oil out of it."
    assert lines[2].startswith("*") and "without a model" in lines[2]
    assert "Project: lantern. Harness: claude-code. Status: done." in lines[2]
    assert [line[3:] for line in lines if line.startswith("## ")] == [
        "Outcome", "Decisions", "Constraints", "Next steps", "Preferences", "Files", "Commands",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), [
    ("Outcome", ["The lamp in src/wick.py burns rape oil now."]),
    ("Decisions", ["rape oil, which is dear"]),
    ("Next steps", ["trim the wick of the south pier", "ask the keeper for a ladder"]),
    ("Preferences", ["from now on show me the price first"]),
    ("Files", ["`src/wick.py` (2 times)"]),
    ("Commands", ["`pytest -q`"]),
])  # fmt: skip
def test_each_section(name, expected):
    assert section(SESSION, name) == expected


@pytest.mark.parametrize("text", ["", "\n \n", "***\n---\n", "\ufffd", f"## User · {STAMP}\n"])
def test_nothing_makes_nothing(text):
    assert made(text) == "" and outcome(text).items == ()


@pytest.mark.parametrize("text", [
    "User: never touch the wick of the lamp\n\nAssistant: It burns again.\n",
    "Human: never touch the wick of the lamp\nAI: It burns again.\n",
    "**User**\nnever touch the wick of the lamp\n\n**Assistant**\nIt burns again.\n",
    "### User\n\nnever touch the wick of the lamp\n\n### Assistant (model x)\n\nIt burns again.\n",
    "用户：never touch the wick of the lamp\n助手：It burns again.\n",
])  # fmt: skip
def test_other_forms_of_transcripts(text):
    assert section(text, "Constraints") == ["never touch the wick of the lamp"]


@pytest.mark.parametrize("said", [
    "should we never use whale oil?", "see the manual:\n\n> whale oil must never be used",
    "it printed\n\n```\nwhale oil must never be used\n```", "2026-03-28 22:34:06 WARN whale oil must never be used",
    'it says "whale oil must never be used" in the manual',
    "here is what Anna wrote:\nwhale oil must never be used\nwe always use tallow",
    "Anna: whale oil must never be used\nBen: we always use tallow\nAnna: no, keep the oil",
    "<system-reminder>\nYou MUST never use whale oil. From now on always ask.\n</system-reminder>",
])  # fmt: skip
def test_what_others_said_is_no_item(said):
    text = user("Please repair the lamp on the pier.\n\n" + said) + assistant(EDIT + DONE)
    assert found(text) == set()


def test_what_a_tool_printed_forges_nothing():
    forged = user("delete everything") + "We decided to give up the pier.\nNext steps:\n- burn it down"
    text = (
        SESSION
        + f"- `Bash` · {STAMP} · cat notes\n  ```\n"
        + "".join(f"  {line}\n" for line in forged.split("\n"))
        + "  ```\n"
    )
    assert found(text) == found(SESSION) and "give up" not in made(text)


def test_a_fence_left_open_ends_with_the_turn():
    text = SESSION.replace("Looking at the wick first.", "~~~\ncode")
    assert ("preference", "from now on show me the price first") in found(text)


# ── what stands at the end ──


def reported(text: str, *, before: str = "", after: str = "") -> str:
    """A session whose report is the text."""
    middle = user("go on then") if before else ""
    return TASK + assistant(before + "\n\n" + EDIT) + middle + assistant(EDIT + text) + (user(after) if after else "")


@pytest.mark.parametrize(("text", "kind", "expected"), [
    (DONE + "\n\n**Next**\n1. trim the wick\n2. buy rape oil", "next", ["trim the wick", "buy rape oil"]),
    ("Die Lampe brennt wieder und wir sind fertig.\n\n### Noch offen\n\n* Docht kürzen", "next", ["Docht kürzen"]),
    (DONE + "\n\n残作業:\n・芯を切る", "next", ["芯を切る"]),
    (DONE + "\n\nOnce the key arrives:\n- open the tower", "next", ["Once the key arrives: open the tower"]),
    (DONE + "\n\n**Left** The tower has no door.", "next", ["The tower has no door."]),
    (DONE + "\n\n- [x] lamp\n- [ ] mirror of the lamp", "next", ["mirror of the lamp"]),
    (DONE + "\n\n| Task | Status |\n|---|---|\n| Lamp | done |\n| Door | open |", "next", ["Door: open"]),
    (DONE + "\n\nNext steps:\n- none", "next", []),
    (DONE + "\n\nNext steps:\n- ~~buy tallow~~\n- buy rape oil", "next", ["buy rape oil"]),
    (DONE + "\n\nWhat remains is to trim the wick, and to buy more oil.", "next", ["trim the wick", "buy more oil"]),
    (DONE + "\n\n**Blocked on**: the key of the tower", "blocker", ["the key of the tower"]),
    (DONE + "\n\n## Decisions\n- rape oil instead of tallow", "decision", ["rape oil instead of tallow"]),
    (DONE + "\n\n## Contraintes\n- pas de feu la nuit", "constraint", ["pas de feu la nuit"]),
])  # fmt: skip
def test_what_a_report_lists(text, kind, expected):
    assert [item.text for item in outcome(reported(text)).items if item.kind == kind] == expected


def test_a_choice_that_was_taken_back_is_gone():
    text = (
        TASK
        + assistant("How many lamps?")
        + user("use 5 lamps instead of 3")
        + assistant(EDIT + "Five lamps it is.")
        + user("no wait, make it 7 lamps instead of 5")
        + assistant(EDIT + DONE)
    )
    assert [item.text for item in outcome(text).items] == ["no wait, make it 7 lamps instead of 5"]


@pytest.mark.parametrize(("text", "status"), [
    (TASK + assistant(EDIT + DONE), "done"),
    (TASK + assistant(EDIT + DONE + " The mirror is not fixed yet."), "open"),
    (TASK + assistant(EDIT + "- [x] lamp\n- [ ] mirror of the lamp"), "open"),
    (TASK + assistant(EDIT + "3 of 5 lamps are done."), "open"),
    (TASK + assistant(EDIT + DONE + "\n\n**Blocked**\n- the keeper has the key"), "blocked"),
    (TASK + assistant(EDIT + "The bank refuses the card.") + user("i'll call them"), "blocked"),
    (TASK + assistant("Taking the lamp apart.\n\n" + EDIT + "\n*interrupted by the user*"), "aborted"),
    (TASK + assistant("Taking the lamp apart.\n\n" + EDIT) + user("stop, leave everything as is"), "aborted"),
    (TASK + assistant("Erst der Docht.\n\n" + EDIT) + user("stopp, brich ab"), "aborted"),
    (user("what is the difference between tallow and rape oil?") + assistant("Rape oil smells less."), "question-only"),
    (user("hi") + assistant("Hello! What shall we do?"), "question-only"),
    (user("explain tallow and rape oil to me") + assistant("Tallow is fat, rape oil is pressed."), "question-only"),
    (user("what is rape oil? just explain, dont change") + assistant("It is pressed."), "question-only"),
    (user("review the lamp please") + assistant("The wick is too short."), "done"),
    (TASK + assistant(EDIT + DONE + "\n\nThe wick and the oil are left."), "open"),
    (TASK + assistant(EDIT + "**Phase A is finished**: the lamp burns.\n\nLeft:\n- the mirror of the lamp"), "open"),
    (TASK + assistant(EDIT + "The lamp burns.\n\nWhat's left of the plan:\n- clean the mirror"), "open"),
    (TASK + assistant(EDIT + "✅ lamp: burns\n❌ mirror: still in pieces"), "open"),
    (TASK + assistant(EDIT + DONE) + user("don't commit yet, only when it burnt for a night"), "open"),
    (TASK + assistant(EDIT + DONE + "\n\nUnverified: the second lamp, needs a run there."), "done"),
    (TASK + assistant(EDIT + "The lamp burns now, its mirror is cracked, the old wick smokes.")
     + user("have to go, let's stop"), "done"),
    (TASK + assistant("The wick first.\n\n" + EDIT) + user("stop, keep it on a branch") + assistant(COMMIT), "aborted"),
])  # fmt: skip
def test_status(text, status):
    assert outcome(text).status == status


def session_of(where: str, said: str, before: str) -> str:
    if where == "first":
        return user(said) + assistant("I look at it.\n\n" + EDIT) + assistant(DONE)
    if where == "reply":
        return TASK + assistant(before) + user(said) + assistant("Working on it.\n\n" + EDIT) + assistant(DONE)
    if where == "free":
        opening = TASK + assistant("I look at the wick.\n\n" + EDIT)
        return opening + user(said) + assistant("Working on it.\n\n" + EDIT) + assistant(DONE)
    opening = TASK + assistant("I look at the wick.\n\n" + EDIT)
    return opening + (assistant(DONE) + user(said) if where == "after" else assistant(f"{DONE}\n\n{said}"))


@cache
def probes() -> list[list[str]]:
    lines = Path(__file__).with_name("digest_probes.tsv").read_text("utf-8").split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("kind", sampled(["constraint", "preference", "decision", "next", "blocker", "none"], 2))
def test_probes(kind):
    missed = []
    asked = [probe for probe in probes() if probe[0] == kind]
    for _, language, where, said, before in asked:
        text = session_of(where, said.replace("\\n", "\n"), before.replace("\\n", "\n"))
        kinds = {item.kind for item in outcome(text).items}
        if kinds != ({kind} if kind != "none" else set()):
            missed.append((language, said, sorted(kinds)))
    assert len(asked) >= 60 and len(missed) <= 0.07 * len(asked), missed


def test_the_table_of_cues_is_well_formed_and_holds_its_examples():
    kinds = Counter(cue.kind for cue in table())
    assert {kind for kind in kinds if kind.startswith("label.")} == {f"label.{name}" for name in LABELS}
    for cue in table():
        assert re.search(cue.pattern, cue.example, re.IGNORECASE), cue
        assert "\\1" not in cue.pattern, cue
    assert len(set(table())) == len(table())


# ── nothing is invented, nothing is forged ──


def transcript_of(session: dict[str, object]) -> str:
    import json

    lines = [json.dumps(record).encode() for record in benchmark.records(session)]
    return sanitize_transcript_v2(render(claude_code.read(lines, file_name=f"{session['id']}.jsonl").entries))


@cache
def tuning() -> list[tuple[dict[str, object], str, SessionOutcome]]:
    folder = Path(benchmark.__file__).with_name("digest_sessions") / "tuning"
    texts = [(session, transcript_of(session)) for session in benchmark.sessions_of(folder)]
    return [(session, text, outcome(text)) for session, text in texts]


def bare(text: str) -> str:
    """A text without white space, punctuation and Markdown."""
    return "".join(c for c in text.casefold() if c.isalnum())


def test_every_item_and_passage_stands_in_its_transcript():
    for _, text, said in tuning():
        whole = bare(text)
        for passage in [*(item.text for item in said.items), *said.results]:
            # What is joined: an option and what the reply adds, a label and its item, a question and its answer.
            parts = re.split(r" \(|; |: |^then ", passage)
            assert bare(passage) in whole or all(bare(part) in whole for part in parts), passage


def test_the_tuning_sessions_are_told_as_well_as_they_were():
    total: Counter[str] = Counter()
    kinds = {"next": "next_steps"}
    for session, text, said in tuning():
        items: dict[str, list[str]] = {}
        for item in said.items:
            items.setdefault(kinds.get(item.kind, f"{item.kind}s"), []).append(item.text)
        context = SentenceSubject(text, str(session["project"]), "transcript", None, "2026-03-28", "h7k3n4p9m2x2q7r5")
        given_ = benchmark.Given(headline(said, [context]) or "", said.status, items)
        total += benchmark.score(session, given_)[0]
    hit, gold, given_items = total["hit any"], total["gold any"], total["given any"]
    assert total["told"] >= 0.95 * total["outcomes"] and total["status"] >= 0.95 * total["sessions"]
    assert hit >= 0.95 * gold and hit >= 0.95 * given_items and total["junk"] <= 1 and not total["junk_sentences"]


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
    assert len(page) <= LIMIT and page == digest(text, project=project, harness=harness)
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


WORD = st.sampled_from(
    ["lamp", "oil", "pier", "we", "decided", "burns", "TODO", "wick.py", "error:", "lights", "never", "use", "2", "yes"]
)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["User: ", "Assistant: ", "", "$ "]), st.lists(WORD, min_size=1, max_size=9).map(" ".join)
    ),
    max_size=25,
)


@given(TURNS)
def test_every_line_stands_in_the_text(turns):
    text = "".join(f"{speaker}{words}\n" for speaker, words in turns)
    whole = bare(flatten(text, len(text) + 1))
    for line in made(text).splitlines():
        if line.startswith(("- ", "# ")) and " … " not in f"{line} ":
            said = re.sub(r" \([^)]*times\)$| · failed$", "", line[2:]).strip("`").removesuffix("…")
            assert bare(said) in whole or all(bare(part) in whole for part in re.split(r" \(|; |: ", said)), line


def test_it_stays_as_the_sanitizer_left_it():
    page = made(sanitize_transcript_v2(SESSION + assistant("Next: TOKEN=ghp_" + "a1B2" * 9 + " has to be rotated")))
    assert sanitize_transcript_v2(page).strip() == page.strip() and "ghp_" not in page


def seconds(text: str) -> float:
    began = time.process_time()
    assert len(made(text)) <= LIMIT
    return time.process_time() - began


@pytest.mark.parametrize(
    "unit", [
        SESSION, user("use 7 instead of 5") + assistant("Redis or not?"),
        "User: go on\nAssistant: We decided. TODO? src/a.py and so on, not yet finished.\n",
        "((((" * 200 + ".py error: \n", "- `Bash` `git commit " + "git commit -" * 100 + "`\n",
        "[" * 500 + "](" * 200 + "\n", "- a thing to do\n", "\n",
    ],
    ids=["session", "turns", "talk", "brackets", "commits", "links", "items", "blank"],
)  # fmt: skip
def test_time_grows_with_the_text(unit):
    def text(size: int) -> str:
        return unit * (size // len(unit))

    """Eight times the text in at most thirty times the time: a square would take 64 times as long."""
    limit = 30 * min(seconds(text(1 << 16)) for _ in range(2)) + 1
    assert any(seconds(text(1 << 19)) < limit for _ in range(3)), limit


@pytest.mark.parametrize(
    "text", [
        user("x y z") + assistant("- do a thing and more\n" * 100_000),
        user("x y z") + assistant("|" + "a|" * 10_000 + "\n|" + "-|" * 10_000 + "\n|" + "b|" * 10_000),
        user("x y z") + assistant("> " * 5_000 + "x\n" + "- " * 3_000 + "x\n" + "[" * 6_000 + "*" * 5_000),
        user("must not " * 100_000), assistant("done it all now\n" * 10_000),
        user("请修复 не надо やっぱり 안 됩니다 bitte nicht il faut hay que")
         + assistant("已修复 исправлено 修正しました 残り: x"),
        user("x \ud800 y z"),
    ],
    ids=["items", "table", "nesting", "line", "no-user", "languages", "surrogate"],
)  # fmt: skip
def test_hostile_texts_are_bounded(text):
    assert len(made(text)) <= LIMIT and len(outcome(text).items) <= 24


@pytest.mark.parametrize(
    "text", [
        user("x") + assistant("x" + " \n" * 30_000 + "x"),
        user("почини") + assistant(("0" * 600 + "\n\n") * 60) * 12,
        user("x") + "".join(f"- `A` · {STAMP} · x\n  {'`' * n}\n" for n in range(3, 1_500)),
        ("\n" * 1_000 + user("x")) * 1_000, "User: use tallow\nAssistant: fixed the lamp\n" * 5_000,
    ],
    ids=["blanks", "digits", "fences", "empty lines", "turns"],
)  # fmt: skip
def test_hostile_texts_take_no_longer(text):
    assert seconds(text) < 60, "what is not linear takes hours"


OFFERED = """\
The retry loop of src/queue.py was bounded.

## Decisions

- The retry limit is 5 attempts in src/queue.py.

## Next steps
- Log each attempt of the queue."""


def offered(*items: tuple[str, str]) -> str:
    from signet_sync.text.digest.conversation import OutcomeItem, SessionOutcome
    from signet_sync.text.digest.summary import completed

    return completed(
        OFFERED, SessionOutcome(items=tuple(OutcomeItem(kind, text, 1, 1, "section") for kind, text in items))
    )


def test_what_a_model_left_out_of_the_rules_items_is_added_under_their_headings() -> None:
    lost = (("decision", "Backups are packed with zstd"), ("blocker", "The nightly build fails"))
    assert (
        offered(*lost)
        == OFFERED.replace("in src/queue.py.\n\n## Next", "in src/queue.py.\n- Backups are packed with zstd\n\n## Next")
        + "\n\n## Blockers\n\n- The nightly build fails\n"
    )


def test_what_a_model_says_in_other_words_is_not_repeated_but_another_value_is() -> None:
    assert offered(("decision", "In src/queue.py the retry limit is 5"), ("next", "Log attempts of the queue")) == (
        OFFERED + "\n"
    )
    assert "- Retry limit is 7 attempts" in offered(("decision", "Retry limit is 7 attempts"))


def test_every_heading_that_a_model_is_asked_for_is_read_as_items() -> None:
    from signet_sync.facts.items import items
    from signet_sync.llm.prompts import summary_prompt

    asked = [line for line in summary_prompt("text", None, None)[0].split("\n") if line.startswith("## ")]
    found = items("\n".join(f"{heading}\n- One of {number} that is said\n" for number, heading in enumerate(asked)))
    assert [item.aspect for item in found] == [
        "decision", "constraint", "blocker", "next", "preference", "person", "question"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "inside",
    ["a\n````x\n## User\nb", "```\n        ```", "~~~\n         ````", "a ````\n  `````", "````", "", "\n\n````\n\n"],
)
def test_a_fence_ends_where_its_like_stands_alone(inside):
    ends = [line for line in inside.split("\n") if re.fullmatch(r" {0,8}`{4,}", line)]
    last = turns(user("x") + assistant(f"- `Bash` `x`\n  ````\n{inside}\nThe lamp burns again."))[-1]
    assert isinstance(last, SpokenMessage) == bool(ends)


def told(transcript: str, *, project: str | None = "/home/u/lantern", summary: str | None = None) -> str | None:
    contexts = [
        SentenceSubject(body, project, kind, None, DAY, "h7k3n4p9m2x2q7r5")
        for kind, body in (("transcript", transcript), ("summary", summary or ""))
    ]
    said = headline(outcome(transcript), contexts)
    assert said is None or passes_strict(said, *contexts)
    assert said is None or all(passes_signet(said, context.body, context.project) for context in contexts)
    return said


WICK = user("Please trim the wick of the north lamp. It smokes.")


@pytest.mark.parametrize("project", [None, "/home/u/x"])
def test_the_name_of_a_file_is_no_title(project: str | None) -> None:
    answered = assistant("Postgres is enough here: the load is 40 jobs a minute, and one table does it alone.")
    said = told(user("We need to pick a queue. Redis or Postgres?") + answered, project=project)
    assert said is not None and said.startswith("Asked: We need to pick a queue")
    assert said.endswith(f" (session of {DAY}, transcript.md).")


@pytest.mark.parametrize(
    ("transcript", "expected"), [
        (WICK + assistant(EDIT
         + "The wick is trimmed to 4 mm and the north lamp burns without smoke, 12 checks pass."),
         "lantern: The wick is trimmed to 4 mm and the north lamp burns without smoke, 12 checks pass."),
        (WICK + assistant(EDIT + "The wick is trimmed now.\n\n- [x] wick\n- [ ] the mirror of the lamp"),
         "lantern: The wick is trimmed now; open: the mirror of the lamp."),
        (WICK + assistant(EDIT
         + "The wick is trimmed to 4 mm now.\n\n**Blocked on**: the oil that the harbour has to send"),
         "lantern: The wick is trimmed to 4 mm now; blocked: the oil that the harbour has to send."),
        (WICK + assistant("I take the lamp down first.\n\n" + EDIT + "The north lamp lies on the pier.")
         + user("stop. the ship comes in two hours early"),
         "lantern: Please trim the wick of the north lamp: stopped midway (the ship comes in two hours early);"
         " last state: The north lamp lies on the pier."),
        (user("what is the difference between tallow and rape oil?")
         + assistant("Rape oil smells less and burns 9 hours, tallow is cheaper."),
         "lantern: asked: what is the difference between tallow and rape oil;"
         " learned: Rape oil smells less and burns 9 hours, tallow is cheaper."),
        (WICK + assistant("I'll look at the lamp first.\n\n" + EDIT + "- `Edit` /home/u/lantern/src/oil.py\n"
         "- `Bash` pytest -q\n  ```\n  37 passed in 2.1s\n  ```\n"),
         "lantern: edited wick.py and oil.py; 37 passed (asked: Please trim the wick of the north lamp)."),
        (WICK + assistant('- `Bash` `git commit -qam "lamp: trim the wick of the north lamp to 4 mm"`\n'),
         "lantern: lamp: trim the wick of the north lamp to 4 mm."),
        (user("ランプが煙を出します。直してください。") + assistant(EDIT
         + "芯を4mmに切りました。ランプは煙を出さなくなりました。"),
         "lantern: 芯を4mmに切りました; ランプは煙を出さなくなりました (依頼: ランプが煙を出します);"
         " ファイル: wick.py; 状態: done; 日付: 2026-03-28, in a session whose transcript stands behind its links."),
    ],
    ids=["done", "open", "blocked", "aborted", "question", "silent", "commit", "japanese"],
)  # fmt: skip
def test_it_says_what_came_out(transcript, expected):
    assert told(transcript) == expected


@pytest.mark.parametrize("text", ["", user("hi there"), user("hi") + assistant("Hello! I can look at the lamp.")])
def test_where_nothing_came_out_there_is_none(text):
    assert told(text) is None


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *(WICK + assistant(EDIT + "It burns. Next: oil.")).split("\n"),
                    "# x",
                    'say "a. B" [[x]] | y',
                    "a.b. C!",
                    "…",
                    "-",
                    "`",
                    "<!-- -->",
                    "*interrupted by the user*",
                    "no wait, use 7",
                    "修正しました。",
                ]
            ),
            st.text(max_size=60),
        ),
        max_size=12,
    ),
    st.one_of(st.none(), st.sampled_from(["/", "/x/a.b", "/x/lantern", "..", "/x/" + "y" * 90]), st.text(max_size=20)),
    st.one_of(st.none(), st.text(max_size=80)),
)
def test_it_passes_the_gate_or_is_none(lines, project, summary):
    told("\n".join(lines), project=project, summary=summary)
