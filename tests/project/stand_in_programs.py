"""What stands in for other people's programs while the blocks of the pages run: each looks at what it is asked to do.

Nothing is installed, started or sent anywhere; arguments that the real program would refuse are refused, with the
reason on stderr. Called as `python stand_in_programs.py NAME ARGUMENT…`; what was called is added to `$CALLS`.
"""

from __future__ import annotations

import os
import plistlib
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ["HOME"])
UNITS = HOME / ".config/systemd/user"
VERBS = {
    "daemon-reload", "enable", "disable", "start", "stop", "restart", "reload", "status", "show", "cat", "edit",
    "reset-failed", "is-active", "is-enabled", "is-system-running", "show-environment", "list-units",
    "list-unit-files",
}  # fmt: skip


class Refused(Exception):
    """What the real program would not do."""


def demand(holds: object, reason: str) -> None:
    """Refuses where something does not hold."""
    if not holds:
        raise Refused(reason)


def package(words: list[str]) -> None:
    """What is to be installed is this project, or what stands on a package index as one of its extras."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in words:
        name, extra = re.fullmatch(r"(.+?)(?:\[(\w+)\])?", word).groups()  # type: ignore[union-attr]
        if name == ".":
            demand(Path("pyproject.toml").is_file(), "no pyproject.toml in this folder")
        else:
            demand(name == "signet-sync", f"another package: {name}")
        demand(extra is None or extra in extras, f"no extra {extra}")


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """Options, and the words that are none."""
    return [word for word in words if word.startswith("-")], [word for word in words if not word.startswith("-")]


def systemctl(words: list[str]) -> None:
    """Knows units by their files, instances by that of their template."""
    options, (verb, *rest) = split(words)
    demand(verb in VERBS, f"Unknown command verb {verb}")
    units = [word for word in rest if word.startswith("signet-sync")]
    if verb in ("enable", "restart", "start") and "--user" in options:
        names = [re.sub("@.+", "@", unit.removesuffix(".service")) + ".service" for unit in units]
        demand(all((UNITS / name).is_file() for name in names), f"Unit {names} not found")
    if verb == "show":
        print("ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=1\nResult=success")
    if verb == "is-active":
        print("active")


def loginctl(words: list[str]) -> None:
    demand(words[0] in ("enable-linger", "disable-linger", "show-user"), f"Unknown command verb {words[0]}")
    if words[0] == "show-user":
        print("Linger=no")


def journalctl(words: list[str]) -> None:
    demand("-u" in words and words[words.index("-u") + 1].startswith("signet-sync"), "no unit")


def launchctl(words: list[str]) -> None:
    verb, *rest = words
    demand(verb in ("bootstrap", "bootout", "print", "kill", "kickstart"), f"Unrecognized subcommand: {verb}")
    place = next(word for word in rest if word.startswith("gui/"))
    demand(re.fullmatch(r"gui/\d+(/dev\.signet-sync\.agent)?", place), f"Unrecognized target specifier: {place}")
    if verb == "bootstrap":
        plist = plistlib.loads(Path(rest[-1]).read_bytes())
        demand(plist["Label"] == "dev.signet-sync.agent" and "@" not in str(plist), "a property list with blanks")


def pipx(words: list[str]) -> None:
    _, (verb, *rest) = split(words)
    demand(verb in ("install", "uninstall", "upgrade", "inject", "run", "reinstall"), f"invalid choice: {verb}")
    package(rest[:1] if verb != "run" else rest[-1:])


def uv(words: list[str]) -> None:
    _, (tool, verb, *rest) = split(words)
    demand(tool == "tool" and verb in ("install", "uninstall", "upgrade"), f"unrecognized subcommand {tool} {verb}")
    package(rest)


def pip(words: list[str]) -> None:
    _, (verb, *rest) = split(words)
    demand(verb in ("install", "uninstall"), f"unknown command {verb}")
    package(rest)


def python3(words: list[str]) -> None:
    """Makes a virtual environment in which the programs are those that stand here; runs anything else."""
    if words[:2] != ["-m", "venv"]:
        os.execv(sys.executable, [sys.executable, *words])
    folder = Path(words[2]) / "bin"
    folder.mkdir(parents=True)
    for name in ("pip", "pytest", "signet-sync"):
        (folder / name).symlink_to(Path(os.environ["PROGRAMS"]) / name)


def crontab(words: list[str]) -> None:
    demand(words in (["-l"], ["-"]), f"{words}: no such file")
    if words == ["-"]:
        demand(all(re.match(r"(@\w+|([\d*/,-]+ ){5})\s*\S", line) for line in sys.stdin), "bad minute")


def sudo(words: list[str]) -> None:
    """Gives root's rights to nobody: looks whether it would be of use."""
    if words[0] == "-u":
        words = words[2:]
    name, *rest = words
    if name in PROGRAMS:
        PROGRAMS[name](rest)
    else:
        demand(name == "sysctl", f"{name}: nothing for root")


def carried(words: list[str]) -> None:
    """`rsync` and `scp`: everything but the last one must be here."""
    _, (*sources, target) = split(words)
    demand(sources and ":" in target, "nowhere to go")
    demand(all(Path(source).exists() for source in sources), f"No such file or directory: {sources}")


def nothing(words: list[str]) -> None:
    """Programs whose arguments are their own affair."""


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "systemctl": systemctl,
    "loginctl": loginctl,
    "journalctl": journalctl,
    "launchctl": launchctl,
    "pipx": pipx,
    "uv": uv,
    "pip": pip,
    "python3": python3,
    "crontab": crontab,
    "sudo": sudo,
    "rsync": carried,
    "scp": carried,
    "tail": nothing,
    "pytest": nothing,
    "openclaw": nothing,
}

if __name__ == "__main__":
    called, *given = sys.argv[1:]
    with open(os.environ["CALLS"], "a", encoding="utf-8") as log:
        log.write(f"{called} {' '.join(given)}\n")
    try:
        PROGRAMS[called](given)
    except Refused as refused:
        sys.exit(f"{called}: {refused}")
