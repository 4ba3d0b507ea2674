"""A vault in use, for the soak: what agents, people and synchronising programs do to it, and what must be true after.

Every text that is written holds a word of its own, so that the word of something removed can be looked for in every
byte. What is done is chosen by a seeded generator; the books say at any time what the vault must hold.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks import corpus
from signet_sync.cli import main
from signet_sync.errors import SignetSyncError
from signet_sync.storage import locations
from signet_sync.storage.database.connection import Database

AGENTS = ("default", "builder")
WORD = re.compile(rb"quill[0-9]+z[0-9a-f]{8}")
BEGIN = "<!-- signet:begin -->"
# A person keeps so many lines of his own on a page; older ones he deletes.
LINES = 60


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


def call(root: str, *arguments: str) -> Answer:
    """Runs a command line on a workspace, in this process: a process of its own costs twenty times as much."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    held = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        code = main.run(["--workspace", root, *arguments])
    finally:
        sys.stdout, sys.stderr = held
    return Answer(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


@dataclass(slots=True)
class Kept:
    """A session of the vault. `sealed` are the bytes that each immutable file was written with, by path."""

    agent_id: str
    session_id: str
    session_key: str | None
    token: str
    word: str
    sealed: dict[str, bytes]


@dataclass
class Books:
    """What must be true of the vault: written down as things are done."""

    sessions: list[Kept] = field(default_factory=list)
    bytes: dict[str, bytes] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    memories: dict[str, tuple[str, str]] = field(default_factory=dict)
    entities: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    unsure: list[tuple[str, str]] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Vault:
    """One workspace in use. `step` does something; what went otherwise than it must is told in `books.wrong`."""

    def __init__(self, root: str, ground: str, seed: int) -> None:
        self.root = root
        self.ground = ground
        self.chance = random.Random(seed)
        self.books = Books()
        self.texts = corpus.Corpus(agents=1, seed=seed + 7919)  # not the sessions that stand there already
        self.number = 0
        self.weights: dict[Callable[[], None], float] = {
            self.ends: 9, self.compacts: 3, self.arrives: 6, self.saves_again: 8, self.edits: 4, self.deletes: 3,
            self.renames: 3, self.puts_back: 5, self.restores: 1, self.copies: 4, self.writes_in_memory_md: 9,
            self.searches: 14, self.recalls: 10, self.remembers: 5, self.forgets: 1.5, self.removes: 3,
            self.brings_back: 2, self.tends_an_entity: 5, self.is_killed_while_ending: 1, self.scribbles: 4,
        }  # fmt: skip

    def found(self, sessions: Sequence[corpus.Session]) -> None:
        """Sessions that stand there from the beginning; they have no word of their own but their token."""
        for session in sessions:
            paths = [path for kind, path in session["paths"].items() if kind != "manifest"]
            sealed = {path: self._read(path) for path in paths}
            self.books.bytes.update(sealed)
            who = session["agent_id"], session["session_id"], session["session_key"], session["token"]
            self.books.sessions.append(Kept(*who, session["token"], sealed))

    def calm(self) -> None:
        """From now on the vault does not grow: no session, memory or entity is made or removed."""
        growing = (
            self.ends, self.compacts, self.arrives, self.is_killed_while_ending, self.remembers, self.forgets,
            self.removes, self.brings_back, self.tends_an_entity,
        )  # fmt: skip
        self.weights = {act: weight for act, weight in self.weights.items() if act not in growing}
        self.is_calm = True

    def step(self) -> None:
        """Does one thing."""
        (act,) = self.chance.choices(list(self.weights), list(self.weights.values()))
        self.count(act.__name__)
        act()

    def count(self, name: str) -> None:
        done = self.books.done
        done[name] = done.get(name, 0) + 1

    def asks(self, *arguments: str, codes: Sequence[int] = (0,)) -> Any:
        """A command that must end with one of these codes; its document."""
        answer = call(self.root, *arguments)
        if answer.code not in codes:
            self.books.wrong.append(f"{' '.join(arguments[:3])} ended with {answer.code}: {answer.out[-200:]!r}"[:600])
        try:
            return json.loads(answer.out) if answer.out.startswith("{") else {}
        except ValueError:
            return {}

    def word(self) -> str:
        """A word that stands nowhere else."""
        self.number += 1
        return f"quill{self.number}z{self.chance.getrandbits(32):08x}"

    def path(self, path: str) -> str:
        return os.path.join(self.root, path)

    def agent(self) -> str:
        return self.chance.choice(AGENTS)

    # ── sessions ──

    def ends(self) -> None:
        """A harness's session ends; now and then an older one goes on and ends again."""
        word = self.word()
        document = self._ending(word)
        answer = self._says("end", document)
        if "summary" in answer:
            self._keep(document, answer, word)

    def _ending(self, word: str) -> dict[str, Any]:
        who = self.chance.getrandbits(64)
        turns = "\n\n".join(f"## User\n\nStep {n}, about {word}, in src/queue.py?\n\nDone." for n in range(6))
        return {
            "agent_id": self.agent(),
            "session_id": f"{who:016x}",
            "project": f"/home/rowan/src/{self.chance.choice(('harbor', 'lantern', 'orchard'))}",
            "harness": "claude-code",
            "transcript": f"# Queue of {word}\n\n{turns}\n",
        }

    def _says(self, kind: str, document: dict[str, Any], codes: Sequence[int] = (0,)) -> Any:
        place = os.path.join(self.ground, "input.json")
        with open(place, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return self.asks("session", kind, "--json", "--input", place, codes=codes)

    def _keep(self, document: dict[str, Any], answer: dict[str, Any], word: str) -> None:
        sealed = {path: self._read(path) for path in (answer["summary"], answer["transcript"]) if path}
        kept = Kept(answer["agent_id"], document["session_id"], None, answer["session_token"], word, sealed)
        self.books.sessions.append(kept)
        self.books.bytes.update(sealed)

    def compacts(self) -> None:
        """A harness compacts the context of a session that is known."""
        if (kept := self._some()) is None:
            return
        body = f"# Kept\n\n- lantern bounds the loop of src/queue.py, says {kept.word}.\n"
        who = {"agent_id": kept.agent_id, "session_id": kept.session_id, "session_key": kept.session_key}
        self._says("compact", who | {"compaction": body})
        self._adopt(kept)

    def arrives(self) -> None:
        """A synchronising program brings a session from another machine, each file under another name first."""
        self.arrive(self.number)

    def arrive(self, number: int) -> None:
        word = self.word()
        now_ms = int(time.time() * 1000)
        made, files = self.texts.compose(
            number, ended_ms=now_ms - 60_000, slack_ms=30_000, agent_id=self.agent(), word=word
        )
        for path, text in files.items():
            temporary = self.path(f"memory/.syncthing.{os.path.basename(path)}.tmp")
            with open(temporary, "wb") as file:
                file.write(text.encode())
            os.replace(temporary, self.path(path))
        sealed = {path: text.encode() for path, text in files.items() if not path.endswith("--manifest.md")}
        kept = Kept(made["agent_id"], made["session_id"], made["session_key"], made["token"], word, sealed)
        self.books.sessions.append(kept)
        self.books.bytes.update(sealed)

    def is_killed_while_ending(self) -> None:
        """A session's end is written by a process that is killed: there will be all of the session, or nothing."""
        document = self._ending(self.word())
        place = os.path.join(self.ground, "killed.json")
        with open(place, "w", encoding="utf-8") as file:
            json.dump(document, file)
        command = (sys.executable, "-m", "signet_sync", "--workspace", self.root, "session", "end", "--input", place)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0.1, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.books.unsure.append((document["agent_id"], document["session_id"]))

    def _some(self, *, whole: bool = True) -> Kept | None:
        """A session whose files are all as they were sealed, and sealed already."""
        for _ in range(20):
            if not self.books.sessions:
                return None
            kept = self.chance.choice(self.books.sessions)
            if not (whole and any(path in self.books.broken or path in self.books.moved for path in kept.sealed)):
                return kept if self.is_sealed(kept) else None
        return None

    def is_sealed(self, kept: Kept) -> bool:
        """Whether the index has seen all files of a session: what is changed before that is no violation."""
        folder = locations.locate(self.root)
        try:
            database = Database(folder.database, readonly=True)
        except (OSError, SignetSyncError):
            return False
        try:
            marks = ", ".join("?" * len(kept.sealed))
            found = database.value(f"select count(*) from seals where path in ({marks})", tuple(kept.sealed))
            return bool(found == len(kept.sealed))
        finally:
            database.connection.close()

    def _adopt(self, kept: Kept) -> None:
        """Takes files of a session into the books that a command has written since."""
        for name in sorted(os.listdir(self.path("memory"))):
            path = f"memory/{name}"
            immutable = name.endswith(("--summary.md", "--transcript.md", "--compaction.md"))
            if immutable and f"--{kept.token}--" in name and path not in kept.sealed:
                kept.sealed[path] = self.books.bytes[path] = self._read(path)

    def _read(self, path: str) -> bytes:
        with open(self.path(path), "rb") as file:
            return file.read()

    # ── people and their editors ──

    def saves_again(self) -> None:
        """An editor writes the properties of an artifact anew: in another order, with other quotes."""
        if (kept := self._some()) is None:
            return
        path = self.chance.choice(list(kept.sealed))
        head, body = self.books.bytes[path].decode().removeprefix("---\n").split("\n---\n", 1)
        lines = [line.replace(": null", ":") for line in head.split("\n")]
        self.chance.shuffle(lines)
        raw = ("---\n" + "\n".join(lines) + "\n---\n" + body).encode()
        self.books.bytes[path] = raw
        self._save(path, raw)

    def edits(self) -> None:
        """A person writes into an artifact, which is a violation until it is restored."""
        if (kept := self._some()) is not None:
            path = self.chance.choice(list(kept.sealed))
            self._break(kept, path)
            self._save(path, self.books.bytes[path] + b"\nWhat I thought of later.\n")

    def deletes(self) -> None:
        """A person deletes an artifact; its seal can bring it back."""
        if (kept := self._some()) is not None:
            path = self.chance.choice(list(kept.sealed))
            self._break(kept, path)
            os.unlink(self.path(path))

    def _break(self, kept: Kept, path: str) -> None:
        self.books.broken.add(path)
        self.books.bytes[path] = kept.sealed[path]

    def renames(self) -> None:
        """A person gives an artifact another name."""
        if (kept := self._some()) is not None:
            path = self.chance.choice(list(kept.sealed))
            self.books.moved[path] = f"memory/renamed {self.word()}.md"
            os.rename(self.path(path), self.path(self.books.moved[path]))

    def puts_back(self) -> None:
        """What was renamed gets its name back."""
        for path, elsewhere in list(self.books.moved.items())[:1]:
            os.rename(self.path(elsewhere), self.path(path))
            del self.books.moved[path]

    def restores(self) -> None:
        """Sealed bytes are written back where a file was edited or deleted, and the index has noticed."""
        for path in sorted(self.books.broken)[:1]:
            self.asks("violations", "restore", path, "--yes", "--json", codes=(0, 2))

    def copies(self) -> None:
        """A synchronising program leaves a conflict copy, or a person deletes one."""
        copies = [name for name in os.listdir(self.path("memory")) if ".sync-conflict-" in name]
        if len(copies) > 10:
            with suppress(FileNotFoundError):
                os.unlink(self.path(f"memory/{copies[0]}"))
        elif (kept := self._some()) is not None:
            path = self.chance.choice(list(kept.sealed))
            copy = path.removesuffix(".md") + f".sync-conflict-20260101-{self.number:06d}-ABCDEFG.md"
            shutil.copyfile(self.path(path), self.path(copy))

    def scribbles(self) -> None:
        """Notes and other programs' files come, change and go in memory/."""
        note = self.path(f"memory/note {self.number % 20}.md")
        with open(note, "a", encoding="utf-8") as file:
            file.write("Not an artifact.\n")
        if self.chance.random() < 0.3:
            os.unlink(note)

    def writes_in_memory_md(self) -> None:
        """A person's editor writes MEMORY.md: in place, or beside and renamed; it holds all of his lines."""
        agent = self.agent()
        page = "MEMORY.md" if agent == "default" else f"agents/{agent}/MEMORY.md"
        try:
            text = self._read(page).decode()
        except FileNotFoundError:
            return
        at = text.find(BEGIN)
        if at < 0:
            return
        lines = self.books.lines.setdefault(page, [])
        lines.append(f"My own line {self.word()}.")
        del lines[:-LINES]
        fresh = ("\n".join(lines) + "\n\n" + text[at:]).encode()
        if self.chance.random() < 0.5:
            self._save(page, fresh)
        else:
            with open(self.path(page), "wb") as file:
                file.write(fresh)

    def _save(self, path: str, raw: bytes) -> None:
        """As most editors do: beside, then renamed."""
        temporary = self.path(os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.swp"))
        with open(temporary, "wb") as file:
            file.write(raw)
        os.replace(temporary, self.path(path))

    # ── what agents ask and keep ──

    def searches(self) -> None:
        """Somebody looks for a session; one that the index has seen is found, a removed one is not."""
        kept = self._some()
        if kept is not None:
            found = self.asks("recall", "--words", "--json", "--agent", kept.agent_id, kept.word)
            if not found.get("files") and kept.word.startswith("quill"):
                self.books.wrong.append(f"{kept.word} is not found")
        if self.books.gone:
            word = self.chance.choice(sorted(self.books.gone))
            for agent in AGENTS:
                if self.asks("recall", "--words", "--json", "--agent", agent, word).get("files"):
                    self.books.wrong.append(f"{word} is found, though it was removed")

    def recalls(self) -> None:
        """Somebody asks a question."""
        known = [word for _, word in self.books.memories.values()]
        word = self.chance.choice(known) if known else "queue"
        self.asks("recall", "--json", "--agent", self.agent(), f"What of {word} in src/queue.py?")

    def remembers(self) -> None:
        """Something is to be remembered."""
        agent, word = self.agent(), self.word()
        text = f"Rowan wants the queue of lantern bounded, see {word} in src/queue.py."
        answer = self.asks("remember", "--json", "--agent", agent, "--type", "decision", text)
        if "id" in answer:
            self.books.memories[answer["id"]] = agent, word

    def forgets(self) -> None:
        """Something is to be forgotten."""
        if not self.books.memories:
            return
        memory = self.chance.choice(sorted(self.books.memories))
        agent, word = self.books.memories.pop(memory)
        self.asks("forget", "--json", "--agent", agent, memory)
        self.books.gone[word] = f"memory {memory}"

    def removes(self) -> None:
        """A person has a session removed."""
        kept = self._some()
        if kept is None or len(self.books.sessions) < 20:
            return
        self._adopt(kept)
        self.books.sessions.remove(kept)
        for path in kept.sealed:
            del self.books.bytes[path]
        command = ("remove", kept.session_id, "--agent", kept.agent_id, "--reason", "asked to", "--yes", "--json")
        self.asks(*command, "--quoting", "keep")  # the words are made of few templates
        if kept.word != kept.token:
            self.books.gone[kept.word] = f"session {kept.session_id} of {kept.agent_id}, files {', '.join(kept.sealed)}"
        self.removed = kept

    removed: Kept | None = None
    is_calm = False

    def brings_back(self) -> None:
        """A synchronising program brings a file of a removed session back."""
        if self.removed is not None:
            path = self.chance.choice(list(self.removed.sealed))
            name = path if self.chance.random() < 0.5 else path.removesuffix(".md") + " (1).md"
            self._save(name, self.removed.sealed[path])

    def tends_an_entity(self) -> None:
        """An agent adds a line to somebody's profile, or makes one."""
        entities = self.books.entities
        if len(entities) < 6:
            word = self.word()
            answer = self.asks("entity", "create", "user", f"Mira {word}", "--json")
            if "id" in answer:
                entities[answer["id"]] = answer["path"], [word]
            return
        entity = self.chance.choice(sorted(entities))
        word = self.word()
        line = f"Asked for a second pair of eyes on {word}."
        answer = self.asks("entity", "append", entity, "highlights", "--text", line, "--json", codes=(0, 2))
        if "event_id" in answer:
            entities[entity][1].append(word)

    # ── storms ──

    @contextmanager
    def storm(self, sessions: int, notes: int) -> Iterator[None]:
        """Much at once, while whatever is done inside is done: sessions, notes that come and go, a tree moved in."""
        self.count("storm")
        outside = os.path.join(self.ground, "tree")
        for number in range(notes // 20):
            os.makedirs(os.path.join(outside, f"{number}", "deep", "er"), exist_ok=True)
            with open(os.path.join(outside, f"{number}", "deep", "er", "note.md"), "w", encoding="utf-8") as file:
                file.write("Not an artifact.\n")
        inside = self.path("memory/tree")
        os.rename(outside, inside)
        for number in range(sessions):
            self.arrive(1_000_000 + self.number + number)
        for number in range(notes):
            with open(self.path(f"memory/storm {number}.md"), "w", encoding="utf-8") as file:
                file.write("Not an artifact.\n")
        for number in range(notes):
            os.rename(self.path(f"memory/storm {number}.md"), self.path(f"memory/blown {number}.md"))
        try:
            yield
        finally:
            for number in range(notes):
                os.unlink(self.path(f"memory/blown {number}.md"))
            shutil.rmtree(inside)

    def goes_away_and_comes_back(self, seconds: float) -> None:
        """The whole workspace is away for a moment, as an unmounted disk is."""
        self.count("root away")
        elsewhere = f"{self.root}.away"
        os.rename(self.root, elsewhere)
        time.sleep(seconds)
        os.rename(elsewhere, self.root)

    # ── rest ──

    def heal(self) -> dict[str, Any]:
        """Names put back and violations restored, as a careful person would; the document of the pass after it."""
        while self.books.moved:
            self.puts_back()
        self.asks("reindex", "--json")
        self.asks("violations", "restore", "--all", "--yes", "--json", codes=(0, 1, 2))
        self.books.broken.clear()
        document: dict[str, Any] = self.asks("reindex", "--json")
        for agent, session in self.books.unsure:
            self._settle(agent, session)
        self.books.unsure.clear()
        return document

    def _settle(self, agent: str, session: str) -> None:
        """Whether a session whose writer was killed is there in whole or not at all."""
        mark = corpus.token(agent, None, session)
        names = [name for name in os.listdir(self.path("memory")) if f"--{mark}--" in name]
        kinds = sorted(name.rpartition("--")[2] for name in names)
        if kinds and kinds != ["manifest.md", "summary.md", "transcript.md"]:
            self.books.wrong.append(f"of a session whose writer was killed there is {kinds}")
        if kinds:
            kept = Kept(agent, session, None, mark, "", {})
            self._adopt(kept)
            text = b"".join(kept.sealed.values())
            kept.word = WORD.findall(text)[0].decode()
            self.books.sessions.append(kept)
