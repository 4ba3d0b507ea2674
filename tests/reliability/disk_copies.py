"""Copies a disk while an operation is at one step of it, and has the copy recovered: a real file system's power loss.

`python disk_copies.py NAME FOLDER EVERY` makes an ext4 file system in a file, mounts it on FOLDER/disk, where
SIGNET_STATE points into, and runs the operation there, killed at every EVERY-th step. What the kernel has not written
back by then is not in the file; the file is copied, and the copy is mounted in its place and recovered by one pass. It
prints a JSON line a step: its number and label, whether the caller had been answered, what the pass made of it and what
is wrong: nothing is an empty list. Where nothing may be mounted it says so instead.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import operations
from crash_runner import KILLED, arm, forked
from flow_runner import refused
from recovery import Bench, versions, wanted

SIZE = 24 << 20


class Disk:
    """A file system in a file, on its mount point or not."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "disk.img"
        self.base = folder / "base.img"
        self.copy = folder / "copy.img"
        self.place = folder / "disk"

    def make(self) -> bool:
        """A new one, mounted; False where that is not allowed."""
        self.place.mkdir(parents=True, exist_ok=True)
        with open(self.file, "wb") as file:
            file.truncate(SIZE)
        made = subprocess.run(["mkfs.ext4", "-q", "-F", self.file], capture_output=True, check=False)
        return made.returncode == 0 and self.mount()

    def mount(self) -> bool:
        """Mounts it; its journal is played back as after any crash."""
        # It writes back when it is asked to, not by the clock: the file must not change while it is copied.
        command = ["mount", "-o", "loop,commit=600", self.file, self.place]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", self.place], check=True)

    def keep(self) -> None:
        """Keeps it as it is now, all of it written back."""
        self.unmount()
        shutil.copyfile(self.file, self.base)

    def put_back(self) -> None:
        """As it was kept."""
        shutil.copyfile(self.base, self.file)
        assert self.mount()

    def lose_power(self) -> None:
        """What has not reached the file by now is gone."""
        shutil.copyfile(self.file, self.copy)
        self.unmount()
        os.replace(self.copy, self.file)
        assert self.mount()


def main() -> int:
    """See the module."""
    name, folder, every = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    disk = Disk(folder)
    try:
        allowed = disk.make()
    except FileNotFoundError:
        allowed = False
    if not allowed:
        print(json.dumps({"unmounted": True}))
        return 0
    try:
        steps(disk, name, folder, every)
    finally:
        os.chdir("/")
        subprocess.run(["umount", disk.place], capture_output=True, check=False)
    return 0


def steps(disk: Disk, name: str, folder: Path, every: int) -> None:
    """Goes through the steps of the operation, and prints what became of each."""
    operation = operations.prepare(name, disk.place)
    bench = Bench(disk.place, operation.scenario(operation.prepared(disk.place)))
    with redirect_stdout(io.StringIO()):
        aim = wanted(bench)
    aim["whole"] = versions(bench.recorded())
    bench.put_back()
    os.chdir(folder)
    disk.keep()
    known: set[str] = set()

    def struck(step: int) -> int:
        arm(step)
        return refused(bench.scenario.work, bench.root)

    step, code = 1, KILLED
    while code == KILLED:
        disk.put_back()
        place = folder / "killed-at"
        place.unlink(missing_ok=True)
        code = forked(struck, step)
        disk.lose_power()
        line = {"step": step, "label": place.read_text() if place.exists() else "end", "answered": code == 0}
        found = bench.judged(code == 0, aim, known)
        if code not in (0, KILLED):
            found["wrong"].append(f"it ended with {code}")
        print(json.dumps(line | found), flush=True)
        os.chdir(folder)
        disk.unmount()
        step += every


if __name__ == "__main__":
    sys.exit(main())
