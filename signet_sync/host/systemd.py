"""Renders, installs and removes units of systemd.

A unit is rendered from the shipped template (`systemd/`): only the lines that name the program, the workspace or a
folder are replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from signet_sync.errors import UsageError
from signet_sync.host.folders import home
from signet_sync.host.service_manager import (
    BASE_NAME,
    TEMPLATES,
    TIMEOUT,
    Kind,
    ProgramResult,
    Sandbox,
    ServiceChange,
    ServiceState,
    Steps,
    call,
    check_nameable,
    is_root,
    names_in,
    option_value,
    template,
    user_name,
)

SYSTEM_UNITS = "/etc/systemd/system"
# What systemd starts after an agent failed permanently; one for all units of ours. launchd has no equivalent.
FAILURE_TEMPLATES: Mapping[Kind, str] = {
    "systemd": "signet-sync-failed@.service",
    "systemd-system": "signet-sync-failed-for@.service",
}
_START_TIMEOUT = 60.0
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - names that the sandbox hides, not used
_SANDBOX_FAILED = ("217", "218", "226")  # EXIT_USER, EXIT_CAPABILITIES, EXIT_NAMESPACE: systemd.exec(5)
_HEADER = """\
# Written by `signet-sync service install`, which replaces it; changes belong into drop-ins.

"""
_DROP_IN = "10-without-user-namespaces.conf"
_WITHOUT_NAMESPACES = """\
# Written by `signet-sync service install`: this machine gives no user namespaces to a person's own services.
# Without them systemd may neither arrange mounts for one nor drop capabilities (which it has not got anyway).
[Service]
PrivateUsers=no
CapabilityBoundingSet=~
BindPaths=
BindReadOnlyPaths=
PrivateDevices=no
PrivateNetwork=no
PrivateTmp=no
ProtectClock=no
ProtectControlGroups=no
ProtectHome=no
ProtectHostname=no
ProtectKernelLogs=no
ProtectKernelModules=no
ProtectKernelTunables=no
ProtectProc=default
ProtectSystem=no
"""


@dataclass(frozen=True, slots=True)
class _Systemd:
    """The user's own service manager, or the system's."""

    system: bool
    environ: Mapping[str, str]

    @property
    def folder(self) -> str:
        if self.system:
            return SYSTEM_UNITS
        config = self.environ.get("XDG_CONFIG_HOME") or os.path.join(home(self.environ), ".config")
        return os.path.join(config, "systemd", "user")

    def call(self, *arguments: str, timeout: float = TIMEOUT) -> ProgramResult:
        return call(["systemctl", *([] if self.system else ["--user"]), *arguments], self.environ, timeout)

    def command(self, *arguments: str) -> str:
        """Returns the same call, for a person to type."""
        return shlex.join(["systemctl", *([] if self.system else ["--user"]), *arguments])

    def facts(self, unit: str) -> dict[str, str]:
        """Returns properties of a unit; empty if the manager is not available."""
        answer = self.call("show", unit, "--property=ActiveState,SubState,UnitFileState,ExecMainStatus")
        pairs = (line.partition("=") for line in answer.out.splitlines()) if answer.ok else ()
        return {key: value for key, _, value in pairs}

    def is_active(self, unit: str) -> bool | None:
        return _active(self.facts(unit))


def systemd_quote(text: str) -> str:
    """Quotes one word of a unit's line, so that no quote, blank, colon, `%` or backslash of `text` can break it.

    `$` is not escaped: commands are written with systemd's `:` prefix, which disables it; nothing else interprets it.
    Raises `UsageError` for control characters and bytes that are not UTF-8: a unit cannot contain them.
    """
    check_nameable(text)
    if re.fullmatch(r"[\w@+=./,-]+", text, re.ASCII):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def render_failure(kind: Kind, *, executable: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Returns the unit that notifies a person when an agent failed permanently.

    Raises `UsageError` for what a unit cannot contain.
    """
    shipped = template(FAILURE_TEMPLATES[kind])
    arguments = shipped.partition("signet-sync notify ")[2].partition("\n")[0]
    usual = shipped.partition("\nEnvironment=")[2].partition("\n")[0]
    words = " ".join(systemd_quote(word) for word in _startable(executable))
    passed = [systemd_quote(f"{key}={value}") for key, value in sorted((environment or {}).items())]
    return _with_lines(
        _HEADER + shipped.partition("\n\n")[2],
        {"ExecStart": [f":{words} notify {arguments}"], "Environment": [usual, *passed]},
    )


