"""A session full of words that stand nowhere else is removed: no byte that we write holds one, and nothing returns."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from random import Random

import artifacts_fixture as made
import pytest
from agents import Agent, until
from invented_secrets import some
from session_inputs import FIRST, compact, document, end, say
from transcript_builder import claude
from workbench import NOW, Vault, holding

from signet_sync.app.workspace import opened
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.sessions import journal
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.sessions.live import store as live
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database

ID = "ca4a1e00-0000-4000-8000-000000000001"
OTHER = "ca4a1e00-0000-4000-8000-000000000002"
TOKEN = made.token_for(session_id=ID)
SECRET = "ghp_" + some(Random(7), 36)
DEAD = 4_194_305  # beyond the highest id that a process can have

# One word for each place where text may come from. Full text writes only what a word does not share with the one before
# it in order, so each begins unlike the others, and its first letters are left out of what is looked for.
PLACES = ("transcript", "summary", "sentence", "compaction", "tail", "live", "spooled", "torn", "unfinished", "left",
          "printed")  # fmt: skip
CANARIES = {place: f"{chr(97 + number)}qz{place}canary" for number, place in enumerate(PLACES)}
# Who the session was: its id may stand in the tombstone, and no more than its beginning in a log.
PROJECT = "/home/ada/code/zqwprojectcanary"
WHO = {"session": ID, "project": PROJECT}


def line(place: str) -> str:
    """A line of text that is long enough to be known again, with characters that JSON writes in another way."""
    return f'The queue of "lantern" drains because the {CANARIES[place]} bounded every retry of the loop – naïvely.'


def sentence(place: str) -> str:
    return f"Bounded the retry loop of src/queue.py in lantern because {CANARIES[place]} said so, and the queue drains."


class Scene:
    """A vault in which the session has left traces wherever one can be left."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.home = Path(os.environ["HOME"])
        self.transcript = self.home / ".claude/projects/-home-ada-code" / f"{ID}.jsonl"
        self.foreign: dict[str, tuple[bytes, int]] = {}

    def build(self) -> None:
        vault = self.vault
        # On first contact the original program's page is kept once, in its own wording.
        (vault / "MEMORY.md").write_text(
            f"<!-- generated 2026-03-28 -->\n# Working Memory\n\n- {sentence('sentence')}\n"
        )
        for number in (2, 3):
            vault.session(number)
        vault.session(4, agent_id="scout")
        self.segments()
        self.damage()
        assert list(self.vault.state.glob("*.corrupt-*"))
        self.copies()
        self.inputs()
        self.strangers()

    def segments(self) -> None:
        """Two segments (one out of the harness's transcript) and a compaction, projected and searched."""
        self.transcript.parent.mkdir(parents=True)
        self.transcript.write_text(claude(line("transcript"), f"{line('left')} The key is {SECRET}.", **WHO))
        answer = self.vault.call("import", "claude-code", str(self.transcript), "--json")
        assert answer.code == 0 and len(answer.json["segments"]) == 1, answer
        assert answer.json["redactions"]
        end(self.vault, **self.ending())
        compact(self.vault, session_id=ID, session_key=ID, project=PROJECT, compaction=line("compaction") + SECRET,
                captured_at="2026-03-28T12:00:00.000Z", memory_sentence=sentence("sentence"))  # fmt: skip
        self.vault.reindex()
        for word in CANARIES.values():
            self.vault.hits(word)

    @staticmethod
    def ending() -> dict[str, str]:
        return {
            "session_id": ID,
            "session_key": ID,
            "project": PROJECT,
            "transcript": f"## User\n\n{line('tail')} password = {SECRET}\n\n"
            f"- `Read` · 2026-03-28T10:30:00.000Z · `queue.py`\n\n  {line('printed')}\n",
            "transcript_is": "tail",
            "summary": f"# Queue\n\n## Decisions\n\n- {line('summary')}\n",
            "memory_sentence": sentence("sentence"),
            "captured_at": "2026-03-28T11:00:00.000Z",
        }

    def damage(self) -> None:
        """The database was damaged once and set aside, with all that it held."""
        with self.vault.db.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 400)
        Path(f"{self.vault.db}-wal").write_bytes(b"")
        self.vault.reindex()

    def copies(self) -> None:
        """Conflict copies, a displaced page, leftovers of processes that were killed."""
        vault = self.vault
        summary = next(vault.memory.glob(f"2026-03-28T11*{TOKEN}--summary.md"))
        for ending in (" (1).md", ".sync-conflict-20260329-101010-ABCDEFG.md", " 2.md"):
            vault.put((summary.stem + ending, summary.read_bytes()))
        page = vault.page()
        assert CANARIES["sentence"] in page
        (vault / "MEMORY.md").write_text(page.replace("# Working Memory", "# Working Memory\n\nmy own line", 1))
        vault.reindex()
        assert list(vault.root.glob("MEMORY.user-*")) and list(vault.root.glob("MEMORY.signet-*"))
        self.leftovers()

    def leftovers(self) -> None:
        """What processes that were killed had half-written."""
        raw = line("left").encode()
        root, state = self.vault.root, self.vault.state
        for stem in (
            root / f".signet/tmp/{DEAD}-{'0' * 32}",
            root / f".signet-{DEAD}-{'0' * 32}",
            state / f"backups/native-20260328.db.{DEAD}",
            state / f"journal/{'0' * 32}.json.{DEAD}",
            state / f"spool/0.json.{'0' * 8}.{DEAD}",
        ):
            stem.parent.mkdir(exist_ok=True)
            Path(f"{stem}.tmp").write_bytes(raw)

    def inputs(self) -> None:
        """Live turns, jobs, and an ending whose caller died while it asked its model."""
        state = self.vault.state
        database = Database(str(self.vault.db))
        with database.transaction():
            turn = live.LiveTurn(1, "user", line("live"), NOW)
            live.buffer(database, "default", ID, [turn])
            live.buffer(database, "default", "agent:main:main", [turn], session_id=ID)
            live.buffer(database, "default", "agent:main:main", [turn._replace(content="other")], session_id=OTHER)
        live.set_mark(database, os.path.basename(self.job_at_work().place), live.TranscriptMark("1 2", NOW, 3))
        database.close()
        spool.put(str(state / "spool"), self.job())
        (state / "spool/bad").mkdir()
        (state / "spool/bad/1.json.damaged").write_text(json.dumps({"session_id": ID, "text": line("torn")})[:-9])

        class Died(Exception):
            pass

        def die(*_: object, **__: object) -> None:
            raise Died

        given = {"session_id": ID, "session_key": ID, "transcript": line("unfinished"), "transcript_is": "tail"}
        with opened(str(self.vault.root), Settings()) as workspace, pytest.raises(Died):
            ending = session_input(document(**given), now_us=time.time_ns() // 1000)
            sessions_operations.end(workspace, ending, now_us=time.time_ns() // 1000, propose=die)  # type: ignore[arg-type]
        assert journal.keys(str(state / "journal"))

    def job_at_work(self) -> Job:
        job = self.job()
        job.event, job.compaction = "stop", None
        return spool.put(str(self.vault.state / "spool"), job)

    def job(self) -> Job:
        return Job(
            event="compact", harness="claude-code", session_id=ID, agent_id="default", at="2026-03-28T13:00:00.000Z",
            transcript_path=str(self.transcript), cwd=PROJECT, compaction=line("spooled"),
        )  # fmt: skip

    def strangers(self) -> None:
        """Files that are not ours and hold the text, each in another way."""
        self.stranger("memory/claude-code/transcripts/a.jsonl", claude(line("tail"), "yes", **WHO).encode())
        self.stranger(
            "memory/codex/transcripts/raw.jsonl", json.dumps({"t": line("summary")}, ensure_ascii=False).encode()
        )
        self.stranger("notes/mine.md", f"somebody wrote: {line('compaction')}\n".encode())
        self.stranger("notes/large.log", b"x" * ((1 << 20) - 40) + line("transcript").encode() + b"y" * (1 << 21))
        (self.vault / "memory/claude-code/transcripts/b.jsonl").write_text('{"text": "The queue of lantern drains."}')
        path = self.vault / "memory/memories.db"
        with sqlite3.connect(path) as signet:
            signet.execute("create table memories(content text)")
            signet.executemany("insert into memories values(?)", [("x" * 3000,), (line("summary"),)])
        signet.close()
        self.stranger("memory/memories.db", path.read_bytes())
        self.stranger(str(self.transcript), self.transcript.read_bytes())

    def stranger(self, path: str, raw: bytes) -> None:
        place = self.vault.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw)
        os.utime(place, ns=(10**18, 10**18))
        self.foreign[path] = raw, 10**18

    def untouched(self) -> bool:
        found = {path: ((p := self.vault.root / path).read_bytes(), p.stat().st_mtime_ns) for path in self.foreign}
        return found == self.foreign

    def leaks(self, *words: str) -> list[tuple[str, str]]:
        """Places in all that we write (workspace, state, settings) that hold a word but for three letters."""
        strangers = {self.vault.root / path for path in self.foreign} | {self.vault.root.parent / "input.json"}
        needles = {word[3:].encode(): word for word in words or (*CANARIES.values(), SECRET, PROJECT)}
        held = holding(needles, top := self.vault.root.parent)
        return [(str(path.relative_to(top)), needles[found]) for found, path in held if path not in strangers]

    def gone(self) -> None:
        """Nothing of it anywhere, and the others as they were."""
        assert self.leaks() == []
        assert self.leaks(str(self.transcript)) == [], "where it was captured from"
        assert [word for word in CANARIES.values() if self.vault.hits(word)] == []
        assert self.vault.hits("number2x") and self.vault.hits("number4x", agent="scout")
        assert not list(self.vault.memory.glob(f"*{TOKEN}*"))
        turns = self.vault.rows("select session_key, session_id from session_transcripts")
        assert turns in ([], [("agent:main:main", OTHER)]), "gone with its ids"
        assert self.untouched()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(Vault(tmp_path / "vault"))
    found.build()
    assert {word for _, word in found.leaks()} == {*CANARIES.values(), PROJECT}, "every place holds its word"
    named = {path for path, _ in found.leaks()}
    for place in (
        "/MEMORY.md",
        "/ledger/2026/03/28.md",
        ".user-",
        ".signet-2",
        "signet-sync.db",
        ".corrupt-",
        "/native-",
    ):
        assert any(place in path for path in named), place
    assert found.leaks(SECRET) == [], "secrets were redacted before anything was written"
    return found


def remove(scene: Scene, name: str = ID) -> dict[str, object]:
    answer = scene.vault.call("remove", name, "--reason", "asked for", "--yes", "--json", "--now", NOW)
    assert answer.code == 0, answer
    found: dict[str, object] = answer.json
    return found


def bury(scene: Scene) -> None:
    """The tombstone of another machine arrives."""
    scene.vault.put(made.tombstone(session_id=ID), "memory/tombstones")


def test_removed_by_the_command(scene: Scene) -> None:
    document = remove(scene)
    scene.gone()
    assert document["foreign"] == sorted(scene.foreign)
    assert document["pending"] == []
    scene.vault.reindex("--full")
    scene.gone()


def test_removed_by_a_tombstone_of_another_machine(scene: Scene) -> None:
    bury(scene)
    assert scene.vault.reindex()["counts"]["tombstoned"] >= 8
    scene.gone()


def test_removed_by_a_tombstone_that_arrives_while_the_agent_runs(scene: Scene) -> None:
    agent = Agent(scene.vault, "--debounce", "0.05")
    try:
        agent.passed()
        scene.leftovers()
        bury(scene)
        until(lambda: scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(1,)], "the scrub")
        until(lambda: not scene.leaks(), "nothing left")
        assert agent.end() == 0
    finally:
        agent.close()
    scene.gone()
    assert ID not in "".join(path.read_text() for path in scene.vault.state.glob("logs/*"))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["command", "tombstone"])
