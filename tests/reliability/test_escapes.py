"""Paths that would leave the workspace, in every field that names a file: nothing outside is opened, whoever reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES, furnished
from workbench import NOW, ROOT, Answer, Vault, numbered, tree

from benchmarks import mutation
from signet_sync.formats.paths import leaves_workspace

# Commands one after the other in one process; written is each event with its paths, where a log is named.
_COMMANDS = """
import json, os, sys
commands, log = json.loads(sys.argv[1]), sys.argv[2]
EVENTS = dict.fromkeys(("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rmdir", "os.truncate",
                        "os.chmod", "os.chown", "os.utime", "sqlite3.connect"), 1)
EVENTS |= dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2)
def hear(event, arguments):
    for path in arguments[: EVENTS.get(event, 0)]:
        if isinstance(path, (str, bytes, os.PathLike)):
            os.write(log_file, os.fsencode(path).replace(b"\\n", b"\\\\n") + b"\\n")
if log:
    log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.addaudithook(hear)
from workbench import call
print(json.dumps([[answer.code, answer.out, answer.err] for answer in (call(*words) for words in commands)]))
"""
_OF_A_PROCESS = re.compile(r"/proc/\d+/stat")
_PYTHON = tuple({os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, *sys.path) if place})


def heard(vault: Vault, log: Path, commands: Sequence[Sequence[str]]) -> tuple[list[Answer], set[str]]:
    """The answers, and every path that the interpreter opened, listed, made, moved or deleted."""
    whole = json.dumps([["--workspace", str(vault.root), *command] for command in commands])
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests/support'}", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS, whole, str(log)],
        env=environ, cwd=vault.root.parent, capture_output=True, timeout=4 * 3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    answers = [Answer(*answer) for answer in json.loads(done.stdout)]
    return answers, set(log.read_text(errors="surrogateescape").split("\n")) - {""}


def elsewhere(vault: Vault, opened: set[str]) -> set[str]:
    """What of it is neither in the workspace nor in its state, nor a part of Python, nor about a process.

    A relative path is a name in a folder that was opened before; one that climbs is known by where it leads.
    """
    ours = (f"{os.path.realpath(place)}{os.sep}" for place in (vault.root, vault.state.parent, ROOT))
    inside = (*ours, *_PYTHON)
    places = (os.path.normpath(os.path.join(vault.root, path)) for path in opened)
    return {path for path in places if not f"{path}{os.sep}".startswith(inside) and not _OF_A_PROCESS.fullmatch(path)}


LINKS = ("summary_path", "transcript_path", "compaction_path")
# What follows the paths in files; all commands are run on links and pipes, below.
COMMANDS = (
    ("reindex", "--json", "--now", NOW),
    ("check", "--json", "--now", NOW),
    ("recall", "--words", "--json", "--limit", "1000", "lantern"),
    ("remove", "--agent", "default", numbered(1)["session_id"], "--reason", "x", "--yes", "--now", NOW),
    ("reindex", "--full", "--json", "--now", NOW),
    ("violations", "restore", "--all", "--yes", "--now", NOW),
    ("status", "--json"),
    ("context",),
)


def who(number: int) -> dict[str, str]:
    """A session for each path."""
    return {
        "session_id": f"{number:08d}-0000-4000-8000-000000000000",
        "captured_at": f"2026-03-{1 + number % 28:02d}T{number // 28 % 24:02d}:{number % 60:02d}:00.000Z",
    }


def lay(vault: Vault, paths: Sequence[str]) -> None:
    """The paths in every field of a file that leads to another: of artifacts, manifests, tombstones, notes, inputs."""
    for number, path in enumerate(paths):
        vault.put(
            made.summary(**who(number), manifest_path=path, body=f"# Lantern\n\n[[{path}]] [[{path}|x]] ![[{path}]]\n")
        )
        given = dict.fromkeys(LINKS, path) if number % 2 else {LINKS[number % 3]: path}
        vault.put(made.manifest(**who(number), **given, memory_md_refs=[path], body=f"[[{path}|summary]]\n"))
        if number % 10 == 0:
            name, raw = made.tombstone(session_id=f"gone{number}", removed_paths=list(paths[number : number + 10]))
            vault.put((name, raw), "memory/tombstones")
    lay_flows(vault, paths)
    lay_entities(vault, paths)


def lay_flows(vault: Vault, paths: Sequence[str]) -> None:
    """Journalled flows whose files would be written there."""
    vault.state.joinpath("journal").mkdir(exist_ok=True)
    token = made.token_for(session_id="x")
    for number, path in enumerate(paths[:200]):
        document = {
            "v": 1, "kind": "end", "agent_id": "default", "session_id": "x", "session_key": None, "project": None,
            "harness": None, "captured_at": made.CAPTURED, "started_at": None, "ended_at": None, "token": token,
            "manifest": f"memory/2026-03-28T10-00-00.000Z--{token}--manifest.md", "proposal": None, "headline": None,
            "bodies": {"summary": "x", "transcript": "y"}, "now": NOW, "flow_key": "k", "request": "r",
            "redactions": {}, "live": {},
        }  # fmt: skip
        document[("manifest", "captured_at", "token")[number % 3]] = path
        (vault.state / "journal" / f"{number:032x}.json").write_text(json.dumps(document))


def lay_entities(vault: Vault, paths: Sequence[str]) -> None:
    """A profile whose items lead there, and a ledger whose events rest on such files."""
    identity = vault.call("entity", "create", "part", "Wick", "--json").json["id"]
    (profile,) = vault.root.glob(f"entities/parts/*--{identity}/profile.md")
    items = "".join(f'- "quote" — why [[{path}|summary]]\n' for path in paths if path.isprintable())
    profile.write_bytes(profile.read_bytes() + f"\n{items}".encode("utf-8", "replace"))


def unread(folder: Path) -> None:
    """As if nobody had ever read it: the first look sets the time anew, whatever name it came by."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, ns=(0, path.stat().st_mtime_ns))


