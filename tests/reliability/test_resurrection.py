"""A session was removed: whatever a sync, a backup, a harness or a late process brings back, nothing of it returns."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from agents import Inside, until
from session_inputs import compact, document, end, refuse
from transcript_builder import claude
from workbench import NOW, Vault, holding, numbered

from signet_sync.app.workspace import opened
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.frontmatter import parse, write
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings

ID = "ca4a1e00-0000-4000-8000-00000000000a"
TOKEN = made.token_for(session_id=ID)
PROJECT = "/home/ada/code/zqwprojectcanary"
WHO = {"session": ID, "project": PROJECT, "day": "2026-03-25"}
# One word for each place that text may come from. Full text keeps only what a word does not share with the one before
# it in order: each begins unlike the others, and the first letters are not looked for.
PLACES = ("summary", "decision", "transcript", "sentence", "compaction", "person", "memory", "asked", "live",
          "manifest", "evidence")  # fmt: skip
WORDS = {place: f"{chr(97 + number)}qz{place}canary" for number, place in enumerate(PLACES)}
NEEDLES = {place: word[3:].encode() for place, word in WORDS.items()} | {"project": b"projectcanary"}
# Its id stands in the tombstone's own file names and where harnesses keep it; its words may stand nowhere.


def said(place: str) -> str:
    return f"the {WORDS[place]} bounds every retry of the queue in lantern"


class Scene:
    """A vault of three sessions of which one was removed: as it was before, as it is after."""

    def __init__(self, root: Path) -> None:
        self.vault = Vault(root)
        self.home = Path(os.environ["HOME"])
        self.transcript = self.home / f".claude/projects/-home-ada/{ID}.jsonl"
        self.fill()
        self.before = root.parent / "before"
        self.keep(self.before)
        held = {place for _, place in self.leaks()}
        assert held == {*NEEDLES}, {*NEEDLES} - held
        self.files = {path.name: path.read_bytes() for path in self.vault.memory.glob(f"*{TOKEN}*.md")}
        self.pages = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*.md")
            if path.parent != self.vault.memory and any(needle in path.read_bytes() for needle in NEEDLES.values())
        }
        self.ask("remove", ID, "--reason", "asked for", "--yes")
        assert self.leaks() == []
        self.after = root.parent / "after"
        self.keep(self.after)

    def fill(self) -> None:
        vault = self.vault
        vault.session(2)
        vault.session(4, agent_id="scout")
        self.transcript.parent.mkdir(parents=True)
        self.transcript.write_text(claude(said("transcript"), said("decision"), **WHO))
        self.ask("import", "claude-code", str(self.transcript), "--again")
        who = {"session_id": ID, "session_key": ID, "project": PROJECT, "harness": "claude-code"}
        end(
            vault,
            **who,
            captured_at="2026-03-25T11:00:00.000Z",
            transcript=f"## User\n\n{said('transcript')} again.\n",
            transcript_is="tail",
            summary=f"# Queue\n\n- {said('summary')}\n\n## Decisions\n\n- {said('decision')}\n\n## People\n\n"
            f"- {WORDS['person'].title()}: keeps the queue\n",
            memory_sentence=f"Bounded the retry loop of src/queue.py in lantern as {said('sentence')} and it drains.",
        )
        compact(vault, **who, compaction=said("compaction"), captured_at="2026-03-25T12:00:00.000Z")
        self.ask("reindex")
        for manifest in vault.memory.glob(f"*{TOKEN}--manifest.md"):
            manifest.write_bytes(manifest.read_bytes() + f"\nMy note: {said('manifest')}.\n".encode())
        self.ask("remember", f"Note that {said('memory')}.", "--session", ID)
        for query in (
            WORDS["memory"],
            f"{WORDS['memory']} retry",
            f"{WORDS['asked']} {WORDS['memory']}",
            "every retry",
        ):
            self.ask("recall", query)
        assert self.ask("dream")["promoted"]
        assert self.streams(ID) == 0
        self.entity()
        self.ask("reindex")

    def streams(self, key: str, *more: str, turn: int = 0) -> int:
        """The exit code of what appends a live turn."""
        line = json.dumps({"turn": turn, "role": "user", "text": said("live"), "at": NOW}).encode()
        return self.vault.call("transcript", "append", "--session-key", key, *more, given=line).code

    def entity(self) -> None:
        """An entity whose evidence is the session's, and one of its own."""
        summary = sorted(self.vault.memory.glob(f"2026-03-25T11*{TOKEN}--summary.md"))[0]
        told = self.ask("entity", "create", "user", "Ada")
        self.ask("entity", "append", told["id"], "Evidence", "--text", said("evidence"),
                 "--evidence", f"memory/{summary.name}#L3")  # fmt: skip
        self.ask("entity", "append", told["id"], "Preferences", "--text", "Ada likes short answers about kilns.")

    def ask(self, *arguments: str) -> Any:
        answer = self.vault.call(*arguments, "--json", "--now", NOW) if arguments[0] != "import" else self.vault.call(
            *arguments, "--json"
        )  # fmt: skip
        assert answer.code == 0, answer
        return answer.json

    # ── one attempt after the other ──

    def places(self) -> Iterable[tuple[str, Path]]:
        return ("vault", self.vault.root), ("state", Path(os.environ["SIGNET_STATE"])), ("home", self.home)

    def keep(self, folder: Path) -> None:
        for name, place in self.places():
            shutil.copytree(place, folder / name, symlinks=True)

    def again(self) -> None:
        """As it was right after the removal."""
        for name, place in self.places():
            shutil.rmtree(place)
            shutil.copytree(self.after / name, place, symlinks=True)

    def put(self, name: str, raw: bytes) -> None:
        self.vault.put((name, raw))

    def leaks(self) -> list[tuple[str, str]]:
        """Files of workspace and state that hold a word of the session, whatever its case."""
        places = {needle: place for place, needle in NEEDLES.items()}
        held = holding(places, self.vault.root, Path(os.environ["SIGNET_STATE"]))
        return [(path.name, places[needle]) for needle, path in held]

    def answers(self) -> str:
        """All that commands say of the vault."""
        asked = [["status"], ["status", "--json"], ["check"], ["violations", "list"],
                 ["doctor"], ["context"], ["render"], ["entity", "check"],
                 ["recall", "every retry"], ["recall", "--words", "lantern"], ["open", ID], ["expand", ID]]  # fmt: skip
        said = [self.vault.call(*words) for words in asked]
        return "".join(answer.out + answer.err for answer in said).lower()