def install(
    text: str,
    failure_text: str,
    *,
    name: str,
    workspace: str,
    run: Sequence[str],
    system: bool,
    linger: bool,
    environ: Mapping[str, str],
) -> ServiceChange:
    """Writes, enables and starts a unit, and writes the one that reports its failure."""
    kind, manager, unit = _kind(system), _Systemd(system, environ), _unit_name(name, system, environ)
    path = os.path.join(manager.folder, unit)
    steps = Steps()
    steps.write(path, text)
    steps.write(os.path.join(manager.folder, FAILURE_TEMPLATES[kind]), failure_text)
    if not steps.record(manager.call("daemon-reload"), manager.command("daemon-reload")):
        steps.by_hand.append(manager.command("enable", "--now", unit))
        steps.by_hand += _by_hand_without_systemd(run)
        return steps.change(kind, path, running=False)
    _start(manager, unit, workspace, steps)
    if not system:
        _linger(linger, environ, steps)
    return steps.change(kind, path, running=manager.is_active(unit) is True)


def uninstall(name: str, system: bool, environ: Mapping[str, str]) -> ServiceChange:
    """Stops, disables and removes a unit; the user's drop-ins are kept."""
    kind, manager, unit = _kind(system), _Systemd(system, environ), _unit_name(name, system, environ)
    path = os.path.join(manager.folder, unit)
    if system and not is_root():
        files = [path, *_failure_unit(manager, kind, but=unit)]
        by_hand = (
            f"sudo systemctl disable --now {shlex.quote(unit)}",
            f"sudo rm {shlex.join(files)}",
            "sudo systemctl daemon-reload",
        )
        return ServiceChange(kind, None, (), by_hand, manager.is_active(unit) is True)
    if not os.path.lexists(path):
        return ServiceChange(kind, None, (f"there is no {path}",), (), False)
    steps = Steps()
    disable = ("disable", "--now", unit)
    steps.record(manager.call(*disable), manager.command(*disable), f"stopped {unit}")
    steps.remove(path)
    steps.remove(os.path.join(path + ".d", _DROP_IN))
    with contextlib.suppress(OSError):  # the user's own drop-ins are kept, and so is their folder
        os.rmdir(path + ".d")
    for failure_path in _failure_unit(manager, kind, but=unit):
        steps.remove(failure_path)
    steps.record(manager.call("daemon-reload"), manager.command("daemon-reload"))
    # Only a failed unit is still listed now; for any other this fails, without harm.
    manager.call("reset-failed", unit)
    return steps.change(kind, path, running=manager.is_active(unit) is True)


def installed(environ: Mapping[str, str]) -> Iterator[ServiceState]:
    """Yields all our units of this user and of the system."""
    for manager in (_Systemd(False, environ), _Systemd(True, environ)):
        for name, path in _our_units(manager):
            yield _state(manager, name, path)


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart a unit."""
    system = is_of_the_system(state)
    return ("sudo " if system else "") + _Systemd(system, {}).command("restart", f"{state.name}.service")


def restart(state: ServiceState, environ: Mapping[str, str]) -> ServiceChange:
    """Starts or restarts a unit, including one that systemd gave up."""
    system = is_of_the_system(state)
    kind = _kind(system)
    if system and not is_root():
        return ServiceChange(kind, state.path, (), (restart_command(state),), state.active is True)
    manager, unit, steps = _Systemd(system, environ), f"{state.name}.service", Steps()
    manager.call("reset-failed", unit)  # fails if the unit has not failed, without harm
    steps.record(manager.call("restart", unit, timeout=_START_TIMEOUT), restart_command(state), f"started {unit}")
    return steps.change(kind, state.path, running=manager.is_active(unit) is True)


def answers(environ: Mapping[str, str]) -> bool:
    """Returns whether the user's own manager answers."""
    return _Systemd(False, environ).call("show", "--property=Version").ok


def lingering(environ: Mapping[str, str]) -> bool | None:
    """Returns whether this user's services run without a login; None if logind is not available."""
    answer = call(["loginctl", "show-user", user_name(), "--property=Linger"], environ)
    return {"Linger=yes": True, "Linger=no": False}.get(answer.out.strip()) if answer.ok else None


def _kind(system: bool) -> Kind:
    return "systemd-system" if system else "systemd"


def is_of_the_system(state: ServiceState) -> bool:
    """Returns whether a unit belongs to the system's manager, not to the user's."""
    return state.path.startswith(SYSTEM_UNITS + os.sep)


