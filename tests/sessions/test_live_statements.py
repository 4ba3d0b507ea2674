"""What a running session states: others get it while it runs, itself never, and its files take its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from session_inputs import end
from test_hook_context import prompt, start
from test_intake import put, take
from test_live import fed, line, refused
from transcript_builder import TranscriptBuilder, at, plugged_in, store
from workbench import Vault, sampled

from signet_sync.host.repository import Repository
from signet_sync.sessions.live.stage import distil_turns
from signet_sync.sessions.live.turns import SpokenTurn
from signet_sync.storage import state_dir
from signet_sync.storage.durable import read_with_sum

PROJECT = "/home/ada/code/lantern"
ORIGIN = "git.example/ada/lantern"
MINE, OTHER = "5e551003-0000-4000-8000-000000000003", "5e551004-0000-4000-8000-000000000004"
BUG = "The queue of lantern loses jobs when the broker restarts. Please look into src/queue.py."
FOUND = "The jobs are only in memory. I can keep them in Redis or in Postgres. Which one should the queue use?"
POSTGRES = "From now on we use Postgres for the queue of lantern, not Redis."
KEPT = "Jobs must never be deleted from the table, only marked."
DONE = (
    "## Done\n\nJobs are rows of Postgres now. The throughput of src/queue.py is measured: 400 jobs a second."
    "\n\n## Next steps\n\n- Write a migration for old jobs."
)
DECIDED = "Postgres for the queue of lantern"


def agreed(said: str) -> tuple[str, str]:
    """What a person decides, and what an agent hands over about it."""
    return said, f"I am at it.\n\nDecided: {said.removesuffix('.')}"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    vault = Vault(tmp_path / "vault")
    vault.session(
        1, project=PROJECT, captured_at="2026-03-10T10:00:00.000Z", body="# One\n\n## Decisions\n\n- Retry limit is 5\n"
    )
    vault.reindex()
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    return vault


def talk(*said: str, first: int = 1, **place: Any) -> list[dict[str, Any]]:
    """Turns of the user and the assistant in turn; the first one says where the session works."""
    roles = ("user", "assistant")
    turns = [line(first + n, text, 60 * (first + n), roles[n % 2]) for n, text in enumerate(said)]
    return [{**turns[0], "project": PROJECT, **place}, *turns[1:]]


def running(
    vault: Vault, *said: str, key: str = MINE, first: int = 1, options: tuple[str, ...] = (), **place: Any
) -> None:
    fed(vault, talk(*said, first=first, **place), key, *options)
    vault.reindex()


def stated(vault: Vault, agent: str = "default") -> list[tuple[str, str]]:
    """Words and status of what is stated."""
    return vault.rows("select text, status from statements where agent_id = ? and newest = 1 order by 1", agent)


def of_running(vault: Vault) -> set[tuple[Any, ...]]:
    """The running sessions that state something, and their projects."""
    return set(
        vault.rows("select session_id, project from statements join sessions using (session) where artifact < 0")
    )


def context(vault: Vault, *options: str) -> str:
    answer = vault.call("context", "--project", PROJECT, *options)
    assert answer.code == 0, answer
    return answer.out


def recalled(vault: Vault, query: str, *options: str) -> list[dict[str, Any]]:
    answer = vault.call("recall", "--json", *options, query)
    assert answer.code == 0, answer
    return [hit for hit in answer.json["hits"] if hit["tier"] == "statement"]


def settled(vault: Vault) -> list[tuple[Any, ...]]:
    """What derivers keep, by names: equal after a rebuild."""
    return vault.dump()


def turns(*said: str) -> list[SpokenTurn]:
    return [SpokenTurn(("user", "assistant")[n % 2], text, at(60 * n)) for n, text in enumerate(said)]


def test_a_statement_belongs_to_the_turn_that_says_it() -> None:
    found = distil_turns(turns(BUG, FOUND, *agreed(POSTGRES), *agreed(KEPT)))
    assert sorted((place, item.kind, item.text) for place, item in found) == [
        (2, "decision", POSTGRES), (4, "decision", KEPT),
    ]  # fmt: skip
    found = distil_turns(turns(BUG, FOUND, *agreed(POSTGRES), "thanks", DONE))
    assert [(place, item.kind) for place, item in found] == [(2, "decision")]


# ── two sessions of one repository ──


def test_another_session_of_the_project_gets_what_a_running_one_said(vault: Vault) -> None:
    running(vault, BUG, FOUND, *agreed(POSTGRES))
    text = start(vault, "claude-code", session=OTHER)
    assert DECIDED in text and "in a running session" in text and "[[" not in text
    assert DECIDED in context(vault) and DECIDED in vault.page()
    (hit,) = [one for one in recalled(vault, "which database does the queue use, Postgres?") if DECIDED in one["text"]]
    assert hit["path"] is None and "in a running session" in hit["why"]
    shown = vault.call("expand", hit["id"])
    assert f"said in a running session: expand '{MINE}#3'" in shown.out or f"expand {MINE}#3" in shown.out
    assert POSTGRES in shown.out
    assert vault.call("expand", f"{MINE}#3").code == 0


@pytest.mark.parametrize("source", sampled(["startup", "resume", "compact", "clear"]))
def test_a_session_never_gets_what_it_says_itself(vault: Vault, source: str) -> None:
    running(vault, BUG, FOUND, *agreed(POSTGRES))
    question = "Why did we choose Postgres for the queue of lantern instead of Redis?"
    assert DECIDED not in start(vault, "claude-code", source, session=MINE)
    assert DECIDED not in prompt(vault, "claude-code", question, session=MINE)
    assert DECIDED in prompt(vault, "claude-code", question, session=OTHER)


@pytest.mark.parametrize("kind", ["end", "compact"])
def test_its_files_take_the_place_of_its_turns(vault: Vault, kind: str) -> None:
    running(vault, BUG, FOUND, *agreed(POSTGRES))
    before = dict(stated(vault))
    words = (
        {"transcript": "## User\n\nThat is all.\n"}
        if kind == "end"
        else {"compaction": f"# Q\n\n## Decisions\n\n- {POSTGRES}\n"}
    )
    end(
        vault, kind, session_id=MINE, session_key=MINE, project=PROJECT, captured_at=at(900),
        **{"transcript": ..., **words},
    )  # fmt: skip
    assert not of_running(vault)
    assert dict(stated(vault)).items() >= {(text, status) for text, status in before.items() if POSTGRES in text}
    assert vault.page().count(f"- {POSTGRES.removesuffix('.')}") == 1 and "in a running session" not in vault.page()
    vault.reindex()
    dump = settled(vault)
    vault.reindex("--full")
    assert settled(vault) == dump


def test_until_its_turns_are_cleared_its_files_hide_them(vault: Vault) -> None:
    """As after a crash between the two."""
    running(vault, BUG, FOUND, *agreed(POSTGRES))
    vault.session(
        3, session_id=MINE, session_key=MINE, project=PROJECT, captured_at=at(900),
        body=f"# Q\n\n## Decisions\n\n- {POSTGRES}\n",
    )  # fmt: skip
    vault.reindex()
    assert vault.rows("select count(*) from session_transcripts") == [(4,)] and not of_running(vault)
    running(vault, *agreed("From now on the retry limit is 9 attempts."), key=MINE, first=20)
    assert [text for text, _ in stated(vault) if "9" in text], "what it says later is its own again"


@pytest.mark.parametrize(("key", "place"), [(MINE, {"project": "/tmp/scratch"}), ("test-queue", {"project": None})])
def test_noise_is_kept_and_not_shown(vault: Vault, key: str, place: dict[str, Any]) -> None:
    running(vault, BUG, FOUND, *agreed(POSTGRES), key=key, **place)
    assert stated(vault) == [("Retry limit is 5", "open")] and DECIDED not in vault.page()
    assert vault.rows("select count(*) from session_transcripts") == [(4,)]


def test_a_turn_names_the_place_strictly(vault: Vault) -> None:
    refused(vault, [{**line(1, "x"), "project": 3}], "input-invalid")
    refused(vault, [{**line(1, "x"), "folder": "/x"}], "input-invalid")
    fed(vault, [{**line(1, "x"), "project": PROJECT}, line(2, "y")])
    fed(vault, [line(3, "z")])
    columns = "project, noise"
    assert vault.rows(f"select {columns} from live_sessions") == [(PROJECT, 0)]
    fed(vault, [{**line(4, "w"), "project": "/home/ada/code/kestrel"}])
    assert vault.rows(f"select {columns} from live_sessions") == [("/home/ada/code/kestrel", 0)]
    (path,) = (vault.state / "live").glob("*.jsonl")
    last = read_with_sum(path.read_bytes().splitlines()[-1])
    assert last is not None and last["place"]["project"] == "/home/ada/code/kestrel"


def heard(vault: Vault, session: str, project: str, *said: str) -> TranscriptBuilder:
    """A session of Claude Code that runs in a worktree of the repository."""
    talk = TranscriptBuilder(store(Path(os.environ["HOME"])), session, project)
    for number, text in enumerate(said):
        (talk.user, talk.assistant)[number % 2](text, 10 * number)
    put(vault, talk, "stop", repository=Repository("/home/ada/code/lantern", ORIGIN, ""))
    return talk


def test_two_worktrees_of_one_repository_meet_while_their_harness_runs(vault: Vault) -> None:
    plugged_in(vault, "claude-code")
    talk = heard(vault, MINE, "/wt/queue", BUG, FOUND, *agreed(POSTGRES))
    take(vault)
    columns = "project, harness, repository_root, repository_origin"
    place = ("/wt/queue", "claude-code", "/home/ada/code/lantern", ORIGIN)
    assert vault.rows(f"select {columns} from live_sessions") == [place]
    assert DECIDED in vault.page(), "the intake brings the page up to date"
    said = "The retry limit of the mailer is too low.", "It is 3.", *agreed("From now on the mailer tries 7 times.")
    heard(vault, OTHER, "/wt/mailer", *said)
    take(vault, later=70)
    assert of_running(vault) == {(MINE, ORIGIN), (OTHER, ORIGIN)}
    before = vault.page()
    take(vault, later=140)
    assert vault.page() == before
    talk.assistant("Done: jobs are rows of Postgres now.", 40)
    put(vault, talk, "end", repository=Repository("/home/ada/code/lantern", ORIGIN, ""))
    take(vault, later=200)
    assert of_running(vault) == {(OTHER, ORIGIN)}
    assert vault.page().count(DECIDED) == 1
    assert not vault.rows("select 1 from session_transcripts where session_id = ?", MINE)
    vault.reindex()
    dump = settled(vault)
    vault.reindex("--full")
    assert settled(vault) == dump
