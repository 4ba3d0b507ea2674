"""A pass: what the engine gives to all that registers, when a page is written, what waits, what is derived anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from crash_runner import KILLED, forked
from workbench import NOW, Vault, numbered

from signet_sync.app import workspace as pipeline
from signet_sync.app.workspace import open_to_write
from signet_sync.errors import SignetSyncError
from signet_sync.formats.snapshot import Found
from signet_sync.formats.statement import Word
from signet_sync.formats.timestamps import DAY, SECOND, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.statements import word_files
from signet_sync.storage.database.connection import Database
from signet_sync.sync import deriving, engine, indexing, reading
from signet_sync.sync.engine import defer_pages, index_paths, run_pass, work_off
from signet_sync.sync.index_records import SESSION, Change
from signet_sync.sync.store import artifacts, counts, passes
from signet_sync.sync.workspace import (
    Eraser,
    InFull,
    Maintenance,
    Pass,
    Pipeline,
    Publisher,
    Recovery,
    Request,
    Workspace,
)

NOW_US = parse_instant(NOW) or 0


class Diary(Publisher, Maintenance, Recovery, Eraser):
    """Writes down what the engine asks of it, and when."""

    name = "diary"
    wanted: Sequence[str] = ()
    broken = ""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        self.told.append("recover")
        run.look_at(self.wanted)
        yield
        self.told.append("recovered")

    def gather(self, run: Pass, removed: Sequence[Any]) -> str:
        self.told.append(f"gather {run.database.value('select count(*) from memory_artifacts')}")
        return "gathered"

    def erase(self, run: Pass, removed: Sequence[Any], gathered: str) -> Callable[[], None]:
        assert run.database.connection.in_transaction and gathered == "gathered"
        self.told.append("erase")
        return lambda: self.told.append(f"erased {run.database.value('select count(*) from ledger_rows')}")

    def run(self, run: Pass) -> None:
        self.told.append("maintain")

    def mark(self, database: Database, change: Change) -> None:
        assert database.connection.in_transaction
        self.told += [f"mark {agent}" for agent in sorted(change.agents)]

    def stale(self, run: Pass) -> list[str]:
        assert not run.database.connection.in_transaction
        return ["first.md", "second.md"]

    def publish(self, run: Pass, key: str) -> None:
        if key == self.broken:
            raise SignetSyncError("it cannot be written")
        self.told.append(f"publish {key}")


def with_diary(**other: Any) -> tuple[Diary, Pipeline]:
    one = Diary()
    stages = {"erasers": [one], "maintenance": [one], "publishers": [one], "recoveries": [one]} | other
    return one, Pipeline(pipeline.DERIVERS, **stages)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path / "vault")
    for number in (1, 2):
        made.session(number)
    return made


def passed(vault: Vault, stages: Pipeline, request: Request) -> Any:
    with open_to_write(str(vault.root), Settings()) as workspace:
        workspace.pipeline = stages
        return run_pass(workspace, request)


def test_a_pass_recovers_marks_maintains_and_publishes_in_this_order(vault: Vault) -> None:
    diary, stages = with_diary()
    outcome = passed(vault, stages, Request(NOW_US))
    assert outcome.read == 6
    assert list(dict.fromkeys(diary.told)) == [
        "recover", "mark default", "maintain", "publish first.md", "publish second.md", "recovered",
    ]  # fmt: skip


def test_what_cannot_be_published_holds_up_nothing_else(vault: Vault) -> None:
    diary, stages = with_diary()
    diary.broken = "first.md"
    outcome = passed(vault, stages, Request(NOW_US))
    assert "publish second.md" in diary.told and outcome.deferred
    assert outcome.trouble == ["first.md: the page could not be written: it cannot be written"]


def test_a_stage_of_full_passes_is_not_loaded_by_another(vault: Vault) -> None:
    diary, stages = with_diary(maintenance=[InFull("no_such_module:Stage")])
    vault.reindex()
    passed(vault, stages, Request(NOW_US, frozenset({"memory/none.md"})))
    assert "publish first.md" in diary.told
    with pytest.raises(ModuleNotFoundError):
        passed(vault, stages, Request(NOW_US))


def test_paths_that_a_recovery_names_are_looked_at(vault: Vault) -> None:
    vault.reindex()
    before = set(vault.memory.iterdir())
    vault.session(3)
    diary, stages = with_diary()
    diary.wanted = [f"memory/{path.name}" for path in set(vault.memory.iterdir()) - before]
    outcome = passed(vault, stages, Request(NOW_US, frozenset()))
    assert outcome.read == len(diary.wanted) == 3


def test_a_removal_is_gathered_while_rows_stand_and_concluded_when_rows_have_followed(vault: Vault) -> None:
    vault.reindex()
    diary, stages = with_diary()
    assert vault.call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW).code == 0
    with open_to_write(str(vault.root), Settings()) as workspace:
        workspace.database.execute("update memory_artifact_tombstones set scrubbed = 0")
        workspace.pipeline = stages
        run_pass(workspace, Request(NOW_US))
    erasing = [line for line in diary.told if line.split()[0] in ("gather", "erase", "erased")]
    assert erasing == ["gather 3", "erase", "erased 1"]


# ── MEMORY.md follows each of its inputs ──


@pytest.fixture
def workspace(vault: Vault) -> Iterator[Workspace]:
    with open_to_write(str(vault.root), Settings()) as found:
        run_pass(found, Request(NOW_US))
        yield found


def changed_by(workspace: Workspace, at_us: int = NOW_US + 60 * SECOND) -> bool:
    """Whether a full pass wrote the page."""
    return run_pass(workspace, Request(at_us)).pages["default"].changed


def pin(vault: Vault, workspace: Workspace) -> None:
    node = workspace.database.value("select thread_id from memory_thread_heads")
    word_files.add(workspace, [Word("default", node, "pinned", NOW)])


def remember(vault: Vault, workspace: Workspace) -> None:
    from signet_sync.memories.store.memories import OWN_WORD, Memory, store

    with workspace.database.transaction():
        store(
            workspace.database, Memory("default", "m-aaaaaaaaaaaa", "note", "Lamps need oil.", (), False, NOW), OWN_WORD
        )


def edit(vault: Vault, workspace: Workspace) -> None:
    page = vault.root / "MEMORY.md"
    page.write_bytes(page.read_bytes().replace(b"# Working Memory", b"# My Memory"))


def settle_for_less(vault: Vault, workspace: Workspace) -> None:
    workspace.settings = workspace.settings.replace(budget_tokens=600)


def seal_broken(vault: Vault, workspace: Workspace) -> None:
    path = next(vault.memory.glob("*--summary.md"))
    path.write_bytes(path.read_bytes() + b"changed\n")


def forgotten(vault: Vault, workspace: Workspace) -> None:
    """A pass that was killed between its transaction and its page."""
    vault.session(3)
    index_paths(workspace, Request(NOW_US))


def nothing(vault: Vault, workspace: Workspace) -> None:
    pass


@pytest.mark.parametrize("moved", [nothing, pin, remember, edit, settle_for_less, seal_broken, forgotten])
def test_a_page_is_written_when_one_of_its_inputs_moved(
    vault: Vault, workspace: Workspace, moved: Callable[[Vault, Workspace], None]
) -> None:
    moved(vault, workspace)
    assert changed_by(workspace) is (moved is not nothing)
    assert not changed_by(workspace)


def test_the_clock_has_it_written(workspace: Workspace) -> None:
    assert changed_by(workspace, NOW_US + 40 * DAY) and changed_by(workspace, NOW_US)


def test_pages_after_passes_over_some_paths_are_those_of_a_rebuild(vault: Vault, workspace: Workspace) -> None:
    for number in (3, 4, 5):
        run_pass(workspace, Request(NOW_US, paths=frozenset(vault.session(number).values())))
    remember(vault, workspace)
    pin(vault, workspace)
    run_pass(workspace, Request(NOW_US, paths=frozenset({"MEMORY.md", "memory/words/a.jsonl"})))
    # It moves no row of the session log.
    earlier = made.summary(
        **numbered(4) | {"captured_at": "2026-03-24T09:00:00.000Z", "body": "## Next steps\n\n- Oil.\n"}
    )
    run_pass(workspace, Request(NOW_US, paths=frozenset(vault.put(earlier))))
    followed = {path: path.read_bytes() for path in vault.root.rglob("*.md") if b"signet:begin" in path.read_bytes()}
    assert len(followed) > 2 and b"number 5" in followed[vault / "MEMORY.md"]
    run_pass(workspace, Request(NOW_US, rebuild=True))
    assert {path: path.read_bytes() for path in followed} == followed


def test_where_many_of_the_given_paths_are_gone_the_whole_folder_decides(
    vault: Vault, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "CLIFF_MINIMUM", 3)
    before, gone = vault.dump(), sorted(vault.memory.glob("*.md"))
    for path in gone:
        path.unlink()
    outcome = run_pass(workspace, Request(NOW_US, paths=frozenset(f"memory/{path.name}" for path in gone[:3])))
    assert outcome.cliff is not None and vault.dump() == before


def test_a_link_is_told_to_be_broken_while_its_target_is_away(vault: Vault, workspace: Workspace) -> None:
    path = next(vault.memory.glob("*--transcript.md"))
    raw, name = path.read_bytes(), f"memory/{path.name}"
    for broken in (True, False):
        path.unlink() if broken else path.write_bytes(raw)
        run_pass(workspace, Request(NOW_US, paths=frozenset({name})))
        said = [note.message for note in counts.notes(workspace.database, NOW_US)]
        assert said == [f"`transcript_path` leads to {name}, which is not there"] * broken


@pytest.mark.parametrize("after", ["the next that come together", "reindex"])
def test_pages_that_waited_when_it_was_killed_are_published_by_whoever_comes_next(vault: Vault, after: str) -> None:
    vault.reindex()

    def ends() -> int:
        with open_to_write(str(vault.root), Settings()) as workspace, defer_pages(workspace, lambda: NOW_US):
            run_pass(workspace, Request(NOW_US, frozenset(vault.session(7).values())))
            os._exit(KILLED)

    assert forked(ends) == KILLED
    assert "number 7" not in vault.page()
    if after == "reindex":
        vault.reindex()
    else:
        with open_to_write(str(vault.root), Settings()) as workspace, defer_pages(workspace, lambda: NOW_US):
            pass
    assert "number 7" in vault.page()
    with vault.database() as database:
        assert not passes.get(database, "pages_due")


def test_pages_that_waited_and_cannot_be_written_are_told(vault: Vault) -> None:
    vault.reindex()
    (vault / "MEMORY.md").unlink()
    (vault / "MEMORY.md").mkdir()
    with open_to_write(str(vault.root), Settings()) as workspace:
        with defer_pages(workspace, lambda: NOW_US):
            run_pass(workspace, Request(NOW_US, frozenset(vault.session(7).values())))
        assert "MEMORY.md" in str(workspace.events)


def test_the_page_of_an_agent_goes_with_its_last_manifest(vault: Vault) -> None:
    path = vault.session(7, agent_id="yan")["manifest"]
    for other in set(vault.session(7, agent_id="yan").values()) - {path}:
        (vault / other).unlink()
    vault.reindex()
    assert (vault / "agents/yan/MEMORY.md").exists()
    (vault / path).unlink()
    with open_to_write(str(vault.root), Settings()) as workspace:
        run_pass(workspace, Request(NOW_US, frozenset({path})))
    assert not (vault / "agents/yan/MEMORY.md").exists()


# ── what follows from old sessions waits for idle time; commands wait for all of it, and a death loses none ──


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """Twelve sessions, of which some wait for idle time."""
    monkeypatch.setattr(engine, "FEW_SOURCES", 1)
    made = Vault(tmp_path / "vault")
    for number in range(1, 13):
        made.session(number)
    return made


@pytest.fixture
def idle(many: Vault) -> Iterator[Workspace]:
    with open_to_write(str(many.root), Settings()) as found:
        yield found


def request(**given: Any) -> Request:
    return Request(now_us=NOW_US, **given)


def pages(vault: Vault) -> dict[str, bytes]:
    return {str(path.relative_to(vault.root)): path.read_bytes() for path in sorted(vault.root.glob("ledger/**/*.md"))}


def test_the_page_comes_first_and_log_pages_once_nothing_waits(many: Vault, idle: Workspace) -> None:
    run_pass(idle, request(since_us=NOW_US - 5 * DAY))
    assert "step number 1 bounded" in many.page() and not pages(many)
    assert many.hits("bounded"), "artifacts are found at once"
    assert many.call("status", "--json").json["backlog"] == passes.count_waiting(idle.database) > 0
    assert "backlog" in many.call("status").out
    for deriver in idle.pipeline.derivers:
        assert (deriver.name in deriving.find_unfinished(idle.database, idle.pipeline)) == (SESSION in deriver.kinds)
    while work_off(idle, request()):
        pass
    run_pass(idle, request())
    assert many.call("status", "--json").json["backlog"] == 0
    assert "step number 12 bounded" in "".join(page.decode() for page in pages(many).values())
    assert many.dump() == many.dump_from_scratch()


def test_a_rebuild_in_idle_time_takes_no_page_away(many: Vault, idle: Workspace) -> None:
    many.reindex()
    before, page = pages(many), many.page()
    idle.database.execute("update derivers set version = 'older'")
    run_pass(idle, request(since_us=NOW_US - 5 * DAY))
    assert passes.has_waiting(idle.database) and pages(many) == before
    while work_off(idle, request()):
        pass
    run_pass(idle, request())
    assert pages(many) == before and many.page() == page
    assert many.dump() == many.dump_from_scratch()


def test_a_removal_waits_for_all_that_tells_of_the_session(many: Vault, idle: Workspace) -> None:
    who = many.session(20, body="# Zanzibar\n\n## Decisions\n\n- Zanzibar is an island.\n")
    run_pass(idle, request(since_us=NOW_US - 5 * DAY))
    token = who["summary"].split("--")[1]
    assert many.call("remove", token, "--yes", "--reason", "asked for").code == 0
    assert not passes.has_waiting(idle.database)
    assert "anzibar" not in repr(many.dump())
    many.reindex()
    assert many.dump() == many.dump_from_scratch()


def test_without_the_memory_for_one_file_the_others_are_indexed(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    path, really = vault.session(3)["summary"], reading.planner.judge

    def judge(asked: str, found: Any, judging: Any) -> Any:
        if asked == path and isinstance(found, Found):
            raise MemoryError
        return really(asked, found, judging)

    with monkeypatch.context() as patch:
        patch.setattr(reading.planner, "judge", judge)
        assert vault.reindex()["counts"]["read"] == 9
    assert vault.rows("select verdict, code from files where path = ?", path) == [("invalid", "unreadable")]
    assert vault.reindex()["counts"]["read"] == 1
    assert vault.rows("select verdict from files where path = ?", path) == [("indexed",)]


def test_rows_of_another_sanitizer_are_made_anew_once_and_a_hinted_pass_does_not_vouch_for_others(vault: Vault) -> None:
    vault.session(3)
    vault.reindex()
    with vault.database(readonly=False) as database, database.transaction():
        artifacts.set_sanitizer_of_rows(database, "sanitize_transcript_v0 0123456789abcdef")
    paths = frozenset(vault.session(4).values())
    with open_to_write(str(vault.root), Settings()) as workspace:
        assert run_pass(workspace, Request(NOW_US, paths)).read == 3
        assert run_pass(workspace, Request(NOW_US)).read == 12
        assert run_pass(workspace, Request(NOW_US)).read == 0
