"""A vault under everything at once: people, sync services, agents, crashes and clocks in random order.

After every look of ours: what people wrote is as they wrote it, rows are what a rebuild gives, of removed sessions no
byte is left, agents have not touched each other, and a second look writes nothing. The suite tries a few sequences;
`pytest -m slow tests/reliability/test_stateful.py` tries thousands, `STATEFUL_SEQUENCES` says how many.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import artifacts_fixture as made
import crash_runner
import hand_edits
import pytest
from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from workbench import tree

from benchmarks.index_rows import canonical_dump
from signet_sync.app import hints
from signet_sync.app.workspace import open_workspace
from signet_sync.errors import Halted, UsageError
from signet_sync.formats import managed_block
from signet_sync.formats.artifact import FieldProblem, validate_tombstone
from signet_sync.formats.frontmatter import FrontmatterProblem, parse
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.integrity import operations as integrity_operations
from signet_sync.memories import operations as memories_operations
from signet_sync.privacy import remove as privacy_remove
from signet_sync.recall import operations as recall_operations
from signet_sync.recall import pinning
from signet_sync.recall.search import Within
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import CompactionInput, SessionInput
from signet_sync.settings.model import Settings
from signet_sync.storage.database.connection import Database
from signet_sync.sync import engine
from signet_sync.sync.store import counts, violations
from signet_sync.sync.workspace import Outcome, Request, Workspace

NOW = parse_instant("2026-03-29T12:00:00.000Z") or 0
# Every text that is made or typed holds a word of its own: where it stands, and that it stands nowhere, can be seen.
WORD = re.compile(rb"(?:canary|typed)\d{5}x")
# What no pass may change: it is in no file.
NATIVE = (
    "memories", "memory_sources", "node_telemetry", "recall_events", "dream_sweeps", "memory_promotions",
    "session_transcripts",
)  # fmt: skip
SIGNS_OF_LIFE = ("last-pass.json", "signet-sync.db-shm", "killed-at")


class Session(NamedTuple):
    """Whose session it is."""

    agent: str
    id: str
    key: str | None = None

    @property
    def tokens(self) -> set[str]:
        """The tokens by which a tombstone may mean it."""
        return {token_of(self.agent, name) for name in (self.id, self.key) if name}


# Constant keys, equal ids and equal keys of two agents: where one could be taken for another.
SESSIONS = (
    Session("default", "5e551001-one"),
    Session("default", "5e551002-two", "agent:main:main"),
    Session("default", "5e551003-three", "agent:main:main"),
    Session("default", "5e551004-four", "a key of its own"),
    Session("scout", "5e551001-one"),
    Session("scout", "5e551002-two", "agent:main:main"),
)
AGENTS = ("default", "scout")
KINDS = ("summary", "transcript", "compaction", "manifest")

# Shrinking takes its time; whoever hunts a defect asks for it.
PHASES = (Phase.generate, Phase.shrink) if os.environ.get("STATEFUL_SHRINKS") else (Phase.generate,)
ANY = st.integers(0, 40)
WHOSE = st.sampled_from(SESSIONS)
AGENT = st.sampled_from(AGENTS)


class File(NamedTuple):
    """A file in `memory/` as people left it: the session it tells of, its bytes, whether its head can be read."""

    session: Session
    raw: bytes
    readable: bool = True


def body_of(raw: bytes) -> bytes:
    """What a person's text under a head is: without the lines of links, which follow the files of a session."""
    return re.sub(rb"(?m)^(?:\[\[[^\[\]\n]+\]\][ \t]*)+$", b"", raw.replace(b"\r\n", b"\n").partition(b"\n---\n")[2])


def is_copy_of(path: str, manifest: str) -> bool:
    """Whether a path is that of a conflict copy of a manifest."""
    return path != manifest and re.fullmatch(re.escape(manifest[:-3]) + r"[^\w].*\.md", path) is not None


