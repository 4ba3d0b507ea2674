"""Labels, passages, headlines of reports, status and statements."""

from __future__ import annotations

from collections import Counter

import pytest
from said import DONE, EDIT, TASK, assistant, call, interrupted, user

from signet_sync.digest import turns
from signet_sync.digest.outcome import outcome
from signet_sync.digest.record import Record
from signet_sync.digest.reports import headline
from signet_sync.digest.statements import statements
from signet_sync.digest.summary import summary
from signet_sync.digest.turns import label_of, passages
from signet_sync.statements.sections import items
from signet_sync.statements.sections import list_stated as from_outcome


def test_no_name_stands_under_two_labels() -> None:
    names = Counter(name for row in turns._NAMES.values() for name in row.split("|"))
    assert [name for name, count in names.items() if count > 1] == [] and all(name == name.strip() for name in names)
    assert [name for name in names if label_of(name) is None] == []


@pytest.mark.parametrize(("title", "expected"), [
    ("Next steps", "aside"), ("### 3. Noch zu tun:", "aside"), ("⛔ Blocked on", "blocker"), ("残り作業はなし", None),
    ("Next steps for the pier", "aside"), ("What’s left", "aside"), ("Nextcloud", None), ("x" * 70, None),
])  # fmt: skip
def test_labels(title: str, expected: str | None) -> None:
    assert label_of(title) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("It burns.\n\n**Next**\n1. trim it\n2. oil it", [("", "It burns."), ("Next", "trim it"), ("Next", "oil it")]),
    ("Next steps:\n- trim it\n\nIt burns.", [("Next steps", "trim it"), ("", "It burns.")]),
    ("## Left\n\n- [x] lamp\n- [ ] door", [("", "Left"), ("Left", "lamp"), ("Left", "door")]),
    ("- Blocked: the key", [("Blocked", "the key")]),
    ("残り:\n・芯を切る", [("残り", "芯を切る")]),
    ("```\nNext: x\n```\n\n> Next: y", []),
    ("| Task | Now |\n|---|---|\n| Lamp | burns |", []),
])  # fmt: skip
def test_passages(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.label if one.text != one.label else "", one.text) for one in passages(text)] == expected


@pytest.mark.parametrize(("report", "expected"), [
    ("Perfect! I trimmed the wick of the north lamp to four millimetres.\n\nLet me know if it smokes.",
     "I trimmed the wick of the north lamp to four millimetres"),
    ("All tests pass.\n\nThe mirror in src/mirror.py turns with the lamp and follows the ships now.",
     "The mirror in src/mirror.py turns with the lamp and follows the ships now"),
    ("## Cause\n\nThe lamp was never closed after the wick broke in the wind.\n\n## Fix\n\nAdded a guard to src/"
     "lamp.py that closes the lamp when the wick breaks.",
     "Added a guard to src/lamp.py that closes the lamp when the wick breaks"),
    ("## Next steps\n\n- Fix the door of the tower before winter", ""),
    ("Done!", ""), ("All 37 tests of the lamp pass now.", ""), ("", ""),
    # Neither advice, nor a bare path, nor that checks went well; what refers to a sentence before comes last.
    ("Build complete. Try `lamp --all` in the tower again - it should work now.\n\nThe wick in wick.py is trimmed by"
     " the keeper's knife.", "The wick in wick.py is trimmed by the keeper's knife"),
    ("I recommend the oil of rape seed, which is the standard.\n\nCreated oil/README.md with the oils of each lamp.",
     "Created oil/README.md with the oils of each lamp"),
    ("tower/lamp/wick.py\n\nAll pre-push checks passed (build, lint, wicks).", ""),
    ("This solves the case of the lamp with two wicks.\n\nThe wick in wick.py is now cut on both sides of the flame.",
     "The wick in wick.py is now cut on both sides of the flame"),
    # A list is told by its bold words, and what leads to one takes it along.
    ("Done. I've added:\n\n1. **A bell** - for fog\n2. **A second lamp** - in the gallery",
     "I've added: A bell, A second lamp"),
    ("I've created two files:\n\n1. **`tower.md`** (root) - short\n2. **`docs/tower.md`** - long",
     "I've created two files: tower.md, docs/tower.md"),
    ("Changed:\n\n- **lamp.py**: Added a wick for the winter\n- **oil.py**: Fixed the pump of the cellar",
     "Changed: lamp.py, oil.py"),
    ("The fix replaces the wick of each lamp (lamp.py:31-40), so that:\n- oil is always there\n- the pump may rest",
     "The fix replaces the wick of each lamp (lamp.py:31-40), so that: oil is always there; the pump may rest"),
])  # fmt: skip
def test_the_headline_of_a_report(report: str, expected: str) -> None:
    said = headline(report)
    assert said.startswith(expected) if expected else not said or "door" in said


