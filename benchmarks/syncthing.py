"""Two machines with one vault, each with its agent, and real Syncthing between them.

`python -m benchmarks.syncthing --minutes 5` lets people and agents work on both for so long: sessions end and are
resumed, lines are typed around the pages' blocks and below manifests, sessions are removed, and now and then one
machine is offline. Then both come to rest, and it is looked at what must be true: no word lost, none back that was
removed, the files of both equal. Everything happens in a temporary folder, on this machine's loopback. Exit code 1 when
anything did not hold; without Syncthing it says so and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.ground import PROJECT
from signet_sync.formats.filename import has_conflict_mark

STEP = 0.8  # seconds from one thing to the next
REST = 12.0  # seconds in which nothing may move: two full passes of each agent
LONGEST = 300.0  # seconds until rest
BEGIN = b"<!-- signet:begin -->"
SAID = (
    "ask Jo about the pier lamp red before Friday call harbour master tide tables wrong buy rope paint for hull why is"
    " north buoy dark again check solar panel write letter museum about brass clock"
).split()


class Machine:
    """A copy of the vault with a home, an agent and a Syncthing of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.vault, self.home, self.sync = (folder / name / part for part in ("vault", "home", "sync"))
        for place in (self.vault / "memory", self.home):
            place.mkdir(parents=True)
        (self.vault / ".stignore").write_text("/.signet\n")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SIGNET_")}
        state, config = str(self.home / "state"), str(self.home / "config.toml")
        self.env = kept | {
            "HOME": str(self.home),
            "SIGNET_STATE": state,
            "SIGNET_CONFIG": config,
            "SIGNET_RECONCILE_INTERVAL": "5",
            "PYTHONPATH": PROJECT,
        }
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            self.port, self.gui = one.getsockname()[1], two.getsockname()[1]
        made = ["syncthing", "generate", f"--home={self.sync}"]
        subprocess.run(made, env=self.env, check=True, capture_output=True, timeout=60)
        own = xml.parse(self.sync / "config.xml").find("device")
        self.id = own.get("id", "") if own is not None else ""
        self.passing: subprocess.Popen[bytes] | None = None

    def join(self, other: Machine) -> None:
        """Writes the configuration: one folder with one other machine, and nobody else is asked for anything."""
        place = self.sync / "config.xml"
        tree = xml.parse(place)
        root = tree.getroot()
        for element in [*root.findall("folder"), *root.findall("device")]:
            root.remove(element)
        folder = xml.SubElement(root, "folder", id="vault", path=str(self.vault), type="sendreceive")
        folder.set("rescanIntervalS", "5")
        folder.set("fsWatcherEnabled", "true")
        folder.set("fsWatcherDelayS", "1")
        xml.SubElement(folder, "maxConflicts").text = "10"  # as Syncthing itself sets it up
        for one in (self, other):
            xml.SubElement(folder, "device", id=one.id)
            device = xml.SubElement(root, "device", id=one.id, name=one.vault.parent.name)
            xml.SubElement(device, "address").text = f"tcp://127.0.0.1:{one.port}"
        options = root.find("options")
        assert options is not None
        alone = "globalAnnounceEnabled localAnnounceEnabled relaysEnabled natEnabled crashReportingEnabled startBrowser"
        given = dict.fromkeys(alone.split(), "false") | {"autoUpgradeIntervalH": "0", "urAccepted": "-1"}
        given |= {"listenAddress": f"tcp://127.0.0.1:{self.port}", "reconnectionIntervalS": "2"}
        for name, value in given.items():
            for element in options.findall(name):
                options.remove(element)
            xml.SubElement(options, name).text = value
        address = root.find("gui/address")
        assert address is not None
        address.text = f"127.0.0.1:{self.gui}"
        tree.write(place)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Syncthing and the agent, until the end."""
        ours = [sys.executable, "-m", "signet_sync", "--workspace", str(self.vault)]
        serve = ["syncthing", "serve", f"--home={self.sync}", "--no-browser"]
        lines = serve, [*ours, "run"]
        with open(self.home / "said.log", "ab") as log:
            started = [subprocess.Popen(line, env=self.env, stdout=log, stderr=log) for line in lines]
        self.passing = started[0]
        try:
            yield
        finally:
            for process in started:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            for process in started:
                process.wait(30)

    def online(self, *, on: bool) -> None:
        """Stops Syncthing, as if the machine had no network, or lets it go on."""
        assert self.passing is not None
        self.passing.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def call(self, *words: str, given: object = None) -> int:
        """Runs a command on this machine; returns its exit code."""
        line = [sys.executable, "-m", "signet_sync", "--workspace", str(self.vault), *words]
        raw = json.dumps(given).encode() if given is not None else b""
        return subprocess.run(line, env=self.env, input=raw, capture_output=True, timeout=120).returncode

    def tree(self) -> dict[str, bytes]:
        """Every file of the copy that Syncthing carries, when it is whole."""
        found = {}
        for path in self.vault.rglob("*"):
            inside = path.relative_to(self.vault)
            if inside.parts[0] not in (".signet", ".stfolder", ".stignore") and not path.name.startswith(".syncthing."):
                with suppress(OSError):
                    found[str(inside)] = path.read_bytes() if path.is_file() else b""
        return found


class Life:
    """What people and agents do, and what must be true of it in the end."""

    def __init__(self, machines: Sequence[Machine], seed: int) -> None:
        self.machines = machines
        self.random = random.Random(seed)
        self.words: set[str] = set()  # typed around pages
        self.said: dict[str, set[str]] = {}  # by session
        self.gone: dict[str, set[str]] = {}
        self.did: Counter[str] = Counter()
        self.told: dict[str, str] = {}
        self.number = 0

    def step(self) -> None:
        """Does one thing on one of the machines."""
        machine, acts = (
            self.random.choice(self.machines),
            (self.ends, self.resumes, self.types, self.notes, self.removes),
        )
        act = self.random.choices(acts, (5, 2, 6, 2, 2))[0]
        self.number += 1
        word = f"quill{self.number:05}x"
        if act(machine, word):
            self.did[act.__name__] += 1
            self.told[word] = f"{act.__name__} on {machine.vault.parent.name} at {time.strftime('%H:%M:%S')}"

    def ends(self, machine: Machine, word: str, session: str = "") -> bool:
        session = session or f"session-{self.number:05}"
        said = f"## User\n\nWhy does {word} wait?\n\n## Assistant\n\nsrc/{word}.py bounds its loop now.\n"
        given = {"session_id": session, "project": "/home/ada/lantern", "harness": "codex", "transcript": said}
        done = machine.call("session", "end", "--input", "-", given=given | {"transcript_is": "tail"}) == 0
        self.said.setdefault(session, set()).update([word] if done else [])
        return done

    def resumes(self, machine: Machine, word: str) -> bool:
        return bool(self.said) and self.ends(machine, word, self.random.choice(sorted(self.said)))

    def types(self, machine: Machine, word: str) -> bool:
        """A person writes a line above or below the block of the page, as an editor saves."""
        page = machine.vault / "MEMORY.md"
        if not page.exists():
            return False
        raw, said = page.read_bytes(), self.random.sample(SAID, 5)
        line = f"{self.random.choice(('', '- '))}{' '.join(said)} {word}\n".encode()
        new = raw + line if self.random.random() < 0.5 else line + raw
        if raw.count(BEGIN) != 1 or page.read_bytes() != raw:
            return False
        saved = page.with_name(".goutputstream-AB12CD")
        saved.write_bytes(new)
        saved.replace(page)
        self.words.add(word)
        return True

    def notes(self, machine: Machine, word: str) -> bool:
        """A person writes below a manifest."""
        for path in self.random.sample(found := sorted(machine.vault.glob("memory/*--manifest.md")), len(found)):
            raw = path.read_bytes()
            for session in (one for one in self.said if f'session_id: "{one}"'.encode() in raw):
                with open(path, "ab") as file:
                    file.write(f"My note: {word}\n".encode())
                self.said[session].add(word)
                return True
        return False

    def removes(self, machine: Machine, word: str) -> bool:
        name = self.random.choice([*self.said, ""])
        if not name or machine.call("remove", name, "--reason", "asked for", "--yes") not in (0, 1):
            return False
        self.gone[name] = self.said.pop(name)
        return True

    def settle(self) -> bool:
        """Waits until nothing moves any more."""
        until, before, since = time.monotonic() + LONGEST, None, time.monotonic()
        while time.monotonic() < until:
            now = [machine.tree() for machine in self.machines]
            if now != before or now[0] != now[1]:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > REST:
                return True
            time.sleep(1.0)
        return False

    def wrong(self) -> list[str]:
        """Says what does not hold."""
        trees = [machine.tree() for machine in self.machines]
        found = [
            f"differs: {path}" for path in trees[0].keys() | trees[1].keys() if trees[0].get(path) != trees[1].get(path)
        ]
        wanted = self.words.union(*self.said.values())
        for machine, tree in zip(self.machines, trees, strict=True):
            name, everything = machine.vault.parent.name, b"\n".join(tree.values())
            found += [
                f"lost on {name}: {word} ({self.told[word]})"
                for word in sorted(wanted)
                if word.encode() not in everything
            ]
            held = b"\n".join(path.read_bytes() for path in machine.home.rglob("*") if path.is_file())
            gone = sorted(set[str]().union(*self.gone.values()))
            found += [f"back on {name}: {word}" for word in gone if word.encode() in everything + held]
        return found


def main() -> int:
    """Runs it, and prints what came of it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", help="a folder to work in, which stays")
    given = options.parse_args()
    if shutil.which("syncthing") is None:
        print("skipped: syncthing is not installed")
        return 0
    with ExitStack() as stack:
        folder = Path(given.keep or stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        machines = [Machine(folder, name) for name in ("one", "two")]
        for one, other in (machines, machines[::-1]):
            one.join(other)
            stack.enter_context(one.running())
        life = Life(machines, given.seed)
        end, offline = time.monotonic() + given.minutes * 60, 0
        while time.monotonic() < end:
            if offline == 0 and life.random.random() < 0.05:
                offline = life.random.randint(3, 12)
                life.random.choice(machines).online(on=False)
                life.did["offline"] += 1
            life.step()
            offline = max(offline - 1, 0)
            if offline == 0:
                for machine in machines:
                    machine.online(on=True)
            time.sleep(STEP)
        for machine in machines:
            machine.online(on=True)
        rested, wrong = life.settle(), life.wrong()
        copies = sorted(path for path in machines[0].tree() if has_conflict_mark(path))
    for name, number in (*sorted(life.did.items()), ("conflict copies left", len(copies))):
        print(f"{name:<22}{number:>6}")
    sums = {kind: sum(one.startswith(kind) for one in wrong) for kind in ("lost", "back", "differs")}
    print(
        f"{'came to rest':<22}{'yes' if rested else 'no':>6}\n" + "\n".join(f"{k:<22}{v:>6}" for k, v in sums.items())
    )
    print(*wrong[:20], *copies[:20], sep="\n")
    return 0 if rested and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
