"""What commands open: according to the interpreter's audit events anywhere, by strace where it may trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from workbench import ROOT, Answer, Vault

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
_OPEN = re.compile(r'(?:open|openat|openat2|creat)\((?:(AT_FDCWD|\d+)(?:<(.*?)>)?, )?"((?:[^"\\]|\\.)*)"')
# The names of semaphores, which workers share, are drawn.
_OF_A_PROCESS = re.compile(r"/proc/\d+/stat|/dev/shm/sem\.[\w-]+")
_PYTHON = tuple({os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, *sys.path) if place})


def heard(vault: Vault, log: Path, commands: Sequence[Sequence[str]]) -> tuple[list[Answer], set[str]]:
    """The answers, and every path that the interpreter opened, listed, made, moved or deleted."""
    answers = _run(vault, commands, [], str(log))
    return answers, set(log.read_text(errors="surrogateescape").split("\n")) - {""}


def traced(vault: Vault, log: Path, commands: Sequence[Sequence[str]]) -> tuple[list[Answer], set[str]]:
    """The same, reported by the kernel of every process: names are joined to the folders that they were opened in."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not here to watch what is opened")
    # The filter stops a process at these calls alone: at every call, five thousand files take most of an hour.
    prefix = ["strace", "-f", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-o", str(log)]
    prefix += ["-e", "trace=open,openat,openat2,creat"]
    answers = _run(vault, commands, prefix, "")
    found = set()
    for line in log.read_text(errors="surrogateescape").splitlines():
        if match := _OPEN.search(line):
            descriptor, folder, name = match.groups()
            base = folder if descriptor not in (None, "AT_FDCWD") and folder else str(vault.root.parent)
            found.add(os.path.join(base, name))
    return answers, found


def _run(vault: Vault, commands: Sequence[Sequence[str]], prefix: list[str], log: str) -> list[Answer]:
    whole = json.dumps([["--workspace", str(vault.root), *command] for command in commands])
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests/support'}", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [*prefix, sys.executable, "-c", _COMMANDS, whole, log],
        env=environ, cwd=vault.root.parent, capture_output=True, timeout=4 * 3600, check=False,
    )  # fmt: skip
    if prefix and b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr.decode()
    return [Answer(*answer) for answer in json.loads(done.stdout)]


def elsewhere(vault: Vault, opened: set[str]) -> set[str]:
    """What of it is neither in the workspace nor in its state, nor a part of Python, nor about a process.

    A relative path is a name in a folder that was opened before; one that climbs is known by where it leads.
    """
    ours = (f"{os.path.realpath(place)}{os.sep}" for place in (vault.root, vault.state.parent, ROOT))
    inside = (*ours, *_PYTHON)
    places = (os.path.normpath(os.path.join(vault.root, path)) for path in opened)
    return {path for path in places if not f"{path}{os.sep}".startswith(inside) and not _OF_A_PROCESS.fullmatch(path)}