class Machine(RuleBasedStateMachine):
    """One vault of two agents, and what must be true of it.

    `files` are those in `memory/` that people, sync services and write flows have put there; `bin` those that a person
    took away. `dirty` are paths that moved since the last look, `moved` agents whose files or memories moved.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(os.environ["STATEFUL_GROUND"])
        self.root = self.folder / "vault"
        self.state = Path(os.environ["SIGNET_STATE"])
        for place, template in ((self.root, "empty"), (self.state, "empty-state")):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.folder / template, place)
        self.now = NOW
        self.number = 0
        self.words: dict[bytes, Session] = {}
        self.gone: set[bytes] = set()
        self.files: dict[str, File] = {}
        self.bin: dict[str, File] = {}
        self.foreign: dict[str, bytes] = {}
        self.around: dict[str, bytes] = {}
        self.typed: set[bytes] = set()
        self.old_pages: dict[str, bytes] = {}
        self.own: dict[str, tuple[str, bytes]] = {}
        self.stones: dict[tuple[str, str], frozenset[str]] = {}
        self.flowing: set[Session] = set()
        self.spilled: dict[str, set[bytes]] = {}
        self.broken: set[str] = set()
        self.dirty: set[str] = set()
        self.moved: set[str] = set()
        self.unsure = self.clock_moved = False
        self.work = open_workspace(str(self.root), Settings())

    @invariant()
    def no_page_is_torn(self) -> None:
        """After every step, also one that killed us: a page is whole, unless a person broke it."""
        for agent in AGENTS:
            path, raw = self.page(agent)
            assert path in self.broken or managed_block.BEGIN not in raw or managed_block.is_generated(raw), (
                f"{path} is torn"
            )

    def teardown(self) -> None:
        self.look_at_everything()
        self.work.close()

    # ── the model ──

    def word(self, session: Session | None = None) -> str:
        """A word that stands nowhere yet; of a session, or typed by a person."""
        self.number += 1
        told = f"{'typed' if session is None else 'canary'}{self.number:05}x"
        if session is not None:
            self.words[told.encode()] = session
        return told

    def text(self, session: Session) -> tuple[str, str]:
        """A body and a sentence with words of their own."""
        first, second, third = (self.word(session) for _ in range(3))
        body = f"# What {first} is\n\n## Decisions\n\n- Lantern keeps {second} in src/queue.py from now on.\n"
        return body, f"In lantern the loop {third} of src/queue.py was bounded so that a dead broker never blocks it."

    def is_removed(self, session: Session) -> bool:
        """Whether a tombstone that stood at the last look covers it."""
        found = (self.stones.get((session.agent, token)) for token in session.tokens)
        return any(ids is not None and (not ids or session.id in ids) for ids in found)

    def may_go(self, path: str, file: File) -> bool:
        """Whether a look may delete a file: its session was removed, or nobody can tell and its name is of one."""
        by_name = any(f"--{token}" in path for _, token in self.stones)
        return self.is_removed(file.session) or (by_name and not file.readable) or self.is_merged(path, file)

    def is_merged(self, path: str, file: File) -> bool:
        """Whether a conflict copy of a manifest says nothing that the manifest does not say, too."""
        copied = re.match(r"memory/.+--[a-z2-7]{16}--manifest", path)
        original = f"{copied[0]}.md" if copied else ""
        if not is_copy_of(path, original) or not file.readable:
            return False
        manifest = (self.root / original).read_text()
        return all(line in manifest for line in body_of(file.raw).decode().split("\n"))

    def put(self, path: str, file: File, how: str = "in place") -> None:
        hand_edits.save(self.root / path, file.raw, how)
        self.files[path] = file
        self.touch(path, file.session.agent)

    def touch(self, path: str, *agents: str) -> None:
        self.dirty.add(path)
        self.moved.update(agents)

    def standing_stones(self) -> dict[tuple[str, str], frozenset[str]]:
        found = {}
        for path in (self.root / "memory/tombstones").glob("*.md"):
            with suppress(FrontmatterProblem, FieldProblem):
                stone = validate_tombstone(parse(path.read_bytes()).fields)
                found[stone.agent_id, stone.session_token] = frozenset(stone.session_ids)
        return found

    def some(self, number: int) -> str | None:
        """One of the files that stand."""
        paths = sorted(path for path in self.files if (self.root / path).exists())
        return paths[number % len(paths)] if paths else None

    # ── people and sync services ──

    @rule(
        session=WHOSE,
        kinds=st.sets(st.sampled_from(KINDS), min_size=1).map(sorted),
        days=st.integers(0, 35),
        how=st.sampled_from(hand_edits.SAVINGS),
    )
    def a_session_arrives(self, session: Session, kinds: list[str], days: int, how: str) -> None:
        """Files of a session come, all or some, in any order."""
        self.number += 1
        who: dict[str, Any] = {
            "agent_id": session.agent,
            "session_id": session.id,
            "session_key": session.key,
            "captured_at": iso(NOW - days * DAY - self.number * SECOND),
        }
        for kind in kinds:
            if kind == "manifest":
                name, raw = made.manifest(**who)
            else:
                body, sentence = self.text(session)
                name, raw = made.content(kind, **who, body=body, memory_sentence=sentence)
            self.put(f"memory/{name}", File(session, raw), how)

    @rule(
        number=ANY,
        what=st.sampled_from(["adds", "cuts", "empties", "forges", "bytes"]),
        how=st.sampled_from(hand_edits.SAVINGS),
    )
    def somebody_edits(self, number: int, what: str, how: str) -> None:
        """An artifact is changed, as nobody should; of a manifest the text under the head."""
        path = self.some(number)
        if path is None:
            return
        file = self.files[path]
        more = f"\n- a line with {self.word(file.session)}\n".encode()
        changed = {
            "adds": (file.raw + more, file.readable),
            "cuts": (file.raw[: len(file.raw) // 2], False),
            "empties": (b"", False),
            "forges": (file.raw.replace(b'agent_id: "default"', b'agent_id: "scout"'), False),
            "bytes": (b"\xff\xfe" + file.raw, False),
        }[what]
        if path.endswith("--manifest.md"):
            what, changed = "adds", (file.raw + more, file.readable)
        # Whoever writes another agent into a file says that it is of that one's session.
        whose = file.session._replace(agent="scout") if what == "forges" else file.session
        self.put(path, File(whose, *changed), how)
        self.moved.update(AGENTS)

    @rule(number=ANY, what=st.sampled_from(list(hand_edits.RESAVINGS)), how=st.sampled_from(hand_edits.SAVINGS))
    def somebody_saves_again(self, number: int, what: str, how: str) -> None:
        """No value changes, but the bytes do."""
        path = self.some(number)
        if path is not None:
            file = self.files[path]
            self.put(path, file._replace(raw=hand_edits.RESAVINGS[what](file.raw)), how)

    @rule(number=ANY)
    def somebody_takes_away(self, number: int) -> None:
        path = self.some(number)
        if path is not None:
            self.bin[path] = self.files.pop(path)
            (self.root / path).unlink()
            self.touch(path, self.bin[path].session.agent)

    @rule(number=ANY, to=st.sampled_from(["note", "folder", "other token", "other kind", "other time", "upper case"]))
    def somebody_renames(self, number: int, to: str) -> None:
        """Also by a sync service that does not know how a name is written."""
        path = self.some(number)
        if path is None:
            return
        name = path.removeprefix("memory/")
        self.number += 1
        target = {
            "note": f"memory/note {self.number}.md",
            "folder": f"notes/{name}",
            "other token": re.sub(r"--[a-z2-7]{16}--", "--abcdefghijklmnop--", path),
            "other kind": re.sub(r"--\w+\.md$", "--compaction.md", path),
            "other time": f"memory/2026-01-01T10-00-{self.number % 60:02}.000Z--{path.partition('--')[2]}",
            "upper case": f"memory/{name.upper()}",
        }[to]
        if (self.root / target).exists():
            return
        file = self.files.pop(path)
        if path.endswith("--manifest.md"):
            file = file._replace(raw=self.bytes_of(path))  # references of it may have moved meanwhile
        (self.root / target).parent.mkdir(exist_ok=True)
        (self.root / path).rename(self.root / target)
        if to in ("note", "folder", "upper case"):
            self.foreign[target] = file.raw
        else:
            self.files[target] = file
        self.bin[path] = file
        self.touch(path, file.session.agent)
        self.touch(target)

    @rule(number=ANY, service=st.sampled_from(list(hand_edits.CONFLICTS)), of_bin=st.booleans())
    def a_conflict_copy_comes(self, number: int, service: str, of_bin: bool) -> None:
        pool = self.bin if of_bin and self.bin else self.files
        if pool:
            path = sorted(pool)[number % len(pool)]
            self.put(f"memory/{hand_edits.conflict_name(path.removeprefix('memory/'), service)}", pool[path])

    @rule(number=ANY, form=st.sampled_from(["same", "same", "NFD", "case", "edited", "older time"]))
    def a_sync_service_brings_back(self, number: int, form: str) -> None:
        """What was deleted here, or removed, comes again from another machine or from the bin."""
        if not self.bin:
            return
        path = sorted(self.bin)[number % len(self.bin)]
        file = self.bin[path]
        if form == "edited":
            file = file._replace(raw=file.raw + f"\n{self.word(file.session)}\n".encode())
        if form in ("NFD", "case"):
            # Another form of the name: no artifact's, and nobody's business but that of who made it.
            upper = re.sub("--[stcm]", lambda found: found[0].upper(), path)
            target = path.replace("Z--", "Z\u00e9--") if form == "NFD" else upper
            target = unicodedata.normalize("NFD", target)
        else:
            target = path.replace("T", "T0", 1) if form == "older time" else path
        if (self.root / target).exists():
            return
        if form == "case" and target != path:
            (self.root / target).write_bytes(file.raw)
            self.foreign[target] = file.raw
            self.touch(target)
        else:
            self.put(target, file)

    @rule(number=ANY, old=st.booleans())
    def times_are_set(self, number: int, old: bool) -> None:
        """A checkout or a sync service sets the time of a file and changes nothing."""
        path = self.some(number)
        if path is not None:
            os.utime(self.root / path, (1, 1) if old else None)
            self.touch(path)

    # ── pages ──

    def page(self, agent: str, number: int = 0) -> tuple[str, bytes]:
        """The page of an agent; or one of its ledger that stands."""
        folder = Path("." if agent == "default" else f"agents/{agent}")
        ledger = sorted(str(page.relative_to(self.root)) for page in (self.root / folder).glob("ledger/**/*.md"))
        paths = [str(folder / "MEMORY.md"), *(path for path in ledger if ".user-" not in path)]
        return (path := paths[number % len(paths)]), self.bytes_of(path)

    def bytes_of(self, path: str) -> bytes:
        place = self.root / path
        return place.read_bytes() if place.exists() else b""

    @staticmethod
    def outside(raw: bytes) -> bytes:
        """What of a page is a person's: everything but the block between two markers, and its line's end."""
        before, begin, rest = raw.partition(managed_block.BEGIN)
        _, end, after = rest.partition(b"<!-- signet:end ")
        return before + after.partition(b"-->\n")[2] if begin and end else raw

    @rule(agent=AGENT, number=ANY, where=st.sampled_from(["above", "below", "both"]))
    def somebody_writes_on_a_page(self, agent: str, number: int, where: str) -> None:
        path, raw = self.page(agent, number)
        line = f"my own {self.word()}\n".encode()
        raw = line + raw if where != "below" else raw
        raw = raw + b"\n" + line if where != "above" else raw
        self.save_page(agent, path, raw)
        if raw.count(b"<!-- signet:") in (0, 2):
            self.around[path] = self.outside(raw)

    @rule(agent=AGENT, what=st.sampled_from(["types inside", "no end", "no begin", "twice", "no markers", "conflict"]))
    def somebody_breaks_the_page(self, agent: str, what: str) -> None:
        path, raw = self.page(agent)
        line = f"\nmy own {self.word()}\n".encode()
        inner = raw.replace(b"# Working Memory\n", b"# Working Memory\n" + line, 1) if raw else line
        without = managed_block._MARKER.sub(b"", inner)
        broken = {
            "types inside": inner,
            "no end": re.sub(rb"<!-- signet:end \w+ -->", b"", inner),
            "no begin": inner.replace(managed_block.BEGIN, b""),
            "twice": inner + raw,
            "no markers": without,
            "conflict": b"<<<<<<< mine\n" + inner + b"=======\n" + raw + b">>>>>>> theirs\n",
        }[what]
        self.save_page(agent, path, broken)
        self.around.pop(path, None)
        self.broken.add(path)
        if what == "no markers":
            # From now on our lines are a person's text, and stay.
            self.spilled.setdefault(path, set()).update(WORD.findall(broken))

    @rule(agent=AGENT, what=st.sampled_from(["older", "older", "gone"]))
    def a_sync_service_replaces_the_page(self, agent: str, what: str) -> None:
        """By an older one, or by nothing: what a person typed meanwhile goes by its hands, not by ours."""
        path, raw = self.page(agent)
        if what == "older" and path in self.old_pages:
            self.save_page(agent, path, self.old_pages[path])
            self.around[path] = self.outside(self.old_pages[path])
        elif what == "gone" and raw:
            (self.root / path).unlink()
            self.touch(path, agent)
            self.around[path] = b""
        self.typed &= self.words_of_people()

    def save_page(self, agent: str, path: str, raw: bytes) -> None:
        hand_edits.save(self.root / path, raw)
        self.touch(path, agent)
        self.typed |= {word for word in WORD.findall(raw) if word.startswith(b"typed")}

    def words_of_people(self) -> set[bytes]:
        pages = (page for page in self.root.rglob("*.md") if page.parent.name not in ("memory", "tombstones", "notes"))
        return {word for page in pages for word in WORD.findall(page.read_bytes()) if word.startswith(b"typed")}

    # ── what is asked of us ──

    @contextmanager
    def asked(self, *agents: str) -> Iterator[None]:
        """A command: what it refuses, it refuses in words of ours; nothing of another agent changes for it."""
        self.moved.update(agents)
        others = self.calm()
        try:
            yield
        except (UsageError, Halted) as error:
            assert error.hint, error
            note(f"refused: {error.message}")
        if not self.unsure:
            for agent, before in others.items():
                assert self.of_agent(agent) == before, f"{agent} was touched"

    def act(self, how: str, step: int, work: Callable[[Workspace], Any]) -> Any:
        """Does it here; or in a process that is killed at one of its durable steps."""
        if how == "whole":
            return work(self.work)
        self.work.close()

        def killed() -> int:
            os.chdir(self.folder)
            crash_runner.arm(step)
            with suppress(UsageError, Halted):
                workspace = open_workspace(str(self.root), Settings())
                work(workspace)
                workspace.close()
            return 0

        code = crash_runner.forked(killed)
        assert code in (0, crash_runner.KILLED), code
        note(f"ended with {code}")
        self.unsure = True
        self.work = open_workspace(str(self.root), Settings())
        return None

    HOW = st.sampled_from(["whole", "whole", "killed"])
    STEP = st.integers(1, 70)

    @rule(session=WHOSE, by=st.sampled_from(["id", "key"]), how=HOW, step=STEP)
    def remove(self, session: Session, by: str, how: str, step: int) -> None:
        name = session.id if by == "id" else session.key or session.id

        def work(workspace: Workspace) -> Any:
            for one in privacy_remove.plan(workspace, session.agent, name):
                privacy_remove.remove(workspace, one, "asked for", self.now)

        with self.asked(session.agent):
            self.act(how, step, work)
            if how == "whole":
                self.judge("removal", full=True)

    @rule(session=WHOSE, only=st.booleans(), broken=st.booleans())
    def a_tombstone_arrives(self, session: Session, only: bool, broken: bool) -> None:
        token = token_of(session.agent, session.key or session.id)
        ids = (session.id,) if only and not broken else ()
        # A removal of its own: one that was lifted stays lifted, however late a copy of its tombstone comes.
        self.number += 1
        removed_at = iso(self.now + 1000 * self.number)
        name, raw = made.tombstone(agent_id=session.agent, token=token, session_ids=ids, removed_at=removed_at)
        if (self.root / f"memory/tombstones/{name}").exists():
            return  # a sync service would have made a conflict of it
        hand_edits.save(self.root / f"memory/tombstones/{name}", b"<<<<<<< mine\n" if broken else raw)
        self.touch(f"memory/tombstones/{name}", session.agent)

    @rule(number=ANY)
    def a_tombstone_is_lost(self, number: int) -> None:
        """The mirror brings it back: what a look has seen of it is not forgotten."""
        known = sorted(f"memory/tombstones/{agent}--{token}.md" for agent, token in self.stones)
        if known and not self.unsure:
            path = known[number % len(known)]
            (self.root / path).unlink(missing_ok=True)
            self.touch(path, *AGENTS)

    @rule(session=WHOSE)
    def lift(self, session: Session) -> None:
        self.look_at_everything()  # what it covered is gone, and nothing says so afterwards
        with self.asked(session.agent):
            token = privacy_remove.lift(self.work, session.agent, session.key or session.id).tombstone.session_token
            self.stones.pop((session.agent, token), None)
            self.unsure = True
            self.dirty.add("everything")

    @rule(session=WHOSE, compact=st.booleans(), again=st.booleans(), how=HOW, step=STEP)
    def a_session_ends(self, session: Session, compact: bool, again: bool, how: str, step: int) -> None:
        body, sentence = self.text(session)
        who: dict[str, Any] = {
            "agent_id": session.agent,
            "session_id": session.id,
            "session_key": session.key,
            "project": "/home/ada/code/lantern",
            "harness": "codex",
            "memory_sentence": sentence,
        }
        if compact:
            given: Any = CompactionInput(**who, compaction=body)
        else:
            given = SessionInput(**who, transcript=f"user: {self.word(session)}\n", summary=body)
        self.flowing.add(session)
        with self.asked(session.agent):
            told = self.act(how, step, lambda workspace: sessions_operations.write(workspace, given, now_us=self.now))
            if told is not None:
                self.adopt()
                assert (self.root / told["manifest"]).exists()
                if again:
                    assert sessions_operations.write(self.work, given, now_us=self.now)["idempotent_replay"]

    @rule(agent=AGENT, session=st.one_of(st.none(), WHOSE), how=HOW, step=STEP)
    def remember(self, agent: str, session: Session | None, how: str, step: int) -> None:
        if session is not None:
            agent = session.agent
        word = self.word(session or Session(agent, "a person"))
        text = f"Lantern is told of {word} whenever the broker of src/queue.py is dead."

        def work(workspace: Workspace) -> Any:
            whose = session and session.id
            return memories_operations.remember(
                workspace, agent, text, kind="fact", tags=(), private=False, session=whose, now_us=self.now
            )

        with self.asked(agent):
            told = self.act(how, step, work)
            if told is not None and session is None:
                self.own[told.memory.id] = (agent, word.encode())
        if not self.rows(f"select 1 from memories where content like '%{word}%'"):
            del self.words[word.encode()]  # refused or cut off: it stands nowhere

    @rule(number=ANY, how=HOW, step=STEP)
    def forget(self, number: int, how: str, step: int) -> None:
        if not self.own:
            return
        memory_id = sorted(self.own)[number % len(self.own)]
        agent, word = self.own.pop(memory_id)
        with self.asked(agent):
            done = self.act(how, step, lambda workspace: privacy_remove.forget(workspace, agent, memory_id, self.now))
            if done is not None and not done.pending:
                self.gone.add(word)

    @rule(number=ANY, unpin=st.booleans())
    def pin(self, number: int, unpin: bool) -> None:
        handles = self.rows("select agent_id, name from texts where artifact is null order by 1, 2")
        if handles:
            agent, handle = handles[number % len(handles)]
            with self.asked(agent):
                (pinning.unpin if unpin else pinning.pin)(self.work, agent, handle, self.now)

    @rule(number=ANY, agent=AGENT)
    def search(self, number: int, agent: str) -> None:
        """What is found is counted; what a query says of a session goes with the session."""
        said = sorted(self.words)
        word = said[number % len(said)].decode() if said else "lantern"
        hits = recall_operations.recall(self.work.database, f"broker {word}", Within(agent))
        recall_operations.record(self.work.database, agent, f"broker {word}", hits, self.now)
        counts.count_ids(self.work.database, agent, [hit.id for hit in hits], iso(self.now)[:10])
        self.moved.add(agent)

    @rule(agent=AGENT)
    def dream(self, agent: str) -> None:
        with self.asked(agent):
            memories_operations.dream(self.work, agent, self.now)

    @rule(number=ANY, what=st.sampled_from(["restore", "accept"]), how=HOW, step=STEP)
    def settle(self, number: int, what: str, how: str, step: int) -> None:
        """A violation in a person's hands: the sealed bytes come back, or the present ones are right."""
        open_ = sorted(one.path for one in violations.list_open(self.work.database))
        if not open_:
            return
        path = open_[number % len(open_)]
        before = (self.root / path).read_bytes() if (self.root / path).exists() else None

        def work(workspace: Workspace) -> Any:
            if what == "restore":
                return integrity_operations.restore_one(workspace, path)
            return integrity_operations.accept_one(workspace, path, "mine", self.now)

        with self.asked(*AGENTS):
            self.act(how, step, work)
        self.dirty.add(path)
        if (self.root / path).exists():
            raw = (self.root / path).read_bytes()
            if raw != before:
                file = self.files.get(path) or self.bin[path]
                # The words of the sealed text are its session's; what was typed over it is displaced on purpose.
                assert what == "restore" or body_of(raw).rstrip() == body_of(before or b"").rstrip()
                self.files[path] = File(file.session, raw)

    # ── the machine ──

    @rule(by=st.sampled_from([-400 * DAY, -DAY, 3600 * SECOND, DAY, 31 * DAY, 400 * DAY]))
    def the_clock_jumps(self, by: int) -> None:
        self.now += by
        self.clock_moved = True

    @precondition(lambda self: not self.unsure)
    @rule(what=st.sampled_from(["lost", "damaged"]))
    def the_database_goes(self, what: str) -> None:
        """What is in no file comes back from the backup, as it stood there."""
        self.work.close()
        path = self.work.database.path
        if what == "lost":
            for suffix in ("", "-wal", "-shm"):
                Path(path + suffix).unlink(missing_ok=True)
        else:
            Path(path).write_bytes(b"not a database" * 500)
        self.work = open_workspace(str(self.root), Settings())
        self.unsure = self.clock_moved = True
        self.dirty.add("everything")

    # ── looks ──

    @rule(how=HOW, step=STEP, rebuild=st.booleans())
    def a_pass(self, how: str, step: int, rebuild: bool) -> None:
        if how == "killed":
            self.act(how, step, lambda w: engine.run_pass(w, Request(self.now, rebuild=rebuild)))
        else:
            self.look_at_everything(rebuild)

    @precondition(lambda self: not self.unsure)
    @rule(settling=st.booleans())
    def a_hint(self, settling: bool) -> None:
        """The agent's own way: only what moved is looked at, and a name that is gone is asked for twice."""
        if not self.dirty or "everything" in self.dirty:
            return
        paths = hints.relevant(self.work, frozenset(self.dirty))
        # What a tombstone covers may have no row: the agent looks at everything then.
        some = None if any(path.startswith("memory/tombstones/") for path in paths) else paths
        request = Request(self.now, paths=some, settle_seconds=0.5 if settling else 0.0)
        outcome = self.run(request)
        if outcome.unsettled:
            again = request._replace(paths=outcome.unsettled, confirmed=outcome.unsettled)
            outcome = self.run(again)
        if outcome.cliff is None and not outcome.unsettled:
            self.judge("hint", full=outcome.full)

    def look_at_everything(self, rebuild: bool = False) -> None:
        """A full pass, and a second one that finds nothing to do."""
        outcome = self.run(Request(self.now, rebuild=rebuild))
        if outcome.cliff is not None:
            outcome = self.run(Request(self.now, accept_removals=True))
        assert outcome.cliff is None and not outcome.trouble, outcome
        self.judge("pass", full=True)
        whole = self.everything()
        self.run(Request(self.now))
        after = self.everything()
        assert after == whole, sorted(k for k in after.keys() | whole.keys() if after.get(k) != whole.get(k))

    def run(self, request: Request) -> Outcome:
        """One pass, and what no pass may do."""
        native, arriving = self.native(), self.standing_stones()
        agents = self.calm()
        outcome = engine.run_pass(self.work, request)
        note(f"{'full' if outcome.full else 'hint'}: {outcome.change.paths} {outcome.trouble}")
        if outcome.cliff is None:
            quiet = not (self.unsure or self.moved or self.clock_moved)
            for table, rows in self.native().items():
                assert rows <= native[table], f"a pass wrote into {table}: {rows - native[table]}"
                assert rows == native[table] or arriving or not quiet, f"a pass dropped of {table}"
            for agent, before in agents.items():
                assert self.of_agent(agent) == before, f"{agent} was touched"
        if request.settle_seconds and outcome.cliff is None:
            self.adopt()
        return outcome

    # ── what must be true ──

    def judge(self, what: str, *, full: bool) -> None:
        """After a look that saw everything that moved."""
        before = self.stones
        self.stones = self.standing_stones() | {
            parts: frozenset() for parts in self.mirrored() if parts not in self.standing_stones()
        }
        assert self.unsure or before.keys() <= self.stones.keys(), "a removal was forgotten"
        self.adopt()
        self.keeps_what_people_wrote()
        self.keeps_no_byte_of_what_was_removed()
        self.is_what_a_rebuild_gives(full)
        for agent in AGENTS:
            path, raw = self.page(agent)
            if raw and path not in self.old_pages:
                self.old_pages[path] = raw
        remembered = {row[0] for row in self.rows("select id from memories")}
        assert self.own.keys() <= remembered, "a memory is lost"
        self.dirty.clear()
        self.broken.clear()
        self.unsure = False
        if full:  # what a hint leaves to it (a manifest that is gone, say) may still move pages
            self.moved.clear()
            self.clock_moved = False

    def mirrored(self) -> list[tuple[str, str]]:
        return self.rows("select agent_id, session_token from memory_artifact_tombstones")

    def adopt(self) -> None:
        """Files that write flows made, and manifests made again, stand from now on like any others."""
        for path in sorted(str(p.relative_to(self.root)) for p in (self.root / "memory").glob("*.md")):
            if path in self.files or path in self.foreign:
                continue
            raw = (self.root / path).read_bytes()
            fields = parse(raw).fields
            session = Session(fields["agent_id"], fields["session_id"], fields.get("session_key"))
            assert session in self.flowing or path.endswith("--manifest.md"), f"{path} came from nowhere"
            assert session in SESSIONS and not self.is_removed(session), f"{path} tells of a removed session"
            self.files[path] = File(session, raw)

    def keeps_what_people_wrote(self) -> None:
        for path, file in list(self.files.items()):
            place = self.root / path
            if not place.exists():
                assert self.may_go(path, file), f"{path} was deleted"
                self.bin[path] = self.files.pop(path)
                continue
            raw = place.read_bytes()
            if path.endswith("--manifest.md") and file.readable:
                theirs, now = body_of(file.raw), body_of(raw)
                copies = [one.raw for name, one in [*self.files.items(), *self.bin.items()] if is_copy_of(name, path)]
                flowed = file.session in self.flowing or all(
                    line in theirs or any(line in copy for copy in copies) for line in now.split(b"\n")
                )
                assert raw == file.raw or now == theirs or (flowed and theirs.strip() in now), path
                self.files[path] = file._replace(raw=raw)
            else:
                assert raw == file.raw, f"{path} was altered"
        for path, raw in self.foreign.items():
            assert (self.root / path).read_bytes() == raw, f"{path} is not ours"
        assert self.typed <= (standing := self.words_of_people()), f"typed, and gone: {self.typed - standing}"
        for path in {*self.around} | {self.page(agent)[0] for agent in AGENTS}:
            outside = self.outside(self.bytes_of(path))
            wanted = self.around.get(path, outside)
            assert outside in (wanted, wanted + b"\n", wanted + b"\n\n"), f"{path}: {wanted!r} became {outside!r}"
            self.around[path] = outside

    def keeps_no_byte_of_what_was_removed(self) -> None:
        gone = self.gone | {word for word, session in self.words.items() if self.is_removed(session)}
        if not gone:
            return
        # A file into which somebody wrote another agent is that one's, whatever its text says.
        theirs = {path for path, file in self.files.items() if not self.is_removed(file.session)}
        for place in (self.root, self.state):
            for path in place.rglob("*"):
                name = str(path.relative_to(place))
                if path.is_file() and name not in self.foreign and name not in theirs:
                    raw = path.read_bytes()
                    told = gone.intersection(WORD.findall(raw))
                    if name in self.spilled:
                        told -= self.spilled[name].intersection(WORD.findall(self.outside(raw)))
                    assert not told, f"{told} in {name}"
        for agent, token, session_id in self.rows("select agent_id, session_token, session_id from seals"):
            for session in SESSIONS:
                if (agent, session_id) == (session.agent, session.id):
                    assert not self.is_removed(session), f"a seal of {session} under {token}"

    def is_what_a_rebuild_gives(self, full: bool) -> None:
        """Rows made one by one are those that the same files give at once: beside the seals, and without them."""
        rows = canonical_dump(self.work.database)
        damaged = bool(self.rows("select 1 from violations"))
        if full or damaged:
            with closing(Database(":memory:")) as copy:
                with copy.connection.backup("main", self.work.database.connection, "main") as backup:
                    backup.step()
                assert self.indexed_anew(copy, rebuild=True) == rows
        if not damaged:
            # Only a seal tells that a file was written again in another form.
            rows = [row[:-1] if row[0] == "files" else row for row in rows]
            with closing(Database(":memory:")) as empty:
                made_anew = self.indexed_anew(empty, rebuild=False)
                assert [row[:-1] if row[0] == "files" else row for row in made_anew] == rows

    def indexed_anew(self, database: Database, *, rebuild: bool) -> list[tuple[Any, ...]]:
        """The dump of a database that has just seen the vault for the first time, or as if."""
        workspace = copy(self.work)
        workspace.database, workspace.touch_nothing, workspace.own_place = database, True, False
        engine.run_locked(workspace, Request(self.now, rebuild=rebuild, project=False))
        return canonical_dump(database)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self.work.database.execute(sql))

    def native(self) -> dict[str, set[tuple[Any, ...]]]:
        return {table: set(self.rows(f"select * from {table}")) for table in NATIVE}

    def calm(self) -> dict[str, tuple[Any, ...]]:
        """Whose files nobody touched is not touched by us; a page may move when its clock does."""
        if self.clock_moved or self.unsure:
            return {}
        return {agent: self.of_agent(agent) for agent in AGENTS if agent not in self.moved}

    def of_agent(self, agent: str) -> tuple[Any, ...]:
        """Everything that is one agent's: rows, and the page with its time."""
        path, raw = self.page(agent)
        time = (self.root / path).stat().st_mtime_ns if raw else None
        mine = [row for row in canonical_dump(self.work.database) if agent in row[1:3] and row[0] != "files"]
        return (
            raw,
            time,
            mine,
            [row for rows in self.native().values() for row in sorted(rows, key=repr) if agent in row],
        )

    def everything(self) -> dict[str, tuple[Any, ...]]:
        places = ((place.name, tree(place)) for place in (self.root, self.state))
        found = {f"{name}/{path}": told for name, files in places for path, told in files.items()}
        return {p: told for p, told in found.items() if not p.endswith(SIGNS_OF_LIFE) and not told[0].startswith("0o4")}


def run(examples: int, steps: int, number: int = 0) -> None:
    """Tries so many sequences of so many steps, those of a number."""
    run_state_machine_as_test(
        seed(number)(Machine) if number else Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=not number,
            report_multiple_bugs=False,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture(autouse=True)
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty vault with its state, to begin every sequence with."""
    monkeypatch.setenv("STATEFUL_GROUND", str(tmp_path))
    state = Path(os.environ["SIGNET_STATE"])
    (tmp_path / "vault" / "memory").mkdir(parents=True)
    workspace = open_workspace(str(tmp_path / "vault"), Settings())
    engine.run_pass(workspace, Request(NOW))
    workspace.close()
    shutil.copytree(tmp_path / "vault", tmp_path / "empty")
    shutil.copytree(state, tmp_path / "empty-state")


def test_whatever_happens_in_whatever_order_nothing_is_lost_and_nothing_comes_back() -> None:
    run(settings.default.max_examples // 4, 8)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 5))
def test_the_same_for_longer(part: int) -> None:
    """In parts, so that several cores may share them; the numbers of the sequences are those of the part."""
    run(int(os.environ.get("STATEFUL_SEQUENCES", "2000")) // 4, 16, part)