def begun(vault: Vault) -> None:
    """Makes an index of one session."""
    vault.session(1)
    vault.reindex()


def escapes(vault: Vault, count: int, log: Path) -> tuple[set[str], int]:
    """What such a vault makes the commands open that an honest one does not, and how many files led out of it."""
    # As many files as the hostile one has.
    model = Vault(vault.root.parent / "honest" / "vault")
    begun(model)
    lay(model, [f"memory/{made.summary(**who(number))[0]}" for number in range(count)])
    honest = elsewhere(model, heard(model, log, COMMANDS)[1])
    shutil.rmtree(model.root.parent)
    shutil.rmtree(os.environ["SIGNET_STATE"])
    outside = vault.root.parent / "outside"
    outside.mkdir()
    (outside / "note.md").write_text("secret")
    for link in (vault / "link", vault.memory / "link"):
        link.symlink_to(outside)
    begun(vault)
    lay(vault, list(mutation.paths(count, 1, str(outside))))
    before = tree(outside)
    unread(outside)
    answers, opened = heard(vault, log, COMMANDS)
    assert [answer for answer in answers if answer.code not in (0, 1, 2)] == [] and opened
    assert [path for path in (outside, outside / "note.md") if path.stat().st_atime_ns] == [], "nor through a link"
    assert tree(outside) == before
    assert not [path for path in vault.root.rglob("*.md") if path.is_file() and b"secret" in path.read_bytes()]
    flagged = sum(1 for told in answers[1].json["problems"] if told["code"] == "path-escape")
    return elsewhere(vault, opened) - honest, flagged


@pytest.mark.parametrize("count", [len(mutation.ESCAPES), pytest.param(1_000, marks=pytest.mark.slow)])
def test_no_path_of_a_file_opens_anything_outside(tmp_path: Path, count: int) -> None:
    found, flagged = escapes(Vault(tmp_path / "vault"), count, tmp_path / "opened.log")
    assert found == set() and flagged > count


