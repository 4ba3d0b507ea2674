"""A vault under test: its files, the real command line over it, and what stands on disk before and after."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest

from benchmarks.index_rows import canonical_dump
from signet_sync.app.ask import run_hook
from signet_sync.app.workspace import open_to_write
from signet_sync.cli import main
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-03-29T12:00:00.000Z"


@dataclass(frozen=True)
class Answer:
    """What a command said: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """Makes data the input of this process: a hook reads the descriptor, a command the stream."""
    stream, before = sys.stdin, os.dup(0)
    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        os.dup2(given.fileno(), 0)
    sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    try:
        yield
    finally:
        sys.stdin = stream
        os.dup2(before, 0)
        os.close(before)


def call(*arguments: str | os.PathLike[str], given: bytes | None = None) -> Answer:
    """Runs a command line in this process; what is `given` is its input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with nullcontext() if given is None else standard_input(given), redirect_stdout(out), redirect_stderr(err):
        code = main.run([os.fspath(argument) for argument in arguments])
    return Answer(code, *(stream.buffer.getvalue().decode("utf-8") for stream in (out, err)))


def spawn(*arguments: str | os.PathLike[str], prefix: Iterable[str] = (), **given: Any) -> Answer:
    """Runs a command line in a process of its own; `environ` adds to the environment, `prefix` goes before python."""
    return run_process([*prefix, sys.executable, "-m", "signet_sync", *map(os.fspath, arguments)], **given)


def run_process(words: list[str], *, environ: Mapping[str, str] | None = None, **given: Any) -> Answer:
    """Runs a program that finds ours; what it said."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    done = subprocess.run(words, env=environ, capture_output=True, timeout=300, check=False, **given)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def hook(*arguments: str | os.PathLike[str], given: bytes, environ: Mapping[str, str] | None = None) -> Answer:
    """Runs a hook on streams of its own in this process, where nothing but what it does is looked at."""
    held = [os.dup(number) for number in (1, 2)]
    with (
        pytest.MonkeyPatch.context() as machine,
        standard_input(given),
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        for name, value in (environ or {}).items():
            machine.setenv(name, value)
        try:
            for number, stream in enumerate((out, err), 1):
                os.dup2(stream.fileno(), number)
            code = run_hook([os.fspath(argument) for argument in arguments])
        finally:
            for number, descriptor in enumerate(held, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        said = [os.pread(stream.fileno(), 1 << 20, 0).decode() for stream in (out, err)]
    return Answer(code, *said)


# A process of root may do what no mode forbids; without these capabilities it is held by modes like anybody else.
_ORDINARY = """
import ctypes, os, sys
for capability in (1, 2, 3):
    ctypes.CDLL(None, use_errno=True).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def spawn_ordinary(*arguments: str | os.PathLike[str], **given: Any) -> Answer:
    """Runs a command line in a process that file modes bind, even when the tests run as root."""
    if os.geteuid() != 0:
        return spawn(*arguments, **given)
    return run_process([sys.executable, "-c", _ORDINARY, "-m", "signet_sync", *map(os.fspath, arguments)], **given)


def sampled(cases: Iterable[Any], every: int = 3) -> list[Any]:
    """Cases of which each goes the same way: some of them speak for all, unless somebody asks for the slow ones.

    A tuple is a case of several arguments.
    """
    return [
        case
        if number % every == 0
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]


# What every pass writes, though nothing changed: when it was.
SIGNS = ("last-pass.json",)


def entry(path: Path) -> tuple[Any, ...]:
    """What a name stands for: its kind and mode, time of change, inode and content."""
    status = path.lstat()
    content = ""
    if stat.S_ISREG(status.st_mode):
        content = sha256(path.read_bytes()).hexdigest() if status.st_size < 1 << 26 else str(status.st_size)
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    return oct(status.st_mode), status.st_mtime_ns, status.st_ino, content


def tree(root: Path, *, but: Iterable[str] = ()) -> dict[str, tuple[Any, ...]]:
    """Everything below a folder, by path; `but` are names of entries to leave out with all that they hold."""
    found: dict[str, tuple[Any, ...]] = {}
    left_out = set(but)
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in [*folders, *names]:
            if name not in left_out:
                path = Path(where) / name
                with suppress(FileNotFoundError):  # it goes while an agent works
                    found[os.path.relpath(path, root)] = entry(path)
    return found


def holding(words: Iterable[bytes], *places: Path) -> list[tuple[bytes, Path]]:
    """Each of these words, in whatever case, with the files below some folders whose name or bytes hold it."""
    wanted = {word: word.lower() for word in words}
    found = []
    for path in (path for place in places for path in place.rglob("*")):
        with suppress(FileNotFoundError):  # it goes while an agent works
            if path.is_file() and not path.is_symlink():
                data = path.name.encode("utf-8", "surrogateescape").lower() + b"\n" + path.read_bytes().lower()
                found += [(word, path) for word, lower in wanted.items() if lower in data]
    return found


def contents(root: Path, *, but: Iterable[str] = ()) -> dict[str, str]:
    """The content of every file below a folder, by path, without times and inodes."""
    return {path: found[3] for path, found in tree(root, but=but).items() if not found[0].startswith("0o4")}


def place_of(root: Path | str, database: str | None = None) -> IndexPlace:
    """Where a workspace and its index are, as the command line gives it to the page."""
    return IndexPlace(str(root), database, Settings, lambda words: f"signet-sync {words}", open_to_write)


class Vault:
    """A workspace in a folder of its own, with the state that the environment names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = root / "memory"
        self.memory.mkdir(parents=True, exist_ok=True)

    def put(self, files: Mapping[str, bytes] | tuple[str, bytes], where: str = "memory") -> list[str]:
        """Writes files under `memory/` (or elsewhere); gives their paths."""
        folder = self.root / where
        folder.mkdir(parents=True, exist_ok=True)
        pairs = [files] if isinstance(files, tuple) else list(files.items())
        for name, raw in pairs:
            (folder / name).write_bytes(raw)
        return [f"{where}/{name}" for name, _ in pairs]

    def session(self, number: int = 1, **given: Any) -> dict[str, str]:
        """Writes a session of three files, one a day backwards from 28 March; gives their paths by kind."""
        given = numbered(number) | given
        who = {k: v for k, v in given.items() if k in ("agent_id", "session_id", "session_key", "captured_at")}
        shared = who | {k: v for k, v in given.items() if k in ("project", "harness", "ended_at")}
        files = dict([made.summary(**given), made.transcript(**given), made.manifest(**shared)])
        self.put(files)
        return {kind: made.path_for(kind, **who) for kind in ("summary", "transcript", "manifest")}

    def indexed(self, *numbers: int) -> Vault:
        """The vault with some of these sessions, indexed."""
        for number in numbers:
            self.session(number)
        self.reindex()
        return self

    def __truediv__(self, path: str) -> Path:
        return self.root / path

    def call(self, *arguments: str, given: bytes | None = None) -> Answer:
        """Runs a command on this workspace; what is `given` is its input."""
        return call("--workspace", self.root, *arguments, given=given)

    def spawn(self, *arguments: str, **given: Any) -> Answer:
        """Runs a command on this workspace in a process of its own."""
        return spawn("--workspace", self.root, *arguments, **given)

    def hook(self, *arguments: str, given: bytes, environ: Mapping[str, str] | None = None) -> Answer:
        """Runs a hook on this workspace in this process."""
        return hook("--workspace", self.root, "hook", *arguments, given=given, environ=environ)

    def reindex(self, *arguments: str, code: int = 0, now: str = NOW) -> Any:
        """`reindex --json`; gives the document and holds it to an exit code."""
        answer = self.call("reindex", "--json", "--now", now, *arguments)
        assert answer.code == code, answer
        return answer.json

    @property
    def state(self) -> Path:
        """The state folder."""
        return Path(state_dir.locate(str(self.root)).path)

    @property
    def db(self) -> Path:
        """The database."""
        return Path(state_dir.locate(str(self.root)).database)

    @contextmanager
    def database(self, **given: Any) -> Iterator[Database]:
        """The database opened for a look."""
        database = Database(str(self.db), readonly=given.pop("readonly", True), **given)
        try:
            yield database
        finally:
            database.connection.close()

    def dump(self) -> list[tuple[Any, ...]]:
        """The canonical dump of content-linked rows."""
        with self.database() as database:
            return canonical_dump(database)

    def dump_from_scratch(self, name: str = "scratch.db") -> list[tuple[Any, ...]]:
        """The canonical dump of a new database over the same files."""
        place = self.root.parent / name
        answer = self.call("--db", str(place), "reindex", "--index-only", "--json", "--now", NOW)
        assert answer.code == 0, answer
        database = Database(str(place), readonly=True)
        try:
            return canonical_dump(database)
        finally:
            database.connection.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{place}{suffix}").unlink(missing_ok=True)

    def rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        with self.database() as database:
            return list(database.execute(sql, bindings))

    def page(self, path: str = "MEMORY.md") -> str:
        """The text of a page."""
        return (self.root / path).read_text(encoding="utf-8")

    def problems(self, document: Any) -> dict[str, tuple[str, str]]:
        """Verdict and code by path of a `reindex` or `check` document."""
        return {entry["path"]: (entry["verdict"], entry["code"]) for entry in document["problems"]}

    def hits(self, *words: str, agent: str = "default") -> list[str]:
        """The paths of the files with every word."""
        answer = self.call("recall", "--words", "--json", "--limit", "1000", "--agent", agent, *words)
        assert answer.code == 0, answer
        return [file["path"] for file in answer.json["files"]]


def cast(folder: Path, make: Callable[[Vault], None]) -> Callable[[Path], Vault]:
    """Makes a vault once, in a module's own folder; what comes back puts it and its state into the folder of a test."""
    with pytest.MonkeyPatch.context() as machine:
        for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "config.toml")):
            machine.setenv(name, str(folder / place))
        make(Vault(folder / "vault"))
    # Where it was made nothing stands any more: each copy is a workspace that was moved.
    mould = (folder / "vault").rename(folder / "mould")

    def copied(where: Path) -> Vault:
        shutil.copytree(mould, where / "vault")
        shutil.copytree(folder / "state", os.environ["SIGNET_STATE"])
        return Vault(where / "vault")

    return copied


def numbered(number: int) -> dict[str, Any]:
    """Identity, time and text of a made-up session, each unlike the others."""
    return {
        "session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}",
        "captured_at": f"2026-03-{29 - number:02d}T10:{number:02d}:00.000Z",
        "body": f"# Session {number}\n\n## Decisions\n\n- Lantern keeps its word number{number}x in src/queue.py.\n",
        "memory_sentence": f"In lantern step number {number} bounded the retry loop of src/queue.py so that it ends.",
    }


def path_of(kind: str = "summary", number: int = 1) -> str:
    """The path of a file of such a session."""
    return made.path_for(kind, **{name: numbered(number)[name] for name in ("session_id", "captured_at")})


def to_another_version(vault: Vault) -> None:
    """Makes the database one of another version: with less, with more, and another number."""
    database = Database(str(vault.db))
    with database.transaction():
        database.execute("alter table thread_sessions drop column status")
        database.execute("alter table memories drop column concept_tags")
        database.execute("drop table garden_days")
        database.execute("create table meta(key text primary key, value text not null) without rowid")
        database.execute("pragma user_version = 3")
    database.connection.close()