def test_a_reader_puts_off_the_end_of_it_and_the_next_pass_finishes(scene: Scene, how: str) -> None:
    with scene.vault.database() as reader:
        reader.execute("begin")
        reader.value("select count(*) from memory_artifacts")
        if how == "command":
            remove(scene)
        else:
            bury(scene)
            scene.vault.reindex()
        assert scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(0,)]
        assert {Path(path).name for path, _ in scene.leaks()} <= {"signet-sync.db", "signet-sync.db-wal"}
        reader.execute("rollback")
    scene.vault.reindex()
    assert scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(1,)]
    scene.gone()


@pytest.mark.usefixtures("impatient")
def test_a_database_set_aside_while_the_scrub_was_pending_goes_with_it(scene: Scene) -> None:
    with scene.vault.database() as reader:
        reader.execute("begin")
        reader.value("select count(*) from memory_artifacts")
        remove(scene)
        reader.execute("rollback")
        reader.connection.close()
        scene.damage()
    scene.vault.reindex()
    scene.gone()


# ── nothing brings it back ──


def test_a_name_in_other_case_is_a_file_of_somebody_else(scene: Scene) -> None:
    """Where names differ by case it is not the artifact: it is not indexed, and the next removal names it."""
    raw = next(scene.vault.memory.glob(f"2026-03-28T11*{TOKEN}--summary.md")).read_bytes()
    remove(scene)
    name = f"2026-03-28T11-00-00.000Z--{TOKEN.upper()}--SUMMARY.MD"
    scene.stranger(f"memory/{name}", raw)
    scene.vault.reindex()
    scene.gone()


def test_lifted_it_may_come_back(scene: Scene) -> None:
    remove(scene)
    assert scene.vault.call("session", "take-spool", "--sweep").code == 0
    assert scene.vault.call("remove", ID, "--undo").code == 0
    answer = scene.vault.call("import", "claude-code", str(scene.transcript), "--json")
    assert answer.code == 0 and len(answer.json["segments"]) == 1
    assert say(scene.vault, **scene.ending()).code == 0
    assert scene.vault.hits(CANARIES["transcript"]) and scene.vault.hits(CANARIES["tail"])


def test_another_session_of_the_same_harness_is_still_taken(scene: Scene) -> None:
    remove(scene)
    end(scene.vault, session_id=OTHER, session_key=OTHER, transcript=FIRST)
    assert scene.vault.hits("drain")
