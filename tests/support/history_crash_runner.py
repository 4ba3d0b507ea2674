"""Kills `create` or `commit` at every step that changes the disk, each in a fork; prints what was wrong afterwards.

`python history_crash_runner.py FOLDER SCENARIO EVERY` prints one JSON line for every EVERYth step, and one for the run
that ended by itself.
"""

import json
import os
import shutil
import subprocess
import sys

from history_vault import ID, HistoryVault, git

from signet_sync.history import commit, repository

EVENTS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR


def prepared(folder, scenario):
    past = HistoryVault(os.path.join(folder, "before"))
    past.put("memory/a.md", "one\n")
    past.put("memory/b.md")
    if scenario != "create":
        past.begin()
    if scenario == "first":
        for number in range(120):
            past.put(f"memory/{number}.md", f"{number}\n")
    if scenario == "change":
        past.commit("before")
        past.put("memory/a.md", "two\n")
        (past.root / "memory/b.md").unlink()
    return past


def step(past, scenario):
    repository.create(str(past.root), ID, commit.BESIDE) if scenario == "create" else past.commit("after")


def killed(past, scenario, last):
    """Whether the fork was killed at its `last` step; False where it ended before."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 137
    count = 0

    def hook(event, given):
        nonlocal count
        if event in EVENTS or (event == "open" and isinstance(given[2], int) and given[2] & WRITING):
            count += 1
            if count == last:
                os._exit(137)

    sys.addaudithook(hook)
    step(past, scenario)
    os._exit(0)


def wrong(past, scenario):
    found = []
    standing = past.look()
    if scenario == "create":
        if standing not in ("no-repository", ""):
            found.append(standing)
        past.begin()
    else:
        found += fsck(past)
        if not past.log():
            if scenario != "first":
                found.append("no history")
        elif past.log()[0].subject not in ("before", "after", "workspace init"):
            found.append("what is this?")
    past.commit("next")
    if past.commit("last")[0] is not None:
        found.append("the next commit is not the last")
    found += fsck(past)
    if git(past.root, "status", "--porcelain"):
        found.append(git(past.root, "status", "--porcelain"))
    for path in past.root.glob("memory/*"):
        if past.data(f"memory/{path.name}") != path.read_bytes():
            found.append(path.name)
    if scenario == "create" and os.path.lexists(past.root / ".signet/tmp/history"):
        found.append("what was begun is still there")
    return found + [name for name in os.listdir(past.root / ".git") if name.endswith(".lock")]


def fsck(past):
    run = subprocess.run(["git", "-C", past.root, "fsck", "--strict"], capture_output=True, text=True, check=False)
    return [line for line in (run.stdout + run.stderr).splitlines() if not line.startswith(("dangling", "notice"))]


def main(folder, scenario, every):
    before = prepared(folder, scenario)
    root = os.path.join(folder, "vault")
    last, ended = 1, False
    while not ended:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(before.root, root, symlinks=True)
        past = HistoryVault(root)
        ended = not killed(past, scenario, last)
        print(json.dumps({"step": last, "killed": not ended, "wrong": wrong(past, scenario)}))
        last += int(every)


main(*sys.argv[1:])