# ── ways in which a file may come back ──


def same(name: str, raw: bytes) -> tuple[str, bytes]:
    return name, raw


def named(change: Callable[[str], str]) -> Callable[[str, bytes], tuple[str, bytes]]:
    return lambda name, raw: (change(name), raw)


def edited(**fields: Any) -> Callable[[str, bytes], tuple[str, bytes]]:
    """Other frontmatter and another body, with the hash that fits it: a file as somebody would forge it."""

    def change(name: str, raw: bytes) -> tuple[str, bytes]:
        read = parse(raw)
        body = read.body.removesuffix("\n") + "\n\nAnd more.\n"
        told = {**read.fields, **fields}
        if "content_sha256" in told:
            told["content_sha256"] = body_sha256(normalize(body))
        return name, write({key: value for key, value in told.items() if value is not ...}, body.removesuffix("\n"))

    return change


def bytes_of(change: Callable[[bytes], bytes]) -> Callable[[str, bytes], tuple[str, bytes]]:
    return lambda name, raw: (name, change(raw))


RETURNS: dict[str, Callable[[str, bytes], tuple[str, bytes]]] = {
    "its own name": same,
    "a second of its own name": named(lambda name: name.replace(".md", " 2.md")),
    "a numbered copy": named(lambda name: name.replace(".md", " (1).md")),
    "a conflicted copy": named(lambda name: name.replace(".md", " (Ada's conflicted copy 2026-03-29).md")),
    "a conflicted copy in NFC": named(lambda name: name.replace(".md", " (J\u00fcrgen's conflicted copy).md")),
    "a conflicted copy in NFD": named(lambda name: name.replace(".md", " (Ju\u0308rgen's conflicted copy).md")),
    "a copy of Syncthing": named(lambda name: name.replace(".md", ".sync-conflict-20260329-101010-ABCDEFG.md")),
    "a copy of a host": named(lambda name: name.replace(".md", "-HOST.md")),
    "a file that iCloud keeps elsewhere": named(lambda name: f".{name}.icloud"),
    "another stamp in its name": named(lambda name: name.replace("2026-03-25", "2026-03-24")),
    "another token in its name": named(lambda name: name.replace(TOKEN, "a" * 16)),
    "another kind in its name": named(lambda name: name.replace("summary", "compaction")),
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


def brought(scene: Scene, way: str, kind: str = "") -> None:
    """Puts the files of the session (of a kind) back in a way."""
    for name, raw in scene.files.items():
        if kind in name:
            scene.put(*RETURNS[way](name, raw))


# Those that leave the bytes and change the name: all of them can come at once.
NAMES = [
    way for way in RETURNS if way.startswith(("its own", "a second", "a numbered", "a conflicted", "a copy", "a file"))
]


# ── ways in which something else brings it back ──


def old_databases(scene: Scene, *patterns: str) -> None:
    """State of before the removal stands in the place of ours."""
    state = scene.vault.state
    for pattern in patterns:
        for path in [*state.glob(pattern)]:
            path.unlink()
        kept = scene.before / "state" / state.name
        for path in kept.glob(pattern):
            shutil.copy2(path, state / path.relative_to(kept))


def lose(scene: Scene, *patterns: str) -> None:
    for pattern in patterns:
        for path in scene.vault.state.glob(pattern):
            path.unlink()


def stone(scene: Scene) -> Path:
    return scene.vault.memory / f"tombstones/default--{TOKEN}.md"


def database_lost(scene: Scene) -> None:
    lose(scene, "*.db*")
    brought(scene, "its own name")


def database_and_backups_lost(scene: Scene) -> None:
    lose(scene, "*.db*", "backups/*")
    brought(scene, "its own name")


def tombstone_lost(scene: Scene) -> None:
    stone(scene).unlink()
    brought(scene, "its own name")


def tombstone_torn(scene: Scene) -> None:
    stone(scene).write_bytes(b"<<<<<<< mine\n")
    brought(scene, "its own name")


def one_store_after_the_other(scene: Scene) -> None:
    stone(scene).unlink()
    scene.ask("reindex")
    lose(scene, "*.db*", "backups/*")
    scene.ask("reindex")
    stone(scene).unlink()
    brought(scene, "its own name")


def state_folder_lost(scene: Scene) -> None:
    shutil.rmtree(scene.vault.state)
    brought(scene, "its own name")


def a_database_of_before(scene: Scene) -> None:
    old_databases(scene, "*.db*")
    brought(scene, "its own name")


def a_backup_of_before(scene: Scene) -> None:
    """A person brings the whole state folder back, and the database is made of its backup."""
    lose(scene, "*.db*")
    old_databases(scene, "backups/*")


def a_state_of_before(scene: Scene) -> None:
    shutil.rmtree(scene.vault.state)
    shutil.copytree(scene.before / "state" / scene.vault.state.name, scene.vault.state, symlinks=True)


def a_tree_of_before(scene: Scene) -> None:
    """As `git checkout OLD` does it: every file of then, and none that came since."""
    kept = scene.before / "vault"
    for folder in ("memory", "ledger", "entities", "agents"):
        shutil.rmtree(scene.vault.root / folder)
        shutil.copytree(kept / folder, scene.vault.root / folder)
    for name in ("MEMORY.md", "DREAMS.md"):
        shutil.copy2(kept / name, scene.vault.root / name)


def pages_of_before(scene: Scene) -> None:
    """A sync service brings the pages that another machine wrote before it knew."""
    for path, raw in scene.pages.items():
        place = scene.vault / path
        if path.partition("/")[0] in ("MEMORY.md", "DREAMS.md", "ledger"):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(raw)


def entities_of_before(scene: Scene) -> None:
    shutil.rmtree(scene.vault.root / "entities")
    shutil.copytree(scene.before / "vault/entities", scene.vault.root / "entities")


def jobs_that_come_late(scene: Scene) -> None:
    folder = str(scene.vault.state / "spool")
    for event in ("compact", "end", "stop"):
        spool.put(
            folder,
            Job(event=event, harness="claude-code", session_id=ID, agent_id="default", at="2026-03-28T13:00:00.000Z",
                transcript_path=str(scene.transcript), cwd=PROJECT,
                compaction=said("compaction") if event == "compact" else None),
        )  # fmt: skip
    os.utime(scene.transcript, ns=(10**18, 10**18))
    assert scene.vault.call("session", "take-spool", "--sweep").code == 0


def read_again(scene: Scene) -> None:
    """The harness still has the transcript, and more has been said since."""
    scene.transcript.write_text(claude(*(said(place) for place in ("transcript", "live", "summary")), **WHO))
    answer = scene.vault.call("import", "claude-code", str(scene.transcript), "--again", "--json")
    assert answer.json["segments"] == []


def said_again(scene: Scene) -> None:
    who = {"session_id": ID, "session_key": "agent:main:main", "project": PROJECT}
    refuse(scene.vault, "removed-session", **who, transcript=said("transcript"))
    refuse(scene.vault, "removed-session", kind="compact", **who, compaction=said("compaction"))
    assert scene.streams("agent:main:main", "--session-id", ID, turn=3) == 2


def remembered_again(scene: Scene) -> None:
    answer = scene.vault.call("remember", f"Note that {said('memory')}.", "--session", ID, "--json")
    assert answer.code == 2, answer


def a_journal_that_comes_late(scene: Scene) -> None:
    """The inputs of an ending that nobody finished, as a state folder of another time holds them."""
    other = {"session_id": "zz", "session_key": "zz", "transcript": said("transcript"), "transcript_is": "tail"}
    moment = time.time_ns() // 1000

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    # In another vault: an agent that runs here would finish it under its first name.
    elsewhere = Vault(scene.before / "elsewhere")
    with opened(str(elsewhere.root), Settings()) as workspace, pytest.raises(KeyboardInterrupt):
        given = session_input(document(**other), now_us=moment)
        sessions_operations.end(workspace, given, now_us=moment, propose=die)  # type: ignore[arg-type]
    token = made.token_for(session_id="zz")
    [path] = (elsewhere.state / "journal").glob("*.json")
    raw = path.read_text().replace('"zz"', f'"{ID}"').replace(token, TOKEN)
    shutil.rmtree(elsewhere.root)
    path.unlink()
    folder = scene.vault.state / "journal"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / path.name).write_text(raw)


