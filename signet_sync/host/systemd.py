"""Renders, installs and removes a person's own units of systemd.

A unit is rendered from the shipped one (`systemd/signet-sync.service`): only the lines that name the program, the
workspace and the network are replaced.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from signet_sync.errors import UsageError
from signet_sync.host.harness_settings.facts import home
from signet_sync.host.harness_settings.harness import workspace_of
from signet_sync.host.service_manager import (
    BASE_NAME,
    TIMEOUT,
    ProgramResult,
    ServiceChange,
    ServiceState,
    call,
    check_nameable,
    names_in,
    template,
    user_name,
)

_START_TIMEOUT = 60.0
_HEADER = "# Written by `signet-sync service install`, which replaces it; changes belong into drop-ins.\n\n"


def systemd_quote(text: str) -> str:
    """Quotes one word of a unit's line, so that no quote, blank, colon, `%` or backslash of `text` can break it.

    `$` is not escaped: commands are written with systemd's `:` prefix, which disables it; nothing else interprets it.
    Raises `UsageError` for control characters and bytes that are not UTF-8: a unit cannot contain them.
    """
    check_nameable(text)
    if re.fullmatch(r"[\w@+=./,-]+", text, re.ASCII):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def render(run: Sequence[str], environment: Mapping[str, str], *, network: bool) -> str:
    """Returns the text of a unit that runs a command. Raises `UsageError` for what it cannot contain."""
    if re.search(r"[\\\"']", run[0]):
        raise UsageError(
            "systemd starts no program with quotes or backslashes in its path",
            path=run[0],
            hint="install signet-sync elsewhere, or start `signet-sync run` by other means",
        )
    shipped = template("signet-sync.service")
    lines = {
        "Description": [f"signet-sync ({(workspace_of(run) or '').replace('%', '%%')})"],
        "ExecStart": [":" + " ".join(systemd_quote(word) for word in run)],
        "Environment": [
            shipped.partition("\nEnvironment=")[2].partition("\n")[0],
            *(systemd_quote(f"{key}={value}") for key, value in environment.items()),
        ],
    }
    if network:
        lines["RestrictAddressFamilies"] = ["AF_UNIX AF_INET AF_INET6"]
    result: list[str] = []
    for line in shipped.partition("\n\n")[2].splitlines():
        key = line.partition("=")[0]
        result += [f"{key}={value}" for value in lines.pop(key)] if key in lines else [line]
    assert not lines, "the shipped unit lost a line that is filled in"
    return _HEADER + "\n".join(result) + "\n"


def install(text: str, *, name: str, run: Sequence[str], environ: Mapping[str, str]) -> ServiceChange:
    """Writes, enables and starts a unit; writes nothing if no systemd answers."""
    unit = f"{name}.service"
    path = os.path.join(_folder(environ), unit)
    if not answers(environ):
        by_hand = ["# run it without a service, at every start:", f"nohup {shlex.join(run)} >/dev/null 2>&1 &"]
        step = "neither systemd nor launchd answers here; no service was installed"
        return ServiceChange("systemd", None, [step], by_hand)
    done = ServiceChange("systemd", path)
    done.write(path, text)
    done.record(_call(environ, "daemon-reload"), _command("daemon-reload"))
    done.record(_call(environ, "enable", unit), _command("enable", unit), f"enabled {unit}")
    answer = _call(environ, "restart", unit, timeout=_START_TIMEOUT)
    if not done.record(answer, _command("status", unit), f"started {unit}"):
        done.by_hand.append(f"journalctl --user -e -u {unit}")
    if not is_lingering(environ):
        done.by_hand += [
            "# it runs while you are logged in; lingering lets it run from boot on and after logging out:",
            shlex.join(["loginctl", "enable-linger", user_name()]),
        ]
    done.running = _active(environ, unit) is True
    return done


def uninstall(name: str, environ: Mapping[str, str]) -> ServiceChange:
    """Stops, disables and removes a unit; the user's drop-ins are kept."""
    unit = f"{name}.service"
    path = os.path.join(_folder(environ), unit)
    if not os.path.lexists(path):
        return ServiceChange("systemd", None, [f"there is no {path}"])
    done = ServiceChange("systemd", path)
    disable = ("disable", "--now", unit)
    done.record(_call(environ, *disable), _command(*disable), f"stopped {unit}")
    done.remove(path)
    done.record(_call(environ, "daemon-reload"), _command("daemon-reload"))
    # Only a failed unit is still listed now; for any other this fails, without harm.
    _call(environ, "reset-failed", unit)
    done.running = _active(environ, unit) is True
    return done


def list_installed(environ: Mapping[str, str]) -> Iterator[ServiceState]:
    """Yields all our units of this user."""
    ours = re.compile(rf"{BASE_NAME}(-[a-z0-9-]+-[0-9a-f]{{8}})?\.service")
    for file in filter(ours.fullmatch, names_in(_folder(environ))):
        name, path = file.removesuffix(".service"), os.path.join(_folder(environ), file)
        yield ServiceState(name, workspace_of(read_command(path, environ)), path, _active(environ, file))


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart a unit."""
    return _command("restart", f"{state.name}.service")


def answers(environ: Mapping[str, str]) -> bool:
    """Returns whether the user's own manager answers."""
    return _call(environ, "show", "--property=Version").ok


def is_lingering(environ: Mapping[str, str]) -> bool | None:
    """Returns whether this user's services run without a login; None if logind is not available."""
    answer = call(["loginctl", "show-user", user_name(), "--property=Linger"], environ)
    return {"Linger=yes": True, "Linger=no": False}.get(answer.out.strip()) if answer.ok else None


def read_command(path: str, environ: Mapping[str, str]) -> list[str]:
    """Returns the words of the command that a unit starts: the reverse of `systemd_quote`, with the home folder."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()
    except OSError:
        return []
    line = next((line.partition("=")[2] for line in lines if line.startswith("ExecStart=")), "")
    try:
        words = shlex.split(line.removeprefix(":"))
    except ValueError:
        return []  # edited by hand
    return [re.sub("%(.)", lambda found: home(environ) if found[1] == "h" else found[1], word) for word in words]


def _folder(environ: Mapping[str, str]) -> str:
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config")
    return os.path.join(config, "systemd", "user")


def _call(environ: Mapping[str, str], *arguments: str, timeout: float = TIMEOUT) -> ProgramResult:
    return call(["systemctl", "--user", *arguments], environ, timeout)


def _command(*arguments: str) -> str:
    """Returns the same call, for a person to type."""
    return shlex.join(["systemctl", "--user", *arguments])


def _active(environ: Mapping[str, str], unit: str) -> bool | None:
    """Returns whether a unit is active, None if the manager is not available; waiting for a restart does not count."""
    answer = _call(environ, "show", unit, "--property=ActiveState,SubState")
    facts = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line) if answer.ok else {}
    if not facts.get("ActiveState"):
        return None
    return facts["ActiveState"] in ("active", "reloading", "activating") and facts.get("SubState") != "auto-restart"
