"""Passages, headlines of reports, status, statements and dead ends."""

from __future__ import annotations

import pytest
from said import DONE, EDIT, TASK, assistant, call, interrupted, user

from signet_sync.digest.deeds import Printed
from signet_sync.digest.outcome import outcome
from signet_sync.digest.record import Record
from signet_sync.digest.reports import headline
from signet_sync.digest.statements import statements
from signet_sync.digest.summary import summary
from signet_sync.digest.turns import passages
from signet_sync.statements.sections import items
from signet_sync.statements.sections import list_stated as from_outcome


@pytest.mark.parametrize(("text", "expected"), [
    ("It burns.\n\n**Next**\n1. trim it\n2. oil it", ["p It burns.", "h Next", "i trim it", "i oil it"]),
    ("Next steps:\n- trim it\n\nIt burns,\nand well.", ["h Next steps", "i trim it", "p It burns, and well."]),
    ("## Left ##\n\n- [x] lamp\n- [ ] **the door**: oil", ["h Left", "i lamp", "i the door: oil"]),
    ("残り:\n・芯を切る", ["h 残り", "i 芯を切る"]),
    ("```\nNext: x\n```\n\n> Next: y\nand z\n\n    code", []),
    ("| Task | Now |\n|---|---|\n| Lamp | burns |", []),
])  # fmt: skip
def test_passages(text: str, expected: list[str]) -> None:
    assert [f"{one.form[0]} {one.text}" for one in passages(text)] == expected


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
    # Neither advice, nor a bare path, nor that checks went well.
    ("Build complete. Try `lamp --all` in the tower again - it should work now.\n\nThe wick in wick.py is trimmed by"
     " the keeper's knife.", "The wick in wick.py is trimmed by the keeper's knife"),
    ("I recommend the oil of rape seed, which is the standard.\n\nCreated oil/README.md with the oils of each lamp.",
     "Created oil/README.md with the oils of each lamp"),
    ("tower/lamp/wick.py\n\nAll pre-push checks passed (build, lint, wicks).", ""),
    # A list is told by its bold words, and what leads to one takes it along.
    ("Done.\n\nI've added:\n\n1. **A bell** - for fog\n2. **A second lamp** - in the gallery",
     "I've added: A bell, A second lamp"),
    ("I've created two files:\n\n1. **`tower.md`** (root) - short\n2. **`docs/tower.md`** - long",
     "I've created two files: tower.md, docs/tower.md"),
    ("Changed:\n\n- **lamp.py**: Added a wick for the winter\n- **oil.py**: Fixed the pump of the cellar",
     "Changed: lamp.py, oil.py"),
    ("The fix replaces the wick of each lamp (lamp.py:31-40), so that:\n- oil is always there\n- the pump may rest",
     "The fix replaces the wick of each lamp (lamp.py:31-40), so that: oil is always there; the pump may rest"),
])  # fmt: skip
def test_the_headline_of_a_report(report: str, expected: str) -> None:
    said = headline(report, Printed([]))
    assert said.startswith(expected) if expected else not said or "door" in said


BLOCKED = "\n\nBlocked: the keeper has the key of the tower"


