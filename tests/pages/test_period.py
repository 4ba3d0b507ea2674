"""`digest`: what happened on a day or in a week, as a person reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault

from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.pages.period import Period, PeriodLine, text_of

TO = parse_instant("2026-03-30T00:00:00Z") or 0
AT = TO - DAY
LANTERN, MILL = "/home/ada/lantern", "/home/ada/mill"
SENTENCE = "In lantern the retry loop of src/queue.py ends after five tries, and the queue drains"


def test_a_week_by_project() -> None:
    seen = Period(
        TO - 7 * DAY,
        TO,
        [
            PeriodLine("s-aaaaaaaaaaaa", MILL, AT - DAY, "done", "The wheel of the mill turns again."),
            PeriodLine("s-bbbbbbbbbbbb", None, AT, None, "Looked at [[a link]] <!-- signet:end -->"),
            PeriodLine("s-cccccccccccc", LANTERN, AT, "blocked", f"{SENTENCE}; blocked: it waits for Jo."),
        ],
        [
            PeriodLine("f-aaaaaaaaaaaa", LANTERN, AT, "decision", "lantern keeps the queue in SQLite."),
            PeriodLine("f-cccccccccccc", LANTERN, AT, "blocker", "lantern waits for Jo."),
            PeriodLine("f-eeeeeeeeeeee", "/home/ada/other", AT, "constraint", "Nothing runs at night."),
        ],
    )
    assert text_of(seen) + "\n" == (Path(__file__).parent / "golden" / "week.md").read_text(encoding="utf-8")
    assert text_of(Period(AT, TO)) == "# What happened on 2026-03-29\n\n0 sessions"


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
    assert (week["from"], week["to"], len(week["sessions"])) == ("2026-03-23", "2026-03-29", 3)
    assert "step number 1 " in texts(week) and "step number 4 " not in texts(week) and "number 9 " not in texts(week)
    assert digest(vault, "--day")["sessions"] == []
    earlier = vault.call("digest", "--json", "--now", "2026-03-20T12:00:00Z").json
    assert earlier["to"] == "2026-03-20" and len(earlier["sessions"]) == 1
    for name in ("mill", "MILL", MILL, f"{MILL}/"):
        assert len(digest(vault, "--project", name)["sessions"]) == 1
    assert len(digest(vault, "--agent", "scout")["sessions"]) == 1
    assert {statement["type"] for statement in week["statements"]} == {"decision"} and len(week["statements"]) == 3


@pytest.mark.usefixtures("auckland")
def test_days_are_those_of_the_machine(vault: Vault) -> None:
    """In Auckland it is tomorrow already, and on that night a clock is put back."""
    late = "2026-04-04T21:30:00Z"  # 09:30 on April 5, which has 25 hours
    before, behind = (
        vault.call("remember", f"{word} that midnight.", "--now", f"2026-04-04T{at}Z", "--json").json["id"]
        for word, at in (("Before", "10:59:00"), ("Behind", "11:01:00"))
    )
    for number, at in ((5, "10:59:00"), (6, "11:01:00")):
        vault.session(number, project=LANTERN, captured_at=f"2026-04-04T{at}.000Z")
    vault.reindex(now=late)
    here = vault.call("digest", "--json", "--day", "--now", late).json
    assert (here["from"], here["to"]) == ("2026-04-05",) * 2
    assert [one["day"] for one in here["sessions"]] == ["2026-04-05"] and "number 6 " in texts(here)
    assert vault.call("digest", "--json", "--day", "2026-04-05").json == here
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
    for command in ("expand", "forget"):
        assert "remembered 2026-04-05" in vault.call(command, behind).out