BLOCKED = "\n\n**Blocked on**\n- the keeper has the key of the tower"


@pytest.mark.parametrize(("text", "status"), [
    (TASK + assistant(EDIT + DONE), "done"),
    (TASK + assistant(EDIT + DONE + " Want me to light the other one?"), "done"),
    (TASK + assistant(EDIT + DONE + "\n\nWhich oil does the keeper want in the tower?"), "open"),
    (TASK + assistant(EDIT + DONE + BLOCKED), "blocked"),
    (TASK + assistant(EDIT + DONE + "\n\nBlocked: none"), "done"),
    (TASK + assistant(EDIT + DONE) + user("thanks, oil it weekly") + assistant("I will."), "done"),
    (TASK + assistant("Taking the lamp apart.\n\n" + EDIT) + interrupted(), "aborted"),
    (TASK + assistant("Taking the lamp apart.\n\n" + EDIT), "open"),
    (TASK + assistant(EDIT + "Now I will trim the wick"), "open"),
    (TASK + assistant(EDIT + DONE) + user("now the lamp on the south pier"), "open"),
    (TASK + assistant(call("ExitPlanMode", "x", "User has approved your plan.") + "The plan stands."), "open"),
    (TASK + assistant(EDIT + DONE) + user("thanks, that looks great."), "done"),
    (TASK + assistant(EDIT + DONE) + user("go on"), "open"),
    (TASK + assistant(EDIT + DONE) + user("and the mirror?") + assistant("Shall I clean the mirror too?"), "open"),
    (user("what is rape oil?") + assistant("It is pressed from seeds of the rape."), "question-only"),
    (user("hi") + assistant("Hello! What shall we do?"), "question-only"),
    ("Only words of nobody.\n", None),
])  # fmt: skip
def test_status(text: str, status: str | None) -> None:
    assert outcome(text).status == status


def stated(text: str) -> list[tuple[str, str, str, str]]:
    found = statements(Record(text))
    assert outcome(text).items == tuple(found)
    return [(item.kind, item.who, item.rule, item.text) for item in found]


def test_the_handles_that_a_hand_over_ends_stand_in_the_summary_whatever_its_sentence_has_room_for() -> None:
    noted = f"\n\nOutcome: The lamp burns rape oil{', without a flicker' * 12} ^f-abcdef"
    found = outcome(TASK + assistant(call("Bash", "git commit -m 'Light the lamp of the tower'") + EDIT + DONE + noted))
    (ended,) = from_outcome(found)
    assert ended.done and ended.text.startswith("f-abcdef: The lamp")
    in_summary = items(summary(found, project=None, harness=None), own=True)
    assert [one._replace(line=0) for one in in_summary] == [ended._replace(line=0)]


def test_the_lines_of_a_hand_over_are_not_what_came_out() -> None:
    noted = "\n\nDecided: the lamp in src/lamp.py burns rape oil in every tower\nBlocked: none"
    assert outcome(TASK + assistant(EDIT + DONE + noted)).results == (f"{DONE[:-1]} (wick.py)",)
    (came_out,) = outcome(TASK + assistant(EDIT + DONE) + user("please go on") + assistant("I will go on.")).results
    assert "go on" not in came_out


PICK = call("AskUserQuestion", "x", 'User has answered: "Which oil?"="Rape oil".')