def render(
    kind: Kind,
    executable: Sequence[str],
    workspace: str,
    environment: Mapping[str, str],
    **sandbox: Unpack[Sandbox],
) -> str:
    """Returns the text of a unit; see `service.render`."""
    system, state = kind == "systemd-system", os.path.realpath(sandbox["state"])
    shipped = template(TEMPLATES[kind])
    run = [*_startable(executable), "--workspace", workspace, "run"]
    make_state = "+:runuser -u %i -- mkdir -p -m 0700 " if system else "+:mkdir -p -m 0700 "
    wait = "+:timeout 10m sh -c 'until test -d \"$0\"; do sleep 2; done' "
    folders = [
        _settings_place(state, environment),
        *_program_folders(executable),
        *map(os.path.realpath, sandbox.get("readable", ())),
    ]
    # A configured language model is called over the network, from inside the same sandbox.
    connected = {"PrivateNetwork": ["no"], "RestrictAddressFamilies": ["AF_UNIX AF_INET AF_INET6"], "IPAddressDeny": []}
    return _with_lines(
        _HEADER + shipped.partition("\n\n")[2],
        {
            "Description": [f"signet-sync{' of %i' if system else ''} ({workspace.replace('%', '%%')})"],
            "ExecStartPre": [make_state + systemd_quote(state), wait + systemd_quote(workspace)],
            "ExecStart": [":" + " ".join(systemd_quote(word) for word in run)],
            "Environment": [systemd_quote(f"{key}={value}") for key, value in environment.items()],
            "BindPaths": [
                *(systemd_quote("-" + path) for path in (workspace, state)),
                *([] if system else ["-%t/systemd/notify"]),
                *(["-%t/bus"] if sandbox.get("desktop") and not system else []),
            ],
            "BindReadOnlyPaths": [systemd_quote("-" + path) for path in folders],
            **(connected if sandbox.get("network") else {}),
        },
    )


def _startable(executable: Sequence[str]) -> Sequence[str]:
    """Starts a program with quotes or backslashes in its path through a shell, because systemd refuses it."""
    if re.search(r"[\\\"']", executable[0]):
        return ["/bin/sh", "-c", 'exec "$@"', "sh", *executable]
    return executable


def _with_lines(text: str, lines: Mapping[str, Sequence[str]]) -> str:
    """Replaces all lines of a key in `text` by lines of the given values, at the position of the first one."""
    result: list[str] = []
    written: set[str] = set()
    for line in text.splitlines():
        key = line.partition("=")[0]
        if key not in lines:
            result.append(line)
        elif key not in written:
            written.add(key)
            result += [f"{key}={value}" for value in lines[key]]
    assert written == set(lines), "the template lost a line that is filled in"
    return "\n".join(result) + "\n"


def _settings_place(state: str, environment: Mapping[str, str]) -> str:
    """Returns the user's settings folder or file, as the agent will find it; by default next to the state."""
    if environment.get("SIGNET_CONFIG"):
        return os.path.abspath(os.path.expanduser(environment["SIGNET_CONFIG"]))
    usual = "/.local/state/" + BASE_NAME
    home = state.removesuffix(usual) if state.endswith(usual) else os.path.expanduser("~")
    return os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), BASE_NAME)


def _program_folders(executable: Sequence[str]) -> list[str]:
    """Returns folders in hidden places that the program needs to read: its own, its interpreter's, its packages'."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = executable[0]
    wanted = {
        os.path.dirname(program),
        os.path.dirname(os.path.realpath(program)),
        sys.prefix,
        sys.base_prefix,
        os.path.realpath(sys.prefix),
        os.path.realpath(sys.base_prefix),
        package,
    }
    places = {*_HIDDEN, *map(os.path.realpath, _HIDDEN)}
    hidden = sorted(path for path in wanted if any(_below(path, place) for place in places))
    return [path for path in hidden if not any(path != other and _below(path, other) for other in hidden)]


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _active(facts: Mapping[str, str]) -> bool | None:
    """Returns whether a unit is active: waiting for its workspace counts as active, waiting for a restart does not."""
    if not facts.get("ActiveState"):
        return None
    return facts["ActiveState"] in ("active", "reloading", "activating") and facts.get("SubState") != "auto-restart"


def _unit_name(name: str, system: bool, environ: Mapping[str, str]) -> str:
    """Returns the file name of the unit; a system unit is an instance with the user's name."""
    if not system:
        return name + ".service"
    user = environ.get("SUDO_USER") or user_name()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", user):
        raise UsageError(
            f"a unit cannot carry the user name {user!r}", hint="write a unit by hand: see systemd/README.md"
        )
    return f"{name}@{user}.service"


def _start(manager: _Systemd, unit: str, workspace: str, steps: Steps) -> None:
    """Enables and (re)starts; relaxes the sandbox if the machine refuses it to a user's own services."""
    steps.record(manager.call("enable", unit), manager.command("enable", unit), f"enabled {unit}")
    if not os.path.isdir(workspace):
        answer = manager.call("restart", "--no-block", unit)
        steps.record(answer, manager.command("restart", unit), f"started {unit}; it waits for {workspace}")
        return
    answer = manager.call("restart", unit, timeout=_START_TIMEOUT)
    if not answer.ok and not manager.system and manager.facts(unit).get("ExecMainStatus") in _SANDBOX_FAILED:
        answer = _restart_without_namespaces(manager, unit, steps)
    if not steps.record(answer, manager.command("status", unit), f"started {unit}"):
        steps.by_hand.append(f"journalctl {'' if manager.system else '--user '}-e -u {unit}")


