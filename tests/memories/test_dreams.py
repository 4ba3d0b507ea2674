"""Dreams from end to end: what is recalled becomes events, signals, promotions, a section and a diary, and goes again.

Tests of the original's list (docs/internals/conformance.md) have its names.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import agents
import pytest
from agents import Counted, Inside, until
from signet_writer import process_of
from workbench import Answer, Vault, tree

from signet_sync.app import scheduler
from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.memories import operations as memories_operations
from signet_sync.memories.score import Promotion, Totals, weigh
from signet_sync.memories.store import promotions
from signet_sync.recall.operations import recall as find
from signet_sync.recall.store.rows import Within
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import now_us
from signet_sync.sync.workspace import Workspace

NOW = "2026-03-29T12:00:00.000Z"
NOW_US = parse_instant(NOW) or 0
HOUR = 3600 * SECOND
# Full text writes only what a word does not share with the one before it in order: the first letters are left out.
CANARY = "zqxdreamcanary"
LUIS = "Luis lives in Bogota and prefers Spanish"
KATE = "Kate should default to short WhatsApp replies"
ASKED = ("Luis", "Bogota", "who prefers Spanish")

quick = agents.quick


class RecallEvent(NamedTuple):
    """A hit of `recall` on a memory: the query as stored, its score (0 to 1), microseconds since 1970 UTC."""

    query: str
    score: float
    at_us: int


@pytest.fixture
def database(vault: Vault) -> Iterator[Database]:
    """The database of an empty vault, open for writing."""
    with open_to_write(str(vault.root), Settings()) as workspace:
        yield workspace.database


def done(vault: Vault, *words: str, code: int = 0) -> Answer:
    answer = vault.call(*words)
    assert answer.code == code, answer
    return answer


def remember(vault: Vault, text: str, *more: str) -> str:
    found: str = done(vault, "remember", text, "--json", "--now", NOW, *more).json["id"]
    return found


def recall(vault: Vault, *queries: str, now: str = NOW, agent: str = "default") -> list[str]:
    """Asks for something; gives the ids of the memories that the last query found, best first."""
    found: list[str] = []
    for query in queries:
        hits = done(vault, "recall", query, "--json", "--now", now, "--agent", agent).json["hits"]
        found = [hit["id"] for hit in hits if hit["tier"] == "memory"]
    return found


def counted(vault: Vault, agent: str = "default") -> Any:
    return done(vault, "status", "--json").json["memory"].get(agent)


def hit(database: Database, memory_id: str, *found: RecallEvent, agent: str = "default") -> None:
    """Records hits on a memory."""
    for event in found:
        promotions.record(database, agent, event.query, [(memory_id, event.score)], event.at_us)


def hits(*scores: float, queries: int = 1, days: int = 1, at_us: int = NOW_US) -> list[RecallEvent]:
    """A hit with each score, by so many queries, on so many days up to a time."""
    return [
        RecallEvent(f"query {number % queries}", score, at_us - number % days * DAY)
        for number, score in enumerate(scores)
    ]


def seen(database: Database, memory_id: str, agent: str = "default") -> Promotion | None:
    """The signals of a memory now, from what SQL counts; None without any."""
    counted = {one: totals for one, totals, *_ in promotions.list_found_since(database, agent, 0)}
    return weigh(memory_id, counted[memory_id], NOW_US) if memory_id in counted else None


def dream(vault: Vault, *more: str, now: str = NOW) -> dict[str, Any]:
    found: dict[str, Any] = done(vault, "dream", "--json", "--now", now, *more).json
    return found


def later(**given: float) -> str:
    """A time after `NOW`."""
    return iso(NOW_US + int(given.get("days", 0) * DAY) + int(given.get("hours", 0) * HOUR))


def section(text: str) -> str:
    """What stands below `## Dreamed` on a page."""
    return text.partition("\n## Dreamed\n")[2].partition("\n## ")[0].partition("\n<!-- signet:end")[0]


def promoted(document: dict[str, Any]) -> list[str]:
    return [one["memory_id"] for one in document["promoted"]]


def leaks(place: Path, word: str = CANARY) -> list[str]:
    """Files below a folder that hold a word."""
    needle = word[3:].lower().encode()
    return [str(path) for path in place.rglob("*") if path.is_file() and needle in path.read_bytes().lower()]


def filled(vault: Vault, text: str = LUIS, queries: tuple[str, ...] = ASKED) -> str:
    """A memory that was the first answer to three queries; gives its id."""
    memory_id = remember(vault, text)
    with vault.database(readonly=False) as database:
        hit(database, memory_id, *(RecallEvent(query, 1.0, NOW_US) for query in queries))
    return memory_id


# ── recall signals: the store ──


def test_memory_recall_records_events_for_every_hit(vault: Vault) -> None:
    texts = ("Ada prefers the dark theme", "Dark roast is what Ada drinks", "The lamp is bright")
    told = {remember(vault, text) for text in texts[:2]}
    other = remember(vault, texts[2])
    assert set(recall(vault, "dark")) == told
    with vault.database() as database:
        first = {memory_id: seen(database, memory_id) for memory_id in told}
        assert [one.recall_count for one in first.values()] == [1, 1] and seen(database, other) is None
        assert sum(one.relevance for one in first.values()) == pytest.approx(1.5)
    recall(vault, "Ada")
    with vault.database() as database:
        for memory_id in told:
            again = seen(database, memory_id)
            assert again.recall_count == 2 and again.diversity > first[memory_id].diversity > 0


def test_no_word_of_a_query_is_kept_and_another_query_is_told_from_the_same(vault: Vault) -> None:
    """Whoever asks whether something is really gone does not bring its words back."""
    remember(vault, LUIS)
    recall(vault, f"Luis {CANARY}", f"Luis  {CANARY}\n", "Luis Spanish")
    assert vault.rows("select count(*), count(distinct query) from recall_events") == [(3, 2)]
    assert leaks(vault.root.parent) == []


def test_what_nobody_asked_for_is_no_hit(vault: Vault) -> None:
    remember(vault, LUIS)
    done(vault, "context")
    done(vault, "recall", "--words", "Luis")
    recall(vault, "xylophone", "")
    assert vault.rows("select count(*) from recall_events") == [(0,)]


def test_totals_are_of_one_memory_of_one_agent_since_a_day(vault: Vault, database: Database) -> None:
    luis, other = remember(vault, LUIS), remember(vault, KATE)
    remember(vault, LUIS, "--agent", "scout")
    hit(database, luis, *hits(1.0, 0.5, 0.25, queries=2, days=3))
    hit(database, other, *hits(1.0, at_us=NOW_US - DAY))
    hit(database, luis, *hits(1.0), agent="scout")
    found = {one: totals for one, totals, _ in promotions.list_found_since(database, "default", 0)}
    assert found == {luis: Totals(3, 1.75, NOW_US, 2, 3), other: Totals(1, 1.0, NOW_US - DAY, 1, 1)}
    newest = promotions.list_found_since(database, "default", NOW_US - DAY + 1)
    assert [(one, totals) for one, totals, _ in newest] == [(luis, Totals(1, 1.0, NOW_US, 1, 1))]


# ── the sweep ──


def test_empty_memory_yields_empty_report(vault: Vault) -> None:
    done(vault, "dream", "--dry-run", code=3)  # without an index it makes none
    assert "agent-invalid" in done(vault, "dream", "--agent", "../up", "--json", code=2).out
    assert done(vault, "--db", ":memory:", "dream", code=2).code == 2
    assert dream(vault) == {
        "sweep_id": "20260329T120000000Z", "candidates": 0, "skipped_already_promoted": 0, "promoted": [],
        "dry_run": False,
    }  # fmt: skip
    assert not (vault / "MEMORY.md").exists()
    assert "Nothing has risen yet." in vault.page("DREAMS.md")


def test_gate_filters_candidates_and_idempotent_sweep_does_not_promote_twice(vault: Vault, database: Database) -> None:
    luis, lamp = filled(vault), remember(vault, "The lamp is lit at dusk")
    remember(vault, KATE)
    recall(vault, "Kate")
    hit(database, lamp, *hits(0.1, 0.1, queries=2))
    found = dream(vault)
    assert (found["candidates"], promoted(found)) == (3, [luis])
    (told,) = found["promoted"]
    assert (told["hits"], told["days"], told["queries"]) == (3, 1, 3)
    assert LUIS in section(vault.page()) and KATE not in section(vault.page())
    assert LUIS in vault.page("DREAMS.md") and KATE not in vault.page("DREAMS.md")
    again = dream(vault, now=later(days=1))
    assert (again["candidates"], again["skipped_already_promoted"], again["promoted"]) == (3, 1, [])
    for page in (vault.page(), vault.page("DREAMS.md")):
        assert page.count(LUIS) == page.count(luis) == 1


def test_max_promotions_caps_output(vault: Vault, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [remember(vault, f"Lamp number {number} hangs in the hall") for number in range(5)]
    for number, memory_id in enumerate(told):
        hit(database, memory_id, *hits(*[1.0 - number / 10] * 3, queries=2))
    monkeypatch.setenv("SIGNET_DREAM_MAX_PROMOTIONS", "2")
    found = dream(vault)
    assert (found["candidates"], promoted(found)) == (5, told[:2])
    assert promoted(dream(vault, now=later(hours=1))) == told[2:4], "the others are next"


def test_a_dry_run_shows_what_would_rise_and_writes_nothing(vault: Vault) -> None:
    luis = filled(vault)
    before = tree(vault.root), tree(vault.state, but=("signet-sync.db-shm",))
    told = dream(vault, "--dry-run")
    answer = done(vault, "dream", "--dry-run", "--now", NOW)
    assert (told["dry_run"], promoted(told)) == (True, [luis])
    assert "1 would be promoted into MEMORY.md" in answer.out and LUIS in answer.out
    assert (tree(vault.root), tree(vault.state, but=("signet-sync.db-shm",))) == before
    assert promoted(dream(vault)) == promoted(told)


def test_the_section_is_as_the_seed_has_it_newest_first_and_best_first(vault: Vault, database: Database) -> None:
    luis, kate, lamp = (remember(vault, text) for text in (LUIS, KATE, "The lamp is lit at dusk"))
    hit(database, luis, *hits(0.5, 0.5, 0.5, queries=2, at_us=NOW_US - DAY))
    hit(database, kate, *hits(1.0, 1.0, 1.0, queries=2, at_us=NOW_US - DAY))
    assert promoted(dream(vault, now=later(days=-1))) == [kate, luis]
    hit(database, lamp, *hits(1.0, 1.0, 1.0, queries=3, days=3))
    assert promoted(dream(vault)) == [lamp]
    lines = [re.sub(r"score=0\.\d\d", "score=S", line) for line in section(vault.page()).splitlines() if line]
    assert lines == [
        "### 2026-03-29 12:00 UTC",
        f"- The lamp is lit at dusk _(score=S, hits=3, days=3)_ ^{lamp}",
        "### 2026-03-28 12:00 UTC",
        f"- {KATE} _(score=S, hits=3, days=1)_ ^{kate}",
        f"- {LUIS} _(score=S, hits=3, days=1)_ ^{luis}",
    ]
    assert "# Decisions" not in vault.page(), "what has risen stands nowhere else on the page"


def test_nothing_crosses_agents(vault: Vault) -> None:
    mine, theirs = remember(vault, LUIS), remember(vault, LUIS, "--agent", "scout")
    recall(vault, *ASKED, agent="scout")
    assert dream(vault)["candidates"] == 0
    assert promoted(dream(vault, "--agent", "scout")) == [theirs]
    assert section(vault.page()) == "" and theirs in section(vault.page("agents/scout/MEMORY.md"))
    assert LUIS not in vault.page("DREAMS.md") and LUIS in vault.page("agents/scout/DREAMS.md")
    recall(vault, *ASKED)
    assert promoted(dream(vault, now=later(hours=1))) == [mine]
    theirs_before = vault.page("agents/scout/MEMORY.md"), vault.page("agents/scout/DREAMS.md")
    done(vault, "forget", mine, "--now", NOW)
    assert vault.rows("select agent_id, memory_id from memory_promotions") == [("scout", theirs)]
    assert (vault.page("agents/scout/MEMORY.md"), vault.page("agents/scout/DREAMS.md")) == theirs_before
    assert counted(vault) is None and counted(vault, "scout")["promotions"] == 1


# ── retention ──


def test_what_is_older_than_hits_are_kept_is_pruned(
    vault: Vault, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    luis = remember(vault, LUIS)
    hit(database, luis, *hits(1.0, 1.0, queries=2, at_us=NOW_US - 10 * DAY), *hits(1.0))
    monkeypatch.setenv("SIGNET_RECALL_RETENTION_DAYS", "9")
    assert promoted(dream(vault, "--dry-run")) == [], "a dry run counts what a sweep would"
    assert vault.rows("select count(*) from recall_events") == [(3,)]
    assert promoted(dream(vault)) == []
    vault.reindex("--now", NOW)
    assert vault.rows("select at_us from recall_events") == [(NOW_US,)]


# ── pages of people and of other machines ──


def test_what_was_forgotten_leaves_the_entries_of_another_machine_too(vault: Vault, tmp_path: Path) -> None:
    told = [filled(vault), remember(vault, KATE)]
    assert promoted(dream(vault)) == told[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIGNET_STATE", str(tmp_path / "another machine"))
        assert [remember(vault, LUIS), remember(vault, KATE)] == told
        assert LUIS in vault.page("DREAMS.md")
        with process_of(vault.root):
            assert done(vault, "forget", told[0], "--json", "--now", NOW).json["pending"]
            assert leaks(vault.state, LUIS) == [] and LUIS not in vault.page("DREAMS.md"), "the diary is ours alone"
        vault.reindex()
        assert LUIS not in vault.page("DREAMS.md")
        assert vault.rows("select * from unscrubbed_memories") == []


def test_the_diary_comes_back_and_what_is_typed_into_it_is_kept_beside_it(vault: Vault) -> None:
    filled(vault)
    dream(vault)
    before = vault.page("DREAMS.md")
    (vault / "DREAMS.md").write_text(before.replace("### Promoted", "### Promoted\n\nI doubt it.", 1))
    vault.reindex()
    (kept,) = vault.root.glob("DREAMS.user-*.md")
    assert vault.page("DREAMS.md") == before and "I doubt it." in kept.read_text()
    (vault / "DREAMS.md").unlink()
    vault.reindex()
    assert vault.page("DREAMS.md") == before


# ── when ──


def test_a_sweep_is_due_an_interval_after_the_first_hit_and_after_the_last_sweep(vault: Vault) -> None:
    remember(vault, LUIS)
    with open_to_write(str(vault.root), Settings()) as workspace:
        assert due(workspace, days=400) == []
        hit(workspace.database, luis_of(workspace), *hits(1.0))
        assert [due(workspace, hours=hours) for hours in (0, 23.9, 24, 9000)] == [[], [], ["default"], ["default"]]
        memories_operations.dream(workspace, "default", NOW_US + 30 * HOUR)
        assert [due(workspace, hours=hours) for hours in (30, 53.9, 54)] == [[], [], ["default"]]
        workspace.settings = workspace.settings.replace(dream_interval=3600.0)
        assert [due(workspace, hours=hours) for hours in (30.9, 31)] == [[], ["default"]]
    with open_to_write(str(vault.root), Settings(recall_retention_days=0.0)) as workspace:
        assert due(workspace, hours=31) == [], "a restart is no reason"
        memories_operations.dream(workspace, "default", NOW_US + 3650 * DAY)  # the clock is set back then
        assert due(workspace, days=3) == ["default"]


def due(workspace: Workspace, **given: float) -> list[str]:
    at_us = parse_instant(later(**given))
    assert at_us is not None
    return list(memories_operations.due(workspace, at_us))


def luis_of(workspace: Workspace) -> str:
    found: str = workspace.database.value("select id from memories")
    return found


class Asked(Counted):
    """A scheduler that counts how often it has looked for what is due."""

    asked = 0

    def _dream(self) -> None:
        super()._dream()
        self.asked += 1


class Dreamer(Inside):
    kind = Asked
    scheduler: Asked | None


@pytest.mark.usefixtures("quick")
def test_the_agent_sweeps_what_is_due_once_and_not_again_at_its_next_start(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "DREAM_BEAT", 0.05)
    luis = remember(vault, LUIS)
    with vault.database(readonly=False) as database:
        hit(database, luis, *hits(1.0, 1.0, 1.0, queries=3, at_us=now_us() - 2 * DAY))
    for _ in range(2):
        with Dreamer(vault) as agent:
            until(
                lambda agent=agent: agent.scheduler is not None and agent.scheduler.asked > 2, "asked again and again"
            )
            assert luis in section(vault.page())
    assert len(vault.rows("select * from dream_sweeps")) == 1


# ── privacy ──


def test_workspace_memory_skipped_when_source_is_peer_agent(vault: Vault) -> None:
    remember(vault, "The lamp is lit at dusk", "--tag", "lamps")
    text = f"The {CANARY} lights the lamp: secretword of the OpenAI gateway"
    hidden = remember(vault, text, "--private", "--tag", "kestreltag")
    recall(vault, "lamp", "secretword", "kestreltag", "openai")
    assert hidden in promoted(dream(vault)) and CANARY in vault.page() and CANARY in vault.page("DREAMS.md")
    (vault / "USER.md").write_text("likes tea")
    told = done(vault, "context", "--scope", "shared", "--json").json
    assert "likes tea" in told["text"] and told["sources"] == ["USER.md"]
    with vault.database() as database:

        def shared(prompt: str) -> str:
            hits = find(database, prompt, Within("default", shared=True))
            return " ".join(f"{hit.id} {hit.text}" for hit in hits).casefold()

        for word in (CANARY, hidden, "secretword", "kestreltag", "Dream Diary", "score="):
            prompts = f"what does the {CANARY} say", "kestreltag", "what rose in my dreams", f"^{hidden}"
            assert not any(word.casefold() in said for said in (told["text"].casefold(), *map(shared, prompts))), word
        assert "the lamp is lit at dusk" in shared("when is the lamp lit?")


# ── self-report ──


def test_my_stats_aggregates_counts_and_last_dream(vault: Vault) -> None:
    filled(vault)
    remember(vault, KATE)
    remember(vault, LUIS, "--agent", "scout")
    dream(vault)
    assert counted(vault) == {"memories": 2, "recall_events": 3, "promotions": 1, "last_dream": NOW}
    assert counted(vault, "scout") == {"memories": 1, "recall_events": 0, "promotions": 0, "last_dream": None}
    assert "memory     3 memories · 1 promoted · last dream 2026-03-29" in done(vault, "status").out