@pytest.mark.parametrize(("text", "status"), [
    (TASK + assistant(EDIT + DONE), "done"),
    (TASK + assistant(EDIT + DONE + " Want me to light the other one?"), "done"),
    (TASK + assistant(EDIT + DONE + "\n\nWhich oil does the keeper want in the tower?"), "open"),
    (TASK + assistant(EDIT + DONE + BLOCKED), "blocked"),
    (TASK + assistant(EDIT + DONE + "\n\nBlocked: none"), "done"),
    (TASK + assistant(EDIT + DONE) + user("thanks, oil it weekly") + assistant("I will."), "done"),
    (TASK + assistant("Taking the lamp apart.\n\n" + EDIT) + interrupted(), "aborted"),
    (TASK + assistant("Now the lamp. It smokes.") + interrupted(), "aborted"),
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
      for said in ("Does it smoke? Whale oil does", "Yes, continue", "Run it now", "Ja, gleichzeitig", "You decide")),
    *((TASK + assistant(PICK.replace("Which oil?", asked) + EDIT + DONE), [])
      for asked in ("What would you like to do with it?", "Which oils do you want to discuss?")),
    (TASK + assistant(EDIT + DONE + "\n\n## Next steps\n\n- clean the mirror of the tower"), []),
])  # fmt: skip
def test_statements(text: str, expected: list[tuple[str, str, str, str]]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(("message", "expected"), [
    ("Decision: we ship on Fridays.", ["decision we ship on Fridays."]),
    ("Good. Decided: burn rape oil. Thanks", ["decision burn rape oil."]),
    ("- Rule: run make lint first\n- Remember: Ada has it", ["constraint run make lint first", "note Ada has it"]),
    # What says nothing, asks, or stands in a quote or a paste.
    *((said, []) for said in (
        "Decision: ok", "Decision: which oil?", "The decision: we ship oil", "always burn rape oil",
        "> Decision: we ship oil", "```\nDecision: we ship oil\n```", "You are a keeper. Decision: we ship oil",
        "Decision: we ship oil\n\n" + "The lamp of the pier is old and I like it. " * 30,
    )),
])  # fmt: skip
def test_a_person_labels_what_is_to_be_kept(message: str, expected: list[str]) -> None:
    said = statements(Record(TASK + assistant(EDIT + DONE) + user(message) + assistant("Noted, I keep that in mind.")))
    assert [f"{one.kind} {one.text}" for one in said if one.rule == "labelled" and one.who == "person"] == expected


REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def ran(command: str, output: str = "", *, failed: bool = False) -> str:
    return call("Bash", command, output, failed=failed)


UNKNOWN = ran("cd lamp && oil run wick 2>&1 | tail -3", "error: unrecognized subcommand 'wick'", failed=True)


@pytest.mark.parametrize(("steps", "expected"), [
    ((UNKNOWN, ran("run wick")), ['"oil run wick" is not a command here; "run wick" worked']),
    ((UNKNOWN, ran("trim the door"), EDIT), ['"oil run wick" is not a command here']),
    ((ran("lamp --blue door.txt", "lamp: unknown option --blue", failed=True), ran("lamp door.txt")),
     ['"lamp --blue door.txt" has no such option; "lamp door.txt" worked']),
    ((UNKNOWN, ran("oil run wick | tail -3", "error: unrecognized subcommand 'wick'")),
     ['"oil run wick" is not a command here']),
    # it worked later, it is work that failed, nothing was run, or two commands are one line
    ((UNKNOWN, ran("oil run wick")), []),
    ((UNKNOWN, ran("cd /lamp && trim it && oil run wick | tail -3", "burns")), []),
    ((ran("pytest -q tests/wick", "1 failed", failed=True), ran("pytest -q tests/wick -k trim")), []),
    ((ran("oil-run -d wick", "zsh: command not found: oil-run", failed=True), ran("oil run -d wick")),
     ['"oil-run -d wick" is not a command here; "oil run -d wick" worked']),
    ((ran("oil-run -d wick", "zsh: command not found: oil-run", failed=True), ran("ls")), []),
    ((ran("oil run wick", "Cancelled: parallel tool call Bash(x) errored", failed=True), ran("oil run -f wick")), []),
    ((ran("make lamp && oil it", "oil: command not found", failed=True),), []),
    ((ran("oil run wick", REFUSED, failed=True), ran("oil run -f wick")), []),
])  # fmt: skip
def test_dead_ends(steps: tuple[str, ...], expected: list[str]) -> None:
    found = [one for one in statements(Record(TASK + "".join(steps) + assistant("Done."))) if one.kind == "tried"]
    assert [one.text for one in found] == expected