@pytest.mark.parametrize(("text", "expected"), [
    (TASK + assistant(PICK + EDIT + DONE), [("decision", "person", "picked", "Which oil? — Rape oil")]),
    *((TASK + assistant(PICK.replace("Rape oil", said) + EDIT + DONE), [])
      for said in ("Does it smoke? Whale oil does", "Yes, continue", "Run it now", "Push + PR aç", "Ja, gleichzeitig")),
    (TASK + assistant(PICK.replace("Which oil?", "What shall I do next?") + EDIT + DONE), []),
    (TASK + assistant(EDIT + DONE + "\n\n## Next steps\n\n- clean the mirror of the tower"), []),
])  # fmt: skip
def test_statements(text: str, expected: list[tuple[str, str, str, str]]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(("message", "expected"), [
    ("Decision: we ship on Fridays.", ["decision we ship on Fridays."]),
    ("Good. Decided: burn rape oil. Thanks", ["decision burn rape oil."]),
    ("- Rule: run make lint first\n- Remember: Ada has it", ["constraint run make lint first", "note Ada has it"]),
    ("Entscheidung: wir nehmen Rapsöl", ["decision wir nehmen Rapsöl"]),
    ("Décidé: on garde l'huile", ["decision on garde l'huile"]), ("Decisión: vale aceite", ["decision vale aceite"]),
    ("Next: trim the wick\nBlocked: the harbour has no oil", ["next trim the wick", "blocker the harbour has no oil"]),
    # What says nothing, asks, is an act of the next minutes, or stands in a quote, a paste or a form.
    *((said, []) for said in (
        "Decision: ok", "Decision: which oil?", "Blocked: none", "Next: commit", "The decision: we ship oil",
        "always burn rape oil", "> Decision: we ship oil", 'He wrote "fine. Decision: we ship oil"',
        "Decision: we ship “oil”", "```\nDecision: we ship oil\n```", "You are a keeper. Decision: we ship oil",
        "Goal: light\nContext: a pier\nRule: burn rape oil\nNext: trim the wick",
        "Decision: we ship oil\n\n" + "The lamp of the pier is old and I like it. " * 30,
    )),
])  # fmt: skip
def test_a_person_labels_what_is_to_be_kept(message: str, expected: list[str]) -> None:
    said = statements(Record(TASK + assistant(EDIT + DONE) + user(message) + assistant("Noted, I keep that in mind.")))
    assert [f"{one.kind} {one.text}" for one in said if one.rule == "labelled" and one.who == "person"] == expected
    worked = statements(Record(user(message) + assistant(EDIT + DONE)))  # a step may be done by then
    assert [one.kind for one in worked] == [one.split()[0] for one in expected if one[:4] not in ("next", "bloc")]


ASKED = "Which oil?\n\n1. **Rape oil** for the lamp\n2. Whale oil\n3. Continue"
LETTERS = "Recommended is A:\n\n| Option | Oil |\n|---|---|\n| A | Rape oil |\n| B | Whale oil |"
BY_QUESTION = "1) Oil\n- A: rape\n- B: whale\n\n2) Wick\n- A: flat\n- B: round\n\nYour choice?"
READ = call("Read", "file_path: oil.md", "Take whale oil for every lamp that stands on the pier")


@pytest.mark.parametrize(("report", "message", "expected"), [
    (ASKED, "1", ["Which oil? — Rape oil for the lamp"]),
    (ASKED, "Option 2.", ["Which oil? — Whale oil"]),
    (ASKED, "go with 2", ["Which oil? — Whale oil"]),
    (ASKED, "1 and 2", ["Which oil? — Rape oil for the lamp", "Which oil? — Whale oil"]),
    # Letters without a question answer what the person asked for.
    (LETTERS, "b", ["Please repair the lamp on the north pier. — Whale oil"]),
    (LETTERS, "let's go with option B", ["Please repair the lamp on the north pier. — Whale oil"]),
    (ASKED.replace("Which oil?", "```\n1. x\n```") + "\n\nWhich one?", "2", ["Which one? — Whale oil"]),
    # What orders the next step, asks, counts, or answers nothing that stands there.
    (ASKED, "3", []),
    (ASKED, "4", []),
    (ASKED, "all 3", []),
    (ASKED, "2?", []),
    (ASKED, "2 and the mirror", []),
    (ASKED.replace("Which oil?", "Want me to go on with:"), "1", []),
    (ASKED.replace("Which oil?", "Next I can do:"), "1", []),
    (ASKED.replace("Which oil?", "What would you like to do with it?"), "1", []),
    (LETTERS, "c", []),
    (ASKED.replace("2. Whale oil\n3. Continue", "3. Whale oil"), "3", []),
    (LETTERS.replace("Recommended is A:", "Let me know which to do:"), "b", []),
    (LETTERS.replace("| B |", "| P |"), "P", []),
    (BY_QUESTION, "1) B 2) A", []),
])  # fmt: skip
def test_a_letter_or_a_number_says_the_words_of_the_proposal(report: str, message: str, expected: list[str]) -> None:
    assert [text for *_, text in stated(TASK + assistant(report) + user(message) + assistant(EDIT + DONE))] == expected


def test_proposals_that_a_tool_printed_are_none() -> None:
    page = LETTERS.replace("Whale oil", "Take whale oil for every lamp that stands on the pier")
    assert not stated(TASK + assistant(READ + page) + user("b") + assistant(EDIT + DONE))
