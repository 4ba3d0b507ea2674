"""Kills `remove --purge-history` at durable steps of the purge, each in a fork; see `crash_runner`.

`python purge_runner.py FOLDER KEY FIRST EVERY` wants FOLDER/before (workspace) and FOLDER/state-before (its state), and
prints one JSON line a step: its label, and what is wrong once an ordinary pass has come through.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pygit2
from crash_runner import KILLED, NOW, Steps, command, forked

from signet_sync.history import purge, purge_plan
from signet_sync.history.git import lock, packs

CANARY = b"zxvcanary"


def arm(last: int) -> None:
    """Steps at every durable call that is made while a purge is begun or finished, and around those of libgit2."""
    steps = Steps(last)

    def within(work):
        def counted(*given, **named):
            kept = {name: getattr(os, name) for name in ("link", "replace", "rename", "unlink", "rmdir", "fsync")}
            for name in kept:
                steps.wrap(os, name)
            try:
                return work(*given, **named)
            finally:
                for name, real in kept.items():
                    setattr(os, name, real)

        return counted

    purge_plan.begin = within(purge_plan.begin)
    purge_plan.finish = within(purge_plan.finish)
    for where, name in (
        (packs, "_write_pack"),
        (purge, "_move"),
        (purge, "_forget_logs"),
        (purge, "_prepare"),
        (lock.Replacement, "stage"),
        (lock.Replacement, "publish"),
    ):
        steps.wrap(where, name)


def holding(root: Path) -> list[str]:
    """Objects and files of the repository that hold the canary."""
    repository = pygit2.Repository(str(root))
    found = [str(oid) for oid in repository.odb if CANARY in repository.odb.read(oid)[1]]
    return found + [str(p) for p in (root / ".git").rglob("*") if p.is_file() and CANARY in p.read_bytes()]


def fsck(root: Path) -> str:
    """What git has to complain about, if it is installed."""
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", "-C", str(root), "fsck", "--strict", "--full"], capture_output=True, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode()


def recover(root: Path, removing: list[str]) -> int:
    """An ordinary pass, or the command once more where it had not begun; then all that must hold."""
    wrong = []
    if trouble := fsck(root):
        wrong.append(f"killed: {trouble}")
    if command(str(root), "reindex", "--now", NOW):
        wrong.append("reindex failed")
    if not list(root.glob("memory/tombstones/*.md")) and command(str(root), *removing):
        wrong.append("removing once more failed")
    wrong += [f"holds it: {name}" for name in holding(root)]
    if trouble := fsck(root):
        wrong.append(f"afterwards: {trouble}")
    for name in ("signet-purge", "signet-purge-objects", "signet-index", "index.lock"):
        if (root / ".git" / name).exists():
            wrong.append(f"left over: {name}")
    if command(str(root), "checkpoint", "--now", NOW, "after"):
        wrong.append("no commit afterwards")
    if trouble := fsck(root):
        wrong.append(f"after a commit: {trouble}")
    (root.parent / "wrong.json").write_text(json.dumps(wrong))
    return 0


def main() -> int:
    """See the module."""
    folder, key, step, every = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for module in ("reindex", "remove", "history"):
        import_module(f"signet_sync.cli.{module}")
    for module in ("privacy.scrub", "privacy.remove", "history.operations"):
        import_module(f"signet_sync.{module}")
    removing = ["remove", key, "--purge-history", "--reason", "asked", "--yes", "--now", NOW]
    root, state = folder / "vault", Path(os.environ["SIGNET_STATE"])
    os.chdir(folder)
    while True:
        for here, before in ((root, folder / "before"), (state, folder / "state-before")):
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(before, here, symlinks=True)

        def killed(last: int = step) -> int:
            arm(last)
            return command(str(root), *removing)

        code = forked(killed)
        label = (folder / "killed-at").read_text() if code == KILLED else "end"
        wrong = [] if code in (0, KILLED) else [f"exit {code}"]
        (folder / "wrong.json").unlink(missing_ok=True)
        code_after = forked(recover, root, removing)
        wrong += json.loads((folder / "wrong.json").read_text()) if code_after == 0 else [f"recovery: {code_after}"]
        print(json.dumps({"step": step, "label": label, "wrong": wrong}), flush=True)
        if code != KILLED:
            return 0
        step += every


if __name__ == "__main__":
    sys.exit(main())
