"""Renders, installs and removes agents of launchd (macOS), from the template in `launchd/`."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from xml.parsers.expat import ExpatError

from signet_sync.host.harness_settings.facts import home
from signet_sync.host.harness_settings.harness import workspace_of
from signet_sync.host.service_manager import (
    BASE_NAME,
    ProgramResult,
    ServiceChange,
    ServiceState,
    call,
    check_nameable,
    names_in,
    template,
)

BASE_LABEL = "dev.signet-sync.agent"


def render(run: Sequence[str], name: str, environment: Mapping[str, str]) -> str:
    """Returns the text of an agent that runs a command. Raises `UsageError` for what it cannot contain."""
    for word in (*run, *environment.values()):
        check_nameable(word)
    unit = plistlib.loads(template("dev.signet-sync.agent.plist").encode("utf-8"))
    log = os.path.join(os.path.expanduser("~"), "Library", "Logs", name + ".log")
    unit |= {"Label": _label(name), "ProgramArguments": list(run), "StandardOutPath": log, "StandardErrorPath": log}
    unit["EnvironmentVariables"] |= environment
    return plistlib.dumps(unit, sort_keys=False).decode("utf-8")


def _label(name: str) -> str:
    return BASE_LABEL + name.removeprefix(BASE_NAME).replace("-", ".", 1)


def _agents_folder(environ: Mapping[str, str]) -> str:
    return os.path.join(home(environ), "Library", "LaunchAgents")


def _domain() -> str:
    return f"gui/{os.getuid()}"


def install(text: str, name: str, environ: Mapping[str, str]) -> ServiceChange:
    """Writes, loads and starts an agent."""
    target = f"{_domain()}/{_label(name)}"
    path = os.path.join(_agents_folder(environ), _label(name) + ".plist")
    os.makedirs(os.path.join(home(environ), "Library", "Logs"), exist_ok=True)
    done = ServiceChange("launchd", path)
    done.write(path, text)
    was_loaded = call(["launchctl", "bootout", target], environ).ok
    call(["launchctl", "enable", target], environ)
    answer = _bootstrap(path, environ)
    if was_loaded and not answer.ok:
        time.sleep(2)  # the old one is still ending
        answer = _bootstrap(path, environ)
    done.record(answer, shlex.join(["launchctl", "bootstrap", _domain(), path]), f"loaded and started {_label(name)}")
    done.running = _active(_label(name), environ) is True
    return done


def _bootstrap(path: str, environ: Mapping[str, str]) -> ProgramResult:
    return call(["launchctl", "bootstrap", _domain(), path], environ)


def uninstall(name: str, environ: Mapping[str, str]) -> ServiceChange:
    """Stops an agent and removes its file."""
    path = os.path.join(_agents_folder(environ), _label(name) + ".plist")
    if not os.path.lexists(path):
        return ServiceChange("launchd", None, [f"there is no {path}"])
    done = ServiceChange("launchd", path)
    command = ["launchctl", "bootout", f"{_domain()}/{_label(name)}"]
    if _active(_label(name), environ) is not False:
        done.record(call(command, environ), shlex.join(command), f"stopped {_label(name)}")
    done.remove(path)
    done.running = _active(_label(name), environ) is True
    return done


def _active(label: str, environ: Mapping[str, str]) -> bool | None:
    """Returns whether a label is running; None if there is no launchctl. A label that is not loaded is not active."""
    if shutil.which("launchctl", path=environ.get("PATH", os.defpath)) is None:
        return None
    return "state = running" in call(["launchctl", "print", f"{_domain()}/{label}"], environ).out


def answers(environ: Mapping[str, str]) -> bool:
    """Returns whether launchd answers for this user."""
    return call(["launchctl", "print", _domain()], environ).ok


def read_command(path: str) -> list[str]:
    """Returns the words of the command that a launchd agent starts."""
    try:
        with open(path, "rb") as handle:
            return [str(word) for word in plistlib.load(handle).get("ProgramArguments", [])]
    except (OSError, plistlib.InvalidFileException, ExpatError, AttributeError):
        return []


def list_installed(environ: Mapping[str, str]) -> Iterator[ServiceState]:
    """Yields all our agents of this user."""
    folder = _agents_folder(environ)
    for file in names_in(folder):
        if found := re.fullmatch(rf"{re.escape(BASE_LABEL)}(?:\.(.+))?\.plist", file):
            name, path = "-".join(filter(None, (BASE_NAME, found[1]))), os.path.join(folder, file)
            workspace = workspace_of(read_command(path))
            yield ServiceState(name, workspace, path, _active(_label(name), environ))


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart an agent."""
    return shlex.join(["launchctl", "kickstart", "-k", f"{_domain()}/{_label(state.name)}"])
