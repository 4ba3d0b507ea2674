"""Entities under everything at once: random operations, people in the files, crashes at every step, passes between.

After each step no text is lost; after each look every file is what its events tell or waits for a maintainer, the
chain is whole, and a second look writes nothing. `HYPOTHESIS_PROFILE=thorough` and `-m slow` try more.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from signet_sync.app.workspace import open_workspace
from signet_sync.entities import erase as entities_erase
from signet_sync.entities import maintenance, observe, operations, own_edits, queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.replay import fold
from signet_sync.entities.repository import EntityRepository, EventLog
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.timestamps import DAY, SECOND, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir, writing
from signet_sync.sync import engine
from signet_sync.sync.workspace import Request as PassRequest
from signet_sync.sync.workspace import Workspace

ME = "default"
START = parse_instant("2026-03-30T22:00:00.000Z") or 0
WHY = "why: each of them matters; until: 2026-05-01; plan: prune to seven in May"
# Every text that is given or typed holds such a word of its own: what is lost is seen.
MARK = re.compile(r"mark\d{4}x")

# The doors that an operation goes through: where a process dies, before or after what the door does.
DOORS = (
    (EventLog, "_put"),
    (writing, "create_once"),
    (writing, "replace"),
    (writing, "move_away"),
    (entities_store, "put_files"),
    (entities_store, "set_log_end"),
    (entities_store, "clear_drift"),
    (entities_store, "put_drift"),
)
DIED = 9

KINDS = st.sampled_from(["user", "part", "part", "relationship"])
ACTORS = st.sampled_from(["agent", "person", "maintainer"])
NARRATIVES = ["identity", "Role", "needs", "overview", "extensions", "notes/focus", "dynamics"]
LISTS = ["highlights", "Evidence", "open-questions", "notes/inbox", "notes/parking-lot"]
SECTIONS = st.sampled_from([*NARRATIVES, *LISTS, "change-log"])
NAMES = st.sampled_from(["Inner Critic", "The Judge", "内なる声", "Mina", "a/b: <c>", "Perfectionist"])
# What people and agents put around their words.
SHAPES = st.sampled_from([
    "{}", "{}\n\nAnd {}.", "# {}\n\n## Role\n<!-- section role -->\n\ntext", "```\n{}\nno end", "<!-- {} ",
    "- {}\n- x", "### Mood\n\n{}", "---\nid: {}\n---", "line\r\n{}\r\n", "> {}\n\n\n\n", '"{}" — it matters',
])  # fmt: skip
NUMBERS = st.integers(0, 5)


class Request(NamedTuple):
    """An operation that may be asked for again: what it is, and the words it holds."""

    act: Callable[[Workspace, int], Any]
    marks: tuple[str, ...] = ()


# ── what people do in a file; each takes the file and a text, and gives the file ──


def _after_anchor(text: str, said: str, number: int) -> str:
    places = [match.end() for match in re.finditer(r"<!-- section [a-z-]+ -->\r?\n", text)]
    place = places[number % len(places)] if places else len(text)
    return f"{text[:place]}\n{said}\n{text[place:]}"


def _without_body(text: str, said: str, number: int) -> str:
    parts = re.split(r"(?m)^(?=## )", text)
    place = number % len(parts)
    lines = parts[place].split("\n")
    return "".join([*parts[:place], "\n".join([*lines[:2], "", said, "", ""]), *parts[place + 1 :]])


def _without_section(text: str, said: str, number: int) -> str:
    parts = re.split(r"(?m)^(?=## )", text)
    place = number % len(parts)
    return "".join([*parts[:place], *parts[place + 1 :]])


def _moved_section(text: str, said: str, number: int) -> str:
    head, *parts = re.split(r"(?m)^(?=## )", text)
    return "".join([head, *reversed(parts)]) if parts else text


HANDS: dict[str, Callable[[str, str, int], str]] = {
    "types": _after_anchor,
    "appends": lambda text, said, number: f"{text}{said}",
    "replaces": _without_body,
    "retitles": lambda text, said, number: text.replace("## Role", f"## {said.splitlines()[0][:40]} role"),
    "renames": lambda text, said, number: re.sub(
        r"(?m)^# .*$", lambda _: f"# {said.splitlines()[0][:60]}", text, count=1
    ),
    "adds a field": lambda text, said, number: text.replace(
        'status: "', f'mood: "{"".join(MARK.findall(said))}"\nstatus: "'
    ),
    "changes a field": lambda text, said, number: re.sub(r'(?m)^status: ".*"', 'status: "resting"', text),
    "locks": lambda text, said, number: re.sub(r"(?m)^locks:.*$", "locks: [Role]", text),
    "loses an anchor": lambda text, said, number: text.replace("<!-- section role -->\n", ""),
    "loses anchors": lambda text, said, number: re.sub(r"<!-- section [a-z-]+ -->\n", "", text),
    "loses a section": _without_section,
    "moves sections": _moved_section,
    "changes the id": lambda text, said, number: text.replace('id: "', 'id: "x', 1),
    "takes line ends of others": lambda text, said, number: text.replace("\n", "\r\n"),
    "adds a section": lambda text, said, number: f"{text}\n## Mine {number}\n\n{said}\n",
    "writes another thing": lambda text, said, number: said,
    "cuts it": lambda text, said, number: text[: len(text) * (number + 1) // 7],
    "empties it": lambda text, said, number: "",
}
FOLDERS = ["goes", "is moved", "is copied", "loses its notes", "loses its profile", "bytes"]


def marks(raw: bytes) -> set[str]:
    return set(MARK.findall(raw.decode("utf-8", "replace")))


@contextmanager
def dying(at: int, mode: str) -> Iterator[None]:
    """Ends the process at the door call of this number: before it, after it, or with half of a line written."""
    calls = 0

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at and mode != "after":
                if mode == "torn" and name == "_put":
                    log, month, data = given
                    before = log._raw.get(month, b"")
                    real(log, month, before + data[len(before) :][: (len(data) - len(before)) // 2])
                os._exit(DIED)
            done = real(*given, **more)
            if calls == at:
                os._exit(DIED)
            return done

        return call

    with pytest.MonkeyPatch.context() as patch:
        for door, name in DOORS:
            patch.setattr(door, name, watched(name, getattr(door, name)))
        yield


class EntityMachine(RuleBasedStateMachine):
    """One agent's entities; `kept` are the words that must stand somewhere, `ids` the entities there are."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="entities-", dir=os.environ["ENTITIES_GROUND"]))
        self.root = self.folder / "vault"
        self.root.mkdir()
        self.now = START
        self.count = 0
        self.kept: set[str] = set()
        self.ids: list[str] = []
        self.keyed: list[tuple[str, Request]] = []
        self.work = open_workspace(str(self.root), Settings())

    def teardown(self) -> None:
        self.stands()
        self.work.close()
        shutil.rmtree(self.folder)

    # ── words ──

    def said(self, shape: str) -> tuple[str, tuple[str, ...]]:
        """A text, and the words by which it is known."""
        made = []
        while "{}" in shape:
            self.count += 1
            made.append(f"mark{self.count:04}x")
            shape = shape.replace("{}", made[-1], 1)
        return shape, tuple(made)

    def pages(self) -> Iterator[Path]:
        return (path for path in (self.root / "entities").rglob("*") if path.is_file())

    def standing(self) -> set[str]:
        return set().union(*(marks(path.read_bytes()) for path in self.pages()))

    def ref(self, number: int) -> str:
        return self.ids[number % len(self.ids)] if self.ids else "nobody"

    # ── operations ──

    def begin(self, request: Request) -> Any:
        """Asks for it; what is refused is refused in words of ours."""
        try:
            done = request.act(self.work, self.now)
        except UsageError as error:
            assert error.code and error.hint, error
            note(f"refused: {error.code}")
            return None
        except WorkspaceError as error:
            assert error.hint, error  # somebody was saving: it has to be asked for again
            note(f"waits: {error}")
            return None
        self.keep(request)
        return done

    def keep(self, request: Request) -> None:
        """A text that was taken has to stand, now and later."""
        missing = set(request.marks) - self.standing()
        assert not missing, f"taken, and nowhere: {missing}"
        self.kept.update(request.marks)

    def known(self) -> None:
        made = EventLog(str(self.root), ME).events('"op":"create"')
        self.ids = sorted({one.entity_id for one in made if one.entity_id})

    def carry_out(self, request: Request, how: str, at: int) -> None:
        """Asks for it: as it is, under a key and once more, or in a process that dies."""
        self.now += SECOND
        if how == "whole":
            self.begin(request)
        elif how == "meanwhile":
            self.meanwhile(request, at)
        else:
            self.crash(request, at, how)
        self.known()

    def crash(self, request: Request, at: int, mode: str) -> None:
        self.work.close()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work = open_workspace(str(self.root), Settings())
                with dying(at, mode):
                    with suppress(UsageError):
                        request.act(work, self.now)
                    code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, DIED), code
        note(f"ended with {code}")
        self.work = open_workspace(str(self.root), Settings())
        # What came as far as the ledger must not be lost any more; a line without its end was not acknowledged.
        whole = (path.read_bytes() for path in self.pages())
        self.kept.update(set(request.marks) & set().union(*(marks(raw[: raw.rfind(b"\n") + 1]) for raw in whole)))

    def meanwhile(self, request: Request, at: int) -> None:
        """Somebody saves a file of an entity just before the agent writes it."""
        typed, made = self.said("typed {}")
        replace, saved = writing.replace, []

        def saving(root: str, path: str, *given: Any, **more: Any) -> Any:
            if not saved and parse_path(path) is not None:
                saved.append(path)
                file = self.root / path
                file.write_bytes(_after_anchor(file.read_bytes().decode(), typed, at).encode())
            return replace(root, path, *given, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "replace", saving)
            self.begin(request)
        if saved:
            assert set(made) <= self.standing(), "what somebody saved meanwhile is gone"
            self.kept.update(made)

    HOW = st.sampled_from(["whole", "whole", "whole", "before", "after", "torn", "meanwhile"])
    AT = st.integers(1, 9)

    @initialize(kind=st.sampled_from(["part", "user"]))
    def start(self, kind: Any) -> None:
        for each, name in ((kind, "First"), ("part", "Second")):
            text, made = self.said(f"{name} {{}}")
            self.begin(Request(partial(self.do, operations.create, each, text), made))
        self.known()

    @staticmethod
    def do(operation: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Asks for an operation of this agent; the last two are the workspace and the time."""
        *own, work, now = given
        return operation(work, ME, *own, now_us=now, **more)

    @rule(kind=KINDS, name=NAMES, one=NUMBERS, other=NUMBERS, how=HOW, at=AT)
    def create(self, kind: Any, name: str, one: int, other: int, how: str, at: int) -> None:
        text, made = self.said(f"{name} {{}}")
        edge: dict[str, Any] = (
            {"relation": "polarized", "between": [self.ref(one), self.ref(other)]} if kind == "relationship" else {}
        )
        self.carry_out(Request(partial(self.do, operations.create, kind, text, **edge), made), how, at)

    TEXTS = st.sampled_from([operations.set_section, operations.append, operations.append])

    @rule(number=NUMBERS, section=SECTIONS, shape=SHAPES, act=TEXTS, propose=st.booleans(), actor=ACTORS,
          keyed=st.booleans(), how=HOW, at=AT)  # fmt: skip
    def write(
        self, number: int, section: str, shape: str, act: Any, propose: bool, actor: Any, keyed: bool, how: str, at: int
    ) -> None:
        text, made = self.said(shape)
        key = f"key-{self.count}" if keyed else None
        given = {"actor": actor, "rationale": WHY, "key": key, "propose": propose}
        request = Request(partial(self.do, act, self.ref(number), section, text, **given), made)
        self.carry_out(request, how, at)
        if key is not None and set(made) & self.kept:
            self.again(request)

    def again(self, request: Request) -> None:
        """Under its key a request is done once, however often it is asked for."""
        self.begin(request)
        whole = self.snapshot("entities")
        done = self.begin(request)
        assert done is None or (done.replayed and self.snapshot("entities") == whole)

    @rule(number=NUMBERS, section=st.sampled_from(LISTS), item=st.sampled_from("123"), actor=ACTORS, how=HOW, at=AT)
    def prune(self, number: int, section: str, item: str, actor: Any, how: str, at: int) -> None:
        reason, made = self.said("said twice {}")
        act = partial(self.do, operations.prune, self.ref(number), section, item, reason=reason, actor=actor)
        self.carry_out(Request(act, made), how, at)

    @rule(number=NUMBERS, status=st.sampled_from(["deprecated", "resting"]), name=NAMES, actor=ACTORS, how=HOW, at=AT)
    def change(self, number: int, status: str, name: str, actor: Any, how: str, at: int) -> None:
        text, made = self.said(f"{name} {{}}")
        act = partial(self.do, operations.set_status, self.ref(number), status, reason=text, actor=actor)
        self.carry_out(Request(act, made), how, at)

    GUARDS = st.sampled_from(["pin", "lock", "unpin", "unlock"])

    @rule(number=NUMBERS, act=GUARDS, section=st.one_of(st.none(), SECTIONS), how=HOW, at=AT)
    def guard(self, number: int, act: Any, section: str | None, how: str, at: int) -> None:
        self.carry_out(Request(partial(self.do, partial(operations.guard, act), self.ref(number), section)), how, at)

    @rule(yes=st.booleans(), how=HOW, at=AT)
    def answer(self, yes: bool, how: str, at: int) -> None:
        waiting = queries.list_proposals(EntityRepository(self.work, ME, self.now))
        if waiting:
            self.carry_out(Request(partial(self.do, operations.review, waiting[0].id, approve=yes)), how, at)

    @rule(number=st.integers(0, 20), actor=ACTORS, how=HOW, at=AT)
    def take_back(self, number: int, actor: Any, how: str, at: int) -> None:
        events = EventLog(str(self.root), ME).events()
        if events:
            one = events[-1 - number % len(events)].token
            self.carry_out(Request(partial(self.do, operations.undo, one, actor=actor)), how, at)

    @rule(keep=st.sampled_from(["file", "events"]), how=HOW, at=AT)
    def settle(self, keep: Any, how: str, at: int) -> None:
        self.look()
        queue = entities_store.drift(self.work.database, ME)
        if queue:
            act = partial(self.do, maintenance.resolve, queue[0].id or "ledger", keep, actor="maintainer")
            self.carry_out(Request(act), how, at)

    @rule(number=NUMBERS, how=HOW, at=AT)
    def erase(self, number: int, how: str, at: int) -> None:
        """A removal: what it takes is gone for good, and nothing else from the files that can be read."""
        if not self.kept:
            return
        word = sorted(self.kept)[number % len(self.kept)]

        def act(work: Workspace, now: int) -> Any:
            with state_dir.workspace_lock(work.state):
                return entities_erase.erase(
                    work, ME, paths=[], needles=[word.encode()], tombstone="memory/tombstones/x.md", now_us=now
                )

        self.carry_out(Request(act), how, at)
        self.now += SECOND
        act(self.work, self.now)
        assert word not in self.standing()
        self.kept &= self.standing()

    # ── people ──

    @rule(
        number=NUMBERS,
        file=st.sampled_from(["profile", "profile", "notes"]),
        act=st.sampled_from(list(HANDS)),
        shape=SHAPES,
        place=st.integers(0, 9),
    )
    def edit(self, number: int, file: str, act: str, shape: str, place: int) -> None:
        """Somebody saves a file. What they take out before anybody looked is theirs to take."""
        text, made = self.said(shape)
        for path in self.files(self.ref(number), file):
            with suppress(UnicodeDecodeError):
                path.write_bytes(HANDS[act](path.read_bytes().decode(), text, place).encode())
        self.kept = (self.kept | set(made)) & self.standing()

    def files(self, name: str, file: str) -> list[Path]:
        """The profiles or notes in the folders whose name ends so."""
        return sorted((self.root / "entities").glob(f"*/*{name}/{file}.md"))

    @rule(number=NUMBERS, act=st.sampled_from(FOLDERS))
    def handle(self, number: int, act: str) -> None:
        """Somebody moves, copies or deletes."""
        for profile in list((self.root / "entities").glob(f"*/*--{self.ref(number)}")):
            other = profile.with_name(f"copy-{profile.name}"[-70:])
            if act == "goes":
                shutil.rmtree(profile)
            elif act == "is moved" and not other.exists():
                profile.rename(other)
            elif act == "is copied" and not other.exists():
                shutil.copytree(profile, other)
            elif act.startswith("loses"):
                for path in self.files(profile.name, "notes" if "notes" in act else "profile"):
                    path.unlink()
            elif act == "bytes":
                for path in self.files(profile.name, "profile"):
                    path.write_bytes(b"\xff\xfe broken")
        self.kept &= self.standing()

    # ── what the agent does by itself ──

    def look(self) -> Any:
        with state_dir.workspace_lock(self.work.state):
            return observe.look(EntityRepository(self.work, ME, self.now), None)

    @rule(hours=st.integers(0, 40))
    def go_on(self, hours: int) -> None:
        """Time goes by, and days are told."""
        self.now += hours * DAY // 24
        with state_dir.workspace_lock(self.work.state):
            own_edits.summarize_days(self.work, [ME], self.now)
            own_edits.update_patterns(EntityRepository(self.work, ME, self.now))
            assert own_edits.summarize_days(self.work, [ME], self.now) == ()
            assert not own_edits.update_patterns(EntityRepository(self.work, ME, self.now))

    @rule()
    def sweep(self) -> None:
        """A pass over everything; the next one writes nothing."""
        for _ in range(2):
            engine.run_pass(self.work, PassRequest(now_us=self.now))
        whole = self.snapshot()
        engine.run_pass(self.work, PassRequest(now_us=self.now))
        assert self.snapshot() == whole

    @rule()
    def stands(self) -> None:
        """The law of entities, after a look."""
        self.look()
        whole = self.snapshot()
        again = self.look()
        assert (again.edited, again.drifted, again.notices) == ([], [], []), again
        assert self.snapshot() == whole, "a second look writes"
        assert queries.verify_log(EntityRepository(self.work, ME, self.now)) == []
        self.told()

    def told(self) -> None:
        """Every file is what its events tell, or waits for a maintainer: asked of the desks, not of the agent."""
        queue = entities_store.drift(self.work.database, ME)
        waiting, drifting = {one.path for one in queue}, {one.id for one in queue}
        copies = {str(Path(one.path).parent) for one in queue if one.code == "id-twice"}
        log = EventLog(str(self.root), ME)
        texts = {each: fold(log.events_of(each)) for each in {one.entity_id for one in log.events() if one.entity_id}}
        found: set[tuple[str, str]] = set()
        for path in self.pages():
            place = parse_path(str(path.relative_to(self.root)))
            if place is None:
                continue
            found.add((place.id, place.file))
            name = str(path.relative_to(self.root))
            if name in waiting or str(Path(name).parent) in copies:
                continue
            replayed = texts[place.id]
            assert path.read_bytes().decode() == replayed[place.file].text, name
            rows = entities_store.files_of(self.work.database, ME, place.id)
            digest = sha256(path.read_bytes()).hexdigest()
            assert [row.sha256 for row in rows if row.path == name] == [digest], name
        for entity_id, replayed in texts.items():
            for file in replayed:
                assert (entity_id, file) in found or entity_id in drifting, f"{entity_id} {file} is missing silently"

    def snapshot(self, under: str = "") -> dict[str, tuple[bytes, int]]:
        found = (path for path in (self.root / under).rglob("*") if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    @invariant()
    def loses_nothing(self) -> None:
        assert self.kept <= self.standing(), self.kept - self.standing()


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        EntityMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.fixture(autouse=True)
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENTITIES_GROUND", str(tmp_path))


def test_no_text_is_lost_and_files_are_what_their_events_tell() -> None:
    run(settings.default.max_examples // 3, 12)


def test_a_copy_of_an_entity_loses_what_is_removed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "note", print)
    machine = EntityMachine()
    machine.start(kind="part")
    machine.handle(act="is copied", number=0)
    machine.sweep()
    machine.erase(at=1, how="meanwhile", number=0)
    machine.teardown()


def test_a_removal_takes_the_words_of_a_file_that_was_missing() -> None:
    """Its folder is called by them, too: under the new name the file comes back from its events."""
    machine = EntityMachine()
    machine.start(kind="part")
    machine.stands()
    machine.handle(act="loses its notes", number=0)
    word = sorted(machine.kept)[0]
    with state_dir.workspace_lock(machine.work.state):
        entities_erase.erase(
            machine.work, ME, paths=[], needles=[word.encode()], tombstone="memory/tombstones/x.md", now_us=machine.now
        )
    assert word not in machine.standing()
    machine.kept &= machine.standing()
    machine.teardown()


@pytest.mark.slow
def test_the_same_for_longer() -> None:
    run(settings.default.max_examples * 5, 24)