def test_an_honest_path_is_none_of_these_and_every_other_one_is_told() -> None:
    assert not leaves_workspace("memory/2026-03-28T10-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md")
    for path in mutation.paths(2_000, 1, "/outside"):
        real = os.path.normpath(os.path.join("/workspace", path.replace("\0", "")))
        assert leaves_workspace(path) or f"{real}/".startswith("/workspace/"), path


# ── what stands in the place of a file or folder of ours ──

# What a person or another program may put there; what we write is found by itself.
THEIRS = ("signet-sync.toml", "agent.yaml", "AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "memory/tombstones/x.md")
TRAPS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda place, outside: place.symlink_to(outside),
    "pipe": lambda place, outside: os.mkfifo(place),
    "loop": lambda place, outside: place.symlink_to(place.name),
}
# These end a workspace, make one, or need input; the repository has traps of its own in tests/history.
NOT_TRIED = ("eject", "init", "demo")
SAID = b"what lies outside"


def places(root: Path) -> list[str]:
    """One path for every kind of file and folder in a workspace, the deepest first."""
    kinds: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(".git/") and name != ".git":
            kinds.setdefault(re.sub(r"[0-9a-z]{12,}|\d+", "*", name), name)
    return sorted({*kinds.values(), *THEIRS}, key=lambda name: (-name.count("/"), name))


def trapped(vault: Vault, names: Sequence[str], trap: str, outside: Path) -> None:
    """Puts a trap in each of these places; a folder is one only as a link to a folder."""
    for name in names:
        place = vault / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
            place.symlink_to(outside)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        TRAPS[trap](place, outside / "note.md")


def lines_of(vault: Vault) -> list[list[str]]:
    """The lines of all commands that end by themselves and need no input; those that write most come last."""
    known = json.loads((vault.root.parent / "known.json").read_text())
    known |= {"folder": str(vault.root.parent), "beside": "", "workspace": str(vault.root)}
    tried = {n: line for n, line in COMMAND_LINES.items() if not (line.serves or line.given or n in NOT_TRIED)}
    return [
        [*name.split(), *line.arguments(known)]
        for name, line in sorted(tried.items(), key=lambda one: not one[1].reads)
    ]


def is_left_alone(vault: Vault, names: Sequence[str], trap: str) -> None:
    """Runs every command on a vault with traps: none waits, and none reads, writes or shows what is outside."""
    outside = vault.root.parent / "outside"
    outside.mkdir()
    (outside / "note.md").write_bytes(SAID)
    trapped(vault, names, trap, outside)
    before = tree(outside)
    unread(outside)
    commands = [["reindex"], *lines_of(vault), ["reindex", "--full"]]
    answers, _ = heard(vault, vault.root.parent / "opened.log", commands)
    for words, answer in zip(commands, answers, strict=True):
        assert answer.code in (0, 1, 2, 3, 5) and "Traceback" not in answer.err, (words, answer)
        assert SAID.decode() not in answer.out + answer.err, words
    assert [path for path in (outside, outside / "note.md") if path.stat().st_atime_ns] == []
    assert tree(outside) == before
    held = [path for path in vault.root.rglob("*") if path.is_file() and SAID in path.read_bytes()]
    assert [path for path in held if not path.resolve().is_relative_to(outside)] == []


@pytest.fixture(scope="module")
def mould(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Vault]:
    return furnished(tmp_path_factory.mktemp("mould"))


@pytest.mark.parametrize(
    "trap", [trap if trap == "link" else pytest.param(trap, marks=pytest.mark.slow) for trap in TRAPS]
)
def test_in_the_place_of_any_file_a_trap_is_left_alone(
    mould: Callable[[Path], Vault], tmp_path: Path, trap: str
) -> None:
    vault = mould(tmp_path)
    files = [name for name in places(vault.root) if not (vault / name).is_dir()]
    is_left_alone(vault, files, trap)


@pytest.mark.slow
def test_in_the_place_of_any_folder_a_link_is_left_alone(mould: Callable[[Path], Vault], tmp_path: Path) -> None:
    """All but `memory`, without which no command goes on."""
    vault = mould(tmp_path)
    folders = [name for name in places(vault.root) if (vault / name).is_dir() and name != "memory"]
    is_left_alone(vault, folders, "link")