def _restart_without_namespaces(manager: _Systemd, unit: str, steps: Steps) -> ProgramResult:
    path = os.path.join(manager.folder, unit + ".d", _DROP_IN)
    steps.write(path, _WITHOUT_NAMESPACES, "this machine refuses user namespaces to the unit: ")
    for arguments in (["daemon-reload"], ["reset-failed", unit]):
        manager.call(*arguments)
    return manager.call("restart", unit, timeout=_START_TIMEOUT)


def _linger(wanted: bool, environ: Mapping[str, str], steps: Steps) -> None:
    """Enables lingering, or suggests it: without it a user's services end with the last logout."""
    command = ["loginctl", "enable-linger", user_name()]
    if lingering(environ):
        return
    if wanted:
        steps.record(call(command, environ), shlex.join(command), "the agent keeps running while you are logged out")
    else:
        steps.by_hand += [
            "# it runs while you are logged in; lingering lets it run from boot on and after logging out:",
            shlex.join(command),
        ]


def _by_hand_without_systemd(run: Sequence[str]) -> list[str]:
    # In a crontab a percent sign ends the command.
    line = "@reboot " + shlex.join(run).replace("%", "\\%")
    return [
        "# or, on a machine without systemd, now and at every start:",
        f"nohup {shlex.join(run)} >/dev/null 2>&1 &",
        f"(crontab -l 2>/dev/null; printf '%s\\n' {shlex.quote(line)}) | crontab -",
    ]


def by_hand_as_root(command: Sequence[str], name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the commands that install a system unit as root."""
    unit = _unit_name(name, True, environ)
    path = shlex.quote(os.path.join(SYSTEM_UNITS, unit))
    failure_path = shlex.quote(os.path.join(SYSTEM_UNITS, FAILURE_TEMPLATES["systemd-system"]))
    return (
        "# a system unit needs root:",
        f"{shlex.join(command)} service print --system | sudo tee {path} >/dev/null",
        f"{shlex.join(command)} service print --system --on-failure | sudo tee {failure_path} >/dev/null",
        "sudo systemctl daemon-reload",
        f"sudo systemctl enable --now {shlex.quote(unit)}",
    )


def _our_units(manager: _Systemd) -> Iterator[tuple[str, str]]:
    """Yields name and path of our units; an enabled instance of a template counts, the template does not."""
    ours = re.compile(rf"{BASE_NAME}(-[a-z0-9-]+-[0-9a-f]{{8}})?(@.+)?\.service")
    seen: set[str] = set()
    for folder in (manager.folder, os.path.join(manager.folder, "multi-user.target.wants")):
        for file in names_in(folder):
            if ours.fullmatch(file) and file not in seen:
                seen.add(file)
                yield file.removesuffix(".service"), os.path.join(folder, file)


def _failure_unit(manager: _Systemd, kind: Kind, *, but: str) -> list[str]:
    """Returns the unit shared by all of ours, if none of them is left but one."""
    path = os.path.join(manager.folder, FAILURE_TEMPLATES[kind])
    others = [name for name, _ in _our_units(manager) if f"{name}.service" != but]
    return [path] if os.path.lexists(path) and not others else []


def _state(manager: _Systemd, name: str, path: str) -> ServiceState:
    facts = manager.facts(name + ".service")
    state = facts.get("UnitFileState")
    return ServiceState(
        name=name,
        workspace=option_value(started(name, path, manager.environ), "--workspace"),
        path=path,
        enabled=state.startswith("enabled") if state else None,
        active=_active(facts),
    )


def started(name: str, path: str, environ: Mapping[str, str]) -> list[str]:
    """Returns the words of the command that a unit starts."""
    folder = "/root" if path.startswith(SYSTEM_UNITS + os.sep) else home(environ)
    return _words(_exec_start(path).removeprefix(":"), {"h": folder, "i": name.partition("@")[2]})


def _exec_start(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2] for line in lines if line.startswith("ExecStart=")), "")


def _words(line: str, specifiers: Mapping[str, str]) -> list[str]:
    """Splits a unit's line into words: the reverse of `systemd_quote`, with the specifiers that we ship."""
    try:
        words = shlex.split(line)
    except ValueError:
        return []  # edited by hand
    return [re.sub("%(.)", lambda match: specifiers.get(match[1], match[1]), word) for word in words]
