"""A session full of words that stand nowhere else is removed: no byte that we write holds one, and nothing returns.

Whatever a sync, a backup, a harness or a late process brings back goes again. The scene is made once for the module,
stays where its state knows it, and is put back by copying: as it was before the removal, or after it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest
from agents import Inside, until
from invented_secrets import some
from session_inputs import FIRST, compact, document, end, refuse, say
from transcript_builder import claude
from workbench import NOW, Vault, holding, numbered

from signet_sync.app.workspace import open_to_write
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.capture.store import LiveMark, set_live_mark
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import parse, write
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
PLACES = ("transcript", "summary", "decision", "person", "sentence", "compaction", "tail", "printed", "live",
          "torn", "unfinished", "left", "manifest", "memory", "evidence")  # fmt: skip
CANARIES = {place: f"{chr(97 + number)}qz{place}canary" for number, place in enumerate(PLACES)}
# Who the session was: its id may stand in the tombstone and where harnesses keep it, and its beginning in a log.
PROJECT = "/home/ada/code/zqwprojectcanary"
WHO = {"session": ID, "project": PROJECT}


def line(place: str) -> str:
    """A line of text that is long enough to be known again, with characters that JSON writes in another way."""
    return f'The queue of "lantern" drains because the {CANARIES[place]} bounded every retry of the loop – naïvely.'


def sentence(place: str) -> str:
    return f"Bounded the retry loop of src/queue.py in lantern because {CANARIES[place]} said so, and the queue drains."


ENDING = {
    "session_id": ID, "session_key": ID, "project": PROJECT,
    "transcript": f"## User\n\n{line('tail')} password = {SECRET}\n\n"
    f"- `Read` · 2026-03-28T10:30:00.000Z · `queue.py`\n\n  {line('printed')}\n",
    "transcript_is": "tail",
    "summary": f"# Queue\n\n- {line('summary')}\n\n## Decisions\n\n- {line('decision')}\n\n## People\n\n"
    f"- {CANARIES['person'].title()}: keeps the queue\n",
    "memory_sentence": sentence("sentence"),
    "captured_at": "2026-03-28T11:00:00.000Z",
}  # fmt: skip


class Scene:
    """A vault in which the session has left traces wherever one can be left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vault = Vault(folder / "vault")
        self.home = Path(os.environ["HOME"])
        self.transcript = self.home / ".claude/projects/-home-ada-code" / f"{ID}.jsonl"
        self.foreign: dict[str, tuple[bytes, int]] = {}
        for step in (self.segments, self.damage, self.notes, self.copies, self.inputs, self.strangers):
            step()
        assert {word for _, word in self.leaks()} == {*CANARIES.values(), PROJECT}, "every place holds its word"
        named = {path for path, _ in self.leaks()}
        for place in ("/MEMORY.md", "/DREAMS.md", "/ledger/2026/03/28.md", "/entities/", ".user-", ".signet-2",
                      "signet-sync.db", ".corrupt-", "/native-"):  # fmt: skip
            assert any(place in path for path in named), place
        assert self.leaks(SECRET) == [], "secrets were redacted before anything was written"
        root = self.vault.root
        self.files = {path.name: path.read_bytes() for path in self.vault.memory.glob(f"*--{TOKEN}--*.md")
                      if " " not in path.name and ".sync" not in path.name}  # fmt: skip
        self.pages = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*.md")
            if path.parts[-2] != "memory" and any(word[3:].encode() in path.read_bytes() for word in CANARIES.values())
            if not any(part in path.name for part in (".user-", ".signet-")) and "notes" not in path.parts
        }
        self.keep("before")
        self.ask("remove", ID, "--reason", "asked for", "--yes")
        self.gone("by the command")
        self.keep("after")

    def ask(self, *words: str, code: int = 0) -> Any:
        now = () if words[0] in ("import", "session") else ("--now", NOW)
        answer = self.vault.call(*words, "--json", *now)
        assert answer.code == code, answer
        return answer.json

    # ── how it was left ──

    def segments(self) -> None:
        """Two segments (one out of the harness's transcript) and a compaction, projected and searched."""
        vault = self.vault
        # On first contact the original program's page is kept once, in its own wording.
        theirs = f"<!-- generated 2026-03-28 -->\n# Working Memory\n\n- {sentence('sentence')}\n"
        (vault / "MEMORY.md").write_text(theirs)
        for number in (2, 3):
            vault.session(number)
        vault.session(4, agent_id="scout")
        self.transcript.parent.mkdir(parents=True)
        self.transcript.write_text(claude(line("transcript"), f"{line('left')} The key is {SECRET}.", **WHO))
        found = self.ask("import", "claude-code", str(self.transcript))
        assert len(found["segments"]) == 1 and found["redactions"]
        end(vault, **ENDING)
        compact(vault, session_id=ID, session_key=ID, project=PROJECT, compaction=line("compaction") + SECRET,
                captured_at="2026-03-28T12:00:00.000Z", memory_sentence=sentence("sentence"))  # fmt: skip
        vault.reindex()

    def damage(self) -> None:
        """The database was damaged once and set aside, with all that it held."""
        with self.vault.db.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 400)
        Path(f"{self.vault.db}-wal").write_bytes(b"")
        self.vault.reindex()

    def notes(self) -> None:
        """What a person added: to a manifest, as a memory that rises, as evidence of an entity."""
        vault = self.vault
        for manifest in vault.memory.glob(f"*{TOKEN}--manifest.md"):
            manifest.write_bytes(manifest.read_bytes() + f"\nMy note: {line('manifest')}.\n".encode())
        self.ask("remember", f"Note that {line('memory')}", "--session", ID)
        word = CANARIES["memory"]
        for query in (word, f"{word} retry", f"how {word}", "every retry"):
            self.ask("recall", query)
        assert self.ask("dream")["promoted"]
        summary = next(vault.memory.glob(f"2026-03-28T11*{TOKEN}--summary.md")).name
        ada = self.ask("entity", "create", "user", "Ada")["id"]
        evidence = ("--text", line("evidence"), "--evidence", f"memory/{summary}#L3")
        self.ask("entity", "append", ada, "Evidence", *evidence)
        self.ask("entity", "append", ada, "Preferences", "--text", "Ada likes short answers about kilns.")
        vault.reindex()

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
        root, state, none = self.vault.root, self.vault.state, "0" * 32
        for stem in (root / f".signet/tmp/{DEAD}-{none}",
                     state / f"backups/native-20260328.db.{DEAD}", state / f"journal/{none}.json.{DEAD}",
                     state / f"spool/0.json.{'0' * 8}.{DEAD}"):  # fmt: skip
            stem.parent.mkdir(exist_ok=True)
            Path(f"{stem}.tmp").write_bytes(line("left").encode())

    def inputs(self) -> None:
        """Live turns, jobs, and an ending whose caller died while it asked its model."""
        state = self.vault.state
        database = Database(str(self.vault.db))
        with database.transaction():
            turn = live.LiveTurn(1, "user", line("live"), NOW)
            live.buffer(database, "default", ID, [turn])
            live.buffer(database, "default", "agent:main:main", [turn], session_id=ID)
            live.buffer(database, "default", "agent:main:main", [turn._replace(content="other")], session_id=OTHER)
        job = spool.put(str(state / "spool"), self.job("stop"))
        set_live_mark(database, os.path.basename(job.place), LiveMark("1 2", NOW, 3))
        database.close()
        spool.put(str(state / "spool"), self.job("compact"))
        (state / "spool/1.json").write_text(json.dumps({"session_id": ID, "text": line("torn")})[:-9])
        begun(self.vault, session_id=ID, session_key=ID, project=PROJECT, transcript=line("unfinished"))
        assert journal.keys(str(state / "journal"))

    def job(self, event: str, at: str = "2026-03-28T13:00:00.000Z") -> Job:
        return Job(event=event, harness="claude-code", session_id=ID, agent_id="default", at=at, cwd=PROJECT,
                   transcript_path=str(self.transcript))  # fmt: skip

    def strangers(self) -> None:
        """Files that are not ours and hold the text, each in another way."""
        self.stranger("memory/claude-code/transcripts/a.jsonl", claude(line("tail"), "yes", **WHO).encode())
        said = json.dumps({"t": line("summary")}, ensure_ascii=False)
        self.stranger("memory/codex/transcripts/raw.jsonl", said.encode())
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

    # ── put back ──

    def kept(self, name: str) -> Path:
        return self.folder.with_name(name)

    def keep(self, name: str) -> None:
        shutil.copytree(self.folder, self.kept(name), symlinks=True)

    def again(self, name: str) -> Scene:
        """As it was before or after the removal."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept(name), self.folder, symlinks=True)
        return self

    # ── what must hold ──

    def leaks(self, *words: str) -> list[tuple[str, str]]:
        """Places in all that we write (workspace, state, settings) that hold a word but for three letters."""
        strangers = {self.vault.root / path for path in self.foreign} | {self.folder / "input.json", self.transcript}
        needles = {word[3:].encode(): word for word in words or (*CANARIES.values(), SECRET, PROJECT)}
        held = holding(needles, self.folder)
        return [(str(path.relative_to(self.folder)), needles[found]) for found, path in held if path not in strangers]

    def gone(self, way: str) -> None:
        """Nothing of it anywhere, the tombstone stands, and the others are as they were."""
        assert self.leaks() == [], way
        assert self.leaks(str(self.transcript)) == [], "where it was captured from"
        found = self.vault.hits(*CANARIES.values()), [w for w in CANARIES.values() if self.vault.hits(w)]
        assert found == ([], []), way
        assert self.vault.hits("number2x") and self.vault.hits("number4x", agent="scout"), way
        left = [path.name for path in self.vault.memory.rglob(f"*{TOKEN}*")]
        assert left == [f"default--{TOKEN}.md"], (way, left)
        turns = self.vault.rows("select session_key, session_id from session_transcripts")
        assert turns in ([], [("agent:main:main", OTHER)]), "gone with its ids"
        places = {path: self.vault.root / path for path in self.foreign}
        moved = [p for p, at in places.items() if (at.read_bytes(), at.stat().st_mtime_ns) != self.foreign[p]]
        assert moved in ([], [str(self.transcript)]), "a way may write that one"

    def silent(self, way: str) -> None:
        """No command says a word of it."""
        asked = [["status"], ["status", "--json"], ["check"], ["violations", "list"], ["doctor"], ["context"],
                 ["render"], ["entity", "check"], ["recall", "every retry"], ["recall", "--words", "lantern"],
                 ["open", ID], ["expand", ID]]  # fmt: skip
        answers = [self.vault.call(*words) for words in asked]
        said = "".join(answer.out + answer.err for answer in answers).lower()
        assert [place for place, word in CANARIES.items() if word[3:] in said] == [], way


def begun(vault: Vault, **given: Any) -> None:
    """An ending whose caller died while it asked its model: its inputs are kept."""

    class Died(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise Died

    moment = time.time_ns() // 1000
    with open_to_write(str(vault.root), Settings()) as workspace, pytest.raises(Died):
        ending = session_input(document(**given, transcript_is="tail"), now_us=moment)
        sessions_operations.write(workspace, ending, now_us=moment, propose=die)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("scene") / "at"
    (folder / "home").mkdir(parents=True)
    named = {"HOME": "home", "SIGNET_STATE": "state", "SIGNET_CONFIG": "config.toml", "XDG_STATE_HOME": "home/state",
             "XDG_CONFIG_HOME": "home/config"}  # fmt: skip
    return {name: str(folder / place) for name, place in named.items()}


@pytest.fixture(scope="module")
def made_once(places: dict[str, str]) -> Iterator[Scene]:
    with pytest.MonkeyPatch.context() as machine:
        for name, place in places.items():
            machine.setenv(name, place)
        yield Scene(Path(places["HOME"]).parent)


@pytest.fixture
def scene(made_once: Scene, places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Scene:
    """As it was before the removal."""
    for name, place in places.items():
        monkeypatch.setenv(name, place)
    return made_once.again("before")


@pytest.fixture
def after(scene: Scene) -> Scene:
    """As it is after the removal."""
    return scene.again("after")


def remove(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = scene.ask("remove", ID, "--reason", "asked for", "--yes")["removals"][0]
    return found


def bury(scene: Scene) -> None:
    """The tombstone of another machine arrives."""
    scene.vault.put(made.tombstone(session_id=ID), "memory/tombstones")


# ── nothing is left ──


def test_removed_by_the_command(scene: Scene) -> None:
    document = remove(scene)
    scene.gone("by the command")
    assert document["foreign"] == sorted(scene.foreign) and document["pending"] == []
    scene.vault.reindex("--full")
    scene.gone("and a rebuild")
    scene.silent("removed")


def test_removed_by_a_tombstone_of_another_machine(scene: Scene) -> None:
    bury(scene)
    assert scene.vault.reindex()["counts"]["tombstoned"] >= 8
    scene.gone("by a tombstone")


def test_removed_by_a_tombstone_that_arrives_while_the_agent_runs(scene: Scene) -> None:
    with Inside(scene.vault) as agent:
        agent.wait("watching")
        agent.settled()
        scene.leftovers()
        bury(scene)
        until(lambda: scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(1,)], "the scrub")
        until(lambda: not scene.leaks(), "nothing left")
    scene.gone("beside an agent")
    assert ID not in "".join(path.read_text() for path in scene.vault.state.glob("logs/*"))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "how", ["command", *(pytest.param(how, marks=pytest.mark.slow) for how in ("tombstone", "command, then damage"))]
)
def test_a_reader_puts_off_the_end_of_it_and_the_next_pass_finishes(scene: Scene, how: str) -> None:
    with scene.vault.database() as reader:
        reader.execute("begin")
        reader.value("select count(*) from memory_artifacts")
        if how == "tombstone":
            bury(scene)
            scene.vault.reindex()
        else:
            remove(scene)
        assert scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(0,)]
        assert {Path(path).name for path, _ in scene.leaks()} <= {"signet-sync.db", "signet-sync.db-wal"}
        reader.execute("rollback")
    if how == "command, then damage":
        scene.damage()  # what is set aside meanwhile goes with it
    scene.vault.reindex()
    assert scene.vault.rows("select scrubbed from memory_artifact_tombstones") == [(1,)]
    scene.gone(how)


def test_what_was_sealed_in_packed_form_is_gone_to_the_last_piece(tmp_path: Path) -> None:
    """A seal holds the bytes of a file compressed: no search for words would find what is left of them."""
    vault = Vault(tmp_path / "vault").indexed(1, 2)
    sql = "select packed from seals where session_id = ?"
    removed, others = ([row[0] for row in vault.rows(sql, numbered(number)["session_id"])] for number in (1, 2))
    pieces = [packed[at : at + 24] for packed in removed for at in range(0, len(packed) - 24, 8)]
    mine = [piece for piece in pieces if not any(piece in packed for packed in others)]

    def held() -> int:
        files = [path.read_bytes() for path in vault.state.parent.rglob("*") if path.is_file()]
        return sum(any(piece in raw for raw in files) for piece in mine)

    assert held() == len(mine) > 50
    answer = vault.call("remove", numbered(1)["session_id"], "--reason", "asked for", "--yes", "--now", NOW)
    assert answer.code == 0 and held() == 0


# ── whose it is, and who takes it back ──


def test_under_a_name_that_is_not_ours_it_is_never_indexed_and_not_touched(after: Scene) -> None:
    """Somebody kept a copy for himself, or where names differ by case it is another file: told, and left."""
    raw = next(raw for name, raw in after.files.items() if name.endswith("summary.md"))
    names = ("memory/The retry loop.md", f"memory/2026-03-28T11-00-00.000Z--{TOKEN.upper()}--SUMMARY.MD")
    for name in names:
        after.stranger(name, raw)
    for how in ((), ("--full",)):
        assert after.vault.problems(after.vault.reindex(*how))[names[0]] == ("ignored", "foreign-name")
        after.gone("names of others")
    for name in names:
        del after.foreign[name]


def test_lifted_it_may_come_back_and_others_always_may(after: Scene) -> None:
    vault = after.vault
    end(vault, session_id=OTHER, session_key=OTHER, transcript=FIRST)
    assert vault.hits("drain")
    assert vault.call("session", "take-spool", "--sweep").code == 0
    assert vault.call("remove", ID, "--undo").code == 0
    assert len(after.ask("import", "claude-code", str(after.transcript))["segments"]) == 1
    assert say(vault, **ENDING).code == 0
    assert vault.hits(CANARIES["transcript"]) and vault.hits(CANARIES["tail"])


# ── ways in which a file may come back ──

Way = Callable[[str, bytes], tuple[str, bytes]]


def named(old: str, new: str) -> Way:
    return lambda name, raw: (name.replace(old, new), raw)


def bytes_of(change: Callable[[bytes], bytes]) -> Way:
    return lambda name, raw: (name, change(raw))


def edited(**fields: Any) -> Way:
    """Other frontmatter and another body, with the hash that fits it: a file as somebody would forge it."""

    def change(name: str, raw: bytes) -> tuple[str, bytes]:
        read = parse(raw)
        body = read.body.removesuffix("\n") + "\n\nAnd more.\n"
        told = {**read.fields, **fields}
        if "content_sha256" in told:
            told["content_sha256"] = text_sha256(normalize(body))
        return name, write({key: value for key, value in told.items() if value is not ...}, body.removesuffix("\n"))

    return change


# These leave the bytes and change the name: all of them can come at once.
NAMES: dict[str, Way] = {
    "its own name": named("", ""),
    "a second of its own name": named(".md", " 2.md"),
    "a numbered copy": named(".md", " (1).md"),
    "a conflicted copy": named(".md", " (Ada's conflicted copy 2026-03-29).md"),
    "a conflicted copy in NFC": named(".md", " (J\u00fcrgen's conflicted copy).md"),
    "a conflicted copy in NFD": named(".md", " (Ju\u0308rgen's conflicted copy).md"),
    "a copy of Syncthing": named(".md", ".sync-conflict-20260329-101010-ABCDEFG.md"),
    "a copy of a host": named(".md", "-HOST.md"),
    "a file that iCloud keeps elsewhere": lambda name, raw: (f".{name}.icloud", raw),
}
EDITS: dict[str, Way] = {
    "another stamp in its name": named("2026-03-28", "2026-03-24"),
    "another token in its name": named(TOKEN, "a" * 16),
    "another kind in its name": named("summary", "compaction"),
    "an edited body": edited(),
    "another project": edited(project="/home/ada/code/other"),
    "another session id under the token": edited(session_id="0" * 8),
    "no session id": edited(session_id=...),
    "no agent": edited(agent_id=...),
    "a key": edited(session_key="agent:main:main"),
    "one byte more": bytes_of(lambda raw: raw + b"x\n"),
    "half of it": bytes_of(lambda raw: raw[: len(raw) // 2]),
    "no frontmatter": bytes_of(lambda raw: raw.split(b"---\n", 2)[2]),
    "merge marks": bytes_of(lambda raw: b"<<<<<<< mine\n" + raw),
    "other line ends": bytes_of(lambda raw: raw.replace(b"\n", b"\r\n")),
    "a byte order mark": bytes_of(lambda raw: b"\xef\xbb\xbf" + raw),
    "no UTF-8": bytes_of(lambda raw: raw + b"\xff\xfe"),
    "nothing in it": bytes_of(lambda raw: b""),
}
RETURNS = NAMES | EDITS


def brought(scene: Scene, way: str, kind: str = "") -> None:
    """Puts the files of the session (of a kind) back in a way."""
    for name, raw in scene.files.items():
        if kind in name:
            scene.vault.put(RETURNS[way](name, raw))


# ── ways in which something else brings it back ──


def lose(scene: Scene, *patterns: str) -> None:
    for pattern in patterns:
        for path in [*scene.vault.state.glob(pattern)]:
            path.unlink()


def state_of_before(scene: Scene, *patterns: str) -> None:
    """State of before the removal stands in the place of ours."""
    lose(scene, *patterns)
    kept = scene.kept("before") / "state" / scene.vault.state.name
    for pattern in patterns:
        for path in kept.glob(pattern):
            shutil.copy2(path, scene.vault.state / path.relative_to(kept))


def stone(scene: Scene) -> Path:
    return scene.vault.memory / f"tombstones/default--{TOKEN}.md"


def databases_lost(scene: Scene) -> None:
    lose(scene, "*.db*", "backups/*")


def one_store_after_the_other(scene: Scene) -> None:
    stone(scene).unlink()
    scene.ask("reindex")
    databases_lost(scene)
    scene.ask("reindex")
    stone(scene).unlink()


def backup_of_before(scene: Scene) -> None:
    """A person brings the whole state folder back, and the database is made of its backup."""
    lose(scene, "*.db*")
    state_of_before(scene, "backups/*")


def whole_state_of_before(scene: Scene) -> None:
    shutil.rmtree(scene.vault.state)
    shutil.copytree(scene.kept("before") / "state" / scene.vault.state.name, scene.vault.state, symlinks=True)


def tree_of_before(scene: Scene) -> None:
    """As `git checkout OLD` does it: every file of then, and none that came since."""
    kept = scene.kept("before") / "vault"
    for name in ("memory", "ledger", "entities", "agents", "MEMORY.md", "DREAMS.md"):
        if (kept / name).is_file():
            shutil.copy2(kept / name, scene.vault.root / name)
            continue
        shutil.rmtree(scene.vault.root / name)
        shutil.copytree(kept / name, scene.vault.root / name)


def jobs_that_come_late(scene: Scene) -> None:
    for event in ("compact", "end", "stop"):
        spool.put(str(scene.vault.state / "spool"), scene.job(event))
    os.utime(scene.transcript, ns=(10**18, 10**18))
    assert scene.vault.call("session", "take-spool", "--sweep").code == 0


def read_again(scene: Scene) -> None:
    """The harness still has the transcript, and more has been said since."""
    scene.transcript.write_text(claude(*(line(place) for place in ("transcript", "live", "summary")), **WHO))
    assert scene.ask("import", "claude-code", str(scene.transcript), "--again")["segments"] == []


def said_again(scene: Scene) -> None:
    who = {"session_id": ID, "session_key": "agent:main:main", "project": PROJECT}
    refuse(scene.vault, "removed-session", **who, transcript=line("transcript"))
    refuse(scene.vault, "removed-session", kind="compact", **who, compaction=line("compaction"))
    turn = json.dumps({"turn": 3, "role": "user", "text": line("live"), "at": NOW}).encode()
    append = ("transcript", "append", "--session-key", "agent:main:main", "--session-id", ID)
    assert scene.vault.call(*append, given=turn).code == 2
    scene.ask("remember", f"Note that {line('memory')}.", "--session", ID, code=2)


def half_synced(scene: Scene) -> None:
    """Under the names that sync services and editors give it until it is whole it goes, too."""
    passing = (".syncthing.{}.tmp", "~syncthing~{}.tmp", ".~{}", ".{}.icloud", "{}.sb-1a2b3c4d-XyZabc", ".{}.~1a2b3c")
    for name, raw in scene.files.items():
        for number, form in enumerate(passing):
            scene.vault.put((form.format(name), raw if number != 1 else raw[: len(raw) // 2]))
        scene.vault.put((f".{name}.swp", b"b0VIM 9.0" + raw))
    for path, raw in scene.pages.items():
        folder, _, name = path.rpartition("/")
        if not path.startswith("entities/"):
            (scene.vault / folder / f".syncthing.{name}.tmp").write_bytes(raw)


# What is done; whether the files come back with it.
OTHERS: dict[str, tuple[Callable[[Scene], object], bool]] = {
    "database and backups are lost": (databases_lost, True),
    "the tombstone is lost": (lambda scene: stone(scene).unlink(), True),
    "the tombstone is torn": (lambda scene: stone(scene).write_bytes(b"<<<<<<< mine\n"), True),
    "one store after the other": (one_store_after_the_other, True),
    "the state folder is lost": (lambda scene: shutil.rmtree(scene.vault.state.rename(f"{scene.vault.state}~")), True),
    "a database of before": (lambda scene: state_of_before(scene, "*.db*"), True),
    "a backup of before": (backup_of_before, False),
    "a state of before": (whole_state_of_before, False),
    "a tree of before": (tree_of_before, False),
    "jobs that come late": (jobs_that_come_late, False),
    "half synced": (half_synced, False),
    "read again": (read_again, False),
    "said again": (said_again, False),
}


def happens(scene: Scene, way: str) -> None:
    act, files = OTHERS[way]
    act(scene)
    if files:
        brought(scene, "its own name")


# ── nothing returns ──


def test_whatever_is_brought_back_goes_again(after: Scene) -> None:
    for way in NAMES:
        brought(after, way)
    assert len(list(after.vault.memory.glob(f"*{TOKEN}*"))) > 6 * len(NAMES) - 10
    after.ask("reindex")
    after.gone("names")
    # What keeps its name comes one to a file: another edit for each.
    edits = [*EDITS]
    for first in range(0, len(edits), len(after.files)):
        for (name, raw), way in zip(sorted(after.files.items()), edits[first:], strict=False):
            after.vault.put(RETURNS[way](name, raw))
        after.ask("reindex")
        after.gone(f"edits from {edits[first]}")
    after.silent("files")
    brought(after, "a conflicted copy")
    after.ask("reindex", "--full")
    after.gone("a copy before a rebuild")


IN_EVERY_RUN = ("a state of before", "one store after the other")


@pytest.mark.parametrize(
    "way", [way if way in IN_EVERY_RUN else pytest.param(way, marks=pytest.mark.slow) for way in OTHERS]
)
def test_whatever_else_happens_brings_nothing_back(after: Scene, way: str) -> None:
    for how in [(), ("--full",)] if way not in IN_EVERY_RUN else [()]:
        happens(after.again("after"), way)
        after.ask("reindex", *how)
        after.gone(way)
    after.silent(way)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["its files", *OTHERS])
def test_beside_a_running_agent_nothing_comes_back(after: Scene, way: str) -> None:
    with Inside(after.vault) as agent:
        agent.wait("watching")
        if way == "its files":
            for name in RETURNS:
                brought(after, name)
        else:
            happens(after, way)
            agent.work.everything = True
            agent.work.watcher.wake()
        until(lambda: not after.leaks() and after.vault.hits("number2x"), way)
        agent.settled()
    after.gone(f"{way} beside an agent")


def test_no_commit_takes_what_came_back_a_moment_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass has looked yet: what is committed now would stand in the history for good."""
    pygit2 = pytest.importorskip("pygit2")
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    monkeypatch.setenv("SIGNET_HISTORY_TRANSCRIPTS", "true")
    vault = Vault(tmp_path / "vault")
    paths = vault.session(1)
    vault.session(2)
    raw = {path: (vault / path).read_bytes() for path in paths.values()}
    assert vault.call("reindex", "--now", NOW).code == 0
    assert vault.call("remove", numbered(1)["session_id"], "--reason", "asked for", "--yes", "--now", NOW).code == 0
    for path, data in raw.items():
        (vault / path).write_bytes(data)
    assert vault.call("checkpoint", "now", "--now", NOW).code == 0
    held = pygit2.Repository(str(vault.root)).odb
    objects = [held.read(oid)[1] for oid in held]
    assert any(b"number2x" in data for data in objects) and not any(b"number1x" in data for data in objects)
