"""`digest`: what happened on a day or in a week, as a person reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault

from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.pages.period import PeriodInputs, PeriodLine, PeriodMemory, counts_of, text_of

TO = parse_instant("2026-03-30T00:00:00Z") or 0
AT = TO - DAY
LANTERN, MILL = "/home/ada/lantern", "/home/ada/mill"
SENTENCE = "In lantern the retry loop of src/queue.py ends after five tries, and the queue drains"


def test_a_week_by_project() -> None:
    seen = PeriodInputs(
        TO - 7 * DAY,
        TO,
        [
            PeriodLine("s-aaaaaaaaaaaa", MILL, AT - DAY, "done", "The wheel of the mill turns again."),
            PeriodLine("s-bbbbbbbbbbbb", None, AT, None, "Looked at [[a link]] <!-- signet:end -->"),
            PeriodLine("s-cccccccccccc", LANTERN, AT, "blocked", f"{SENTENCE}; blocked: it waits for Jo."),
        ],
        [
            PeriodLine("f-aaaaaaaaaaaa", LANTERN, AT, "decision", "lantern keeps the queue in SQLite."),
            PeriodLine("f-bbbbbbbbbbbb", LANTERN, AT - DAY, "decision", "lantern keeps the queue in SQLite"),
            PeriodLine("f-cccccccccccc", LANTERN, AT, "blocker", "lantern waits for Jo."),
            PeriodLine("f-eeeeeeeeeeee", "/home/ada/other", AT, "constraint", "Nothing runs at night."),
        ],
        [
            PeriodMemory("m-aaaaaaaaaaaa", "preference", AT, "Ada counts in millimetres.", False),
            PeriodMemory("m-bbbbbbbbbbbb", "note", AT, "The lamp is lit.", True, is_promoted=True),
        ],
    )
    assert text_of(seen) + "\n" == (Path(__file__).parent / "golden" / "week.md").read_text(encoding="utf-8")
    assert counts_of(seen)["sessions"] == 3


def test_a_long_list_is_cut_and_an_empty_day_says_so() -> None:
    many = [PeriodLine(f"s-{'abcdefghijkl'[n] * 12}", MILL, AT + n, "done", f"Step {n} is done.") for n in range(9)]
    lines = text_of(PeriodInputs(AT, TO, many)).splitlines()
    assert lines[0] == "# What happened on 2026-03-29" and lines[4] == "## mill: 9 sessions"
    assert "Step 8 " in lines[6] and lines[-1] == "- and 3 more (signet-sync digest --json)"
    assert text_of(PeriodInputs(AT, TO)) == "# What happened on 2026-03-29\n\n0 sessions"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2, 9):
        vault.session(number, project=LANTERN)
    vault.session(3, project=MILL)
    vault.session(4, agent_id="scout", project=LANTERN)
    vault.reindex()
    return vault


def digest(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("digest", "--json", "--now", NOW, *words)
    assert answer.code == code, answer
    return answer.json


def texts(document: Any) -> str:
    return "\n".join(session["text"] for session in document["sessions"])


def test_only_this_agent_this_period_and_this_project(vault: Vault) -> None:
    week = digest(vault)
    assert (week["from"], week["to"], week["counts"]["sessions"], week["counts"]["projects"]) == (
        "2026-03-23", "2026-03-29", 3, 2,
    )  # fmt: skip
    assert "step number 1 " in texts(week) and "step number 4 " not in texts(week) and "number 9 " not in texts(week)
    assert digest(vault, "--day")["counts"]["sessions"] == 0
    earlier = vault.call("digest", "--json", "--now", "2026-03-20T12:00:00Z").json
    assert vault.call("digest", "--json", "--now", "2026-03-20").json == earlier
    assert earlier["to"] == "2026-03-20" and earlier["counts"]["sessions"] == 1
    for name in ("mill", "MILL", MILL, f"{MILL}/"):
        assert digest(vault, "--project", name)["counts"]["sessions"] == 1
    assert digest(vault, "--agent", "scout")["counts"]["sessions"] == 1
    assert {statement["type"] for statement in week["statements"]} == {"decision"} and len(week["statements"]) == 3
    vault.call("remember", "Ada trims the wick.", "--now", NOW)
    vault.call("remember", "Not Ada's affair.", "--now", NOW, "--agent", "scout")
    assert [memory["text"] for memory in digest(vault, "--day")["memories"]] == ["Ada trims the wick."]
    assert vault.call("digest", "--now", NOW).out == vault.call("digest", "--now", NOW).out


@pytest.mark.usefixtures("auckland")
def test_days_are_those_of_the_machine_or_of_utc(vault: Vault) -> None:
    """In Auckland it is tomorrow already, and on that night a clock is put back."""
    late = "2026-04-04T21:30:00Z"  # 09:30 on April 5, which has 25 hours
    before, behind = (
        vault.call("remember", f"{word} that midnight.", "--now", f"2026-04-04T{at}Z", "--json").json["id"]
        for word, at in (("Before", "10:59:00"), ("Behind", "11:01:00"))
    )
    here = vault.call("digest", "--json", "--day", "--now", late).json
    utc = vault.call("digest", "--json", "--day", "--utc", "--now", late).json
    assert (here["from"], here["to"], utc["from"], utc["to"]) == ("2026-04-05",) * 2 + ("2026-04-04",) * 2
    assert [(one["text"], one["day"]) for one in here["memories"]] == [("Behind that midnight.", "2026-04-05")]
    assert len(utc["memories"]) == 2 and {one["day"] for one in utc["memories"]} == {"2026-04-04"}
    assert vault.call("digest", "--json", "--day", "2026-04-05").json == here
    assert vault.call("digest", "--json", "--utc", "--day", "2026-04-04").json == utc
    assert "2026-4-31" in vault.call("digest", "--day", "2026-4-31").err
    # What finds and shows them counts days likewise.
    for words, found in (
        (("--since", "2026-04-05"), [behind]),
        (("--until", "2026-04-04"), [before]),
        (("--since", "2026-04-05T00:00:00Z"), []),
    ):
        hits = vault.call("recall", "midnight", *words, "--json", "--now", late).json["hits"]
        assert [hit["id"] for hit in hits if hit["tier"] == "memory"] == found
    assert "2026-04-05" in vault.call("recall", "behind midnight", "--now", late).out
    assert "remembered 2026-04-05" in vault.call("expand", behind).out
    assert "remembered 2026-04-05" in vault.call("forget", behind).out