def half_synced(scene: Scene) -> None:
    """Under the names that sync services and editors give it until it is whole it goes, too."""
    passing = (".syncthing.{}.tmp", "~syncthing~{}.tmp", ".~{}", ".{}.icloud", "{}.sb-1a2b3c4d-XyZabc", ".{}.~1a2b3c")
    for name, raw in scene.files.items():
        for number, form in enumerate(passing):
            scene.put(form.format(name), raw if number != 1 else raw[: len(raw) // 2])
        scene.put(f".{name}.swp", b"b0VIM 9.0" + raw)
    for path, raw in scene.pages.items():
        folder, _, name = path.rpartition("/")
        if not path.startswith("entities/"):
            (scene.vault / folder / f".syncthing.{name}.tmp").write_bytes(raw)


OTHERS: dict[str, Callable[[Scene], None]] = {
    way.__name__.replace("_", " "): way
    for way in (
        database_lost,
        database_and_backups_lost,
        tombstone_lost,
        tombstone_torn,
        one_store_after_the_other,
        state_folder_lost,
        a_database_of_before,
        a_backup_of_before,
        a_state_of_before,
        a_tree_of_before,
        pages_of_before,
        entities_of_before,
        jobs_that_come_late,
        a_journal_that_comes_late,
        half_synced,
        read_again,
        said_again,
        remembered_again,
    )
}


# ── nothing returns ──


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "vault")


def gone(scene: Scene, way: str) -> None:
    """Not a byte of it, wherever we write; the tombstone stands, and who was not removed is still found."""
    assert scene.leaks() == [], way
    left = [path.name for path in scene.vault.memory.rglob(f"*{TOKEN}*")]
    assert left == [f"default--{TOKEN}.md"], (way, left)
    assert scene.vault.hits("number2x") and scene.vault.hits("number4x", agent="scout"), way
    assert scene.vault.hits(WORDS["decision"]) == [], way


def silent(scene: Scene, way: str) -> None:
    """No command says a word of it."""
    said = scene.answers()
    assert [place for place, needle in NEEDLES.items() if needle.decode() in said] == [], way


def test_whatever_is_brought_back_goes_again(scene: Scene) -> None:
    for way in RETURNS:
        brought(scene, way) if way in NAMES else None
    assert len(list(scene.vault.memory.glob(f"*{TOKEN}*"))) > 6 * len(NAMES) - 10
    scene.ask("reindex")
    gone(scene, "names")
    # What keeps its name comes one to a file: another edit for each.
    edits = [way for way in RETURNS if way not in NAMES]
    for first in range(0, len(edits), len(scene.files)):
        for (name, raw), way in zip(sorted(scene.files.items()), edits[first:], strict=False):
            scene.put(*RETURNS[way](name, raw))
        scene.ask("reindex")
        gone(scene, f"edits from {edits[first]}")
    silent(scene, "files")
    brought(scene, "a conflicted copy")
    scene.ask("reindex", "--full")
    gone(scene, "a copy before a rebuild")
    for way in (
        "entities of before",
        "a state of before",
        "one store after the other",
        "half synced",
        "a journal that comes late",
    ):
        scene.again()
        OTHERS[way](scene)
        scene.ask("reindex")
        gone(scene, way)


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


def test_under_a_name_that_a_person_gave_it_it_is_never_indexed_and_not_touched(tmp_path: Path) -> None:
    """Somebody kept a copy for himself: it is his, and told as a file that is not ours."""
    vault = Vault(tmp_path / "vault")
    paths = vault.session(1)
    vault.session(2)
    vault.reindex()
    raw = (vault / paths["summary"]).read_bytes()
    vault.call("remove", numbered(1)["session_id"], "--reason", "asked for", "--yes", "--now", NOW)
    kept = vault.memory / "The retry loop.md"
    kept.write_bytes(raw)
    for how in ((), ("--full",)):
        document = vault.reindex(*how)
        assert vault.problems(document) == {"memory/The retry loop.md": ("ignored", "foreign-name")}
        assert vault.hits("number1x") == [] and "number 1" not in vault.page() and kept.read_bytes() == raw


def test_pages_that_another_machine_writes_beside_a_running_agent_go_again(scene: Scene) -> None:
    """An agent leaves the page of another machine's agent alone; not one that tells of what was removed."""
    with Inside(scene.vault) as agent:
        agent.wait("watching")
        agent.settled()
        pages_of_before(scene)
        until(lambda: not [told for told in scene.leaks() if told[0] in ("MEMORY.md", "DREAMS.md")], "the pages")
        agent.work.everything = True
        agent.work.watcher.wake()
        until(lambda: not scene.leaks(), "all of it")
        agent.settled()
    gone(scene, "pages beside an agent")


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


@pytest.mark.slow
def test_two_hundred_attempts_bring_nothing_back(scene: Scene) -> None:
    attempts = 0

    def tried(way: str, act: Callable[[], None], finish: Callable[[], None]) -> None:
        nonlocal attempts
        scene.again()
        act()
        finish()
        gone(scene, way)
        attempts += 1
        if attempts % 10 == 0:
            silent(scene, way)

    def passed() -> None:
        scene.ask("reindex")

    def rebuilt() -> None:
        scene.ask("reindex", "--full")

    for way in RETURNS:
        for kind in ("summary", "transcript", "compaction", "manifest", ""):
            tried(f"{way} {kind}", lambda way=way, kind=kind: brought(scene, way, kind), passed)  # type: ignore[misc]
        tried(way, lambda way=way: brought(scene, way), rebuilt)  # type: ignore[misc]
    for way, act in OTHERS.items():
        tried(way, lambda act=act: act(scene), passed)  # type: ignore[misc]
        tried(way, lambda act=act: act(scene), rebuilt)  # type: ignore[misc]
    scene.again()
    with Inside(scene.vault) as agent:
        agent.wait("watching")
        for way in RETURNS:
            brought(scene, way)
            until(lambda: not list(scene.vault.memory.glob(f"*{TOKEN}*")), way)
            until(lambda: not scene.leaks(), way)
            attempts += 1
    for way, act in OTHERS.items():
        scene.again()
        with Inside(scene.vault) as agent:
            agent.wait("watching")
            act(scene)
            agent.work.everything = True
            agent.work.watcher.wake()
            until(lambda: not scene.leaks() and scene.vault.hits("number2x"), way)
            agent.settled()
        gone(scene, f"{way} beside an agent")
        attempts += 1
