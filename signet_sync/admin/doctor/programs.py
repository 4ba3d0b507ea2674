"""Checks what an installation works with: the agent and its service, harnesses, and optional features.

There is an agent, it responds and is of this version; our hooks (and MCP server) are installed, and hooks respond when
called as a harness does it; a language model, vectors and the history can do what the settings ask of them.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from urllib.parse import urlsplit

from signet_sync import __version__
from signet_sync.admin import hooks_install, meaning_setup
from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, warning
from signet_sync.capture.harnesses import registry
from signet_sync.embeddings import store
from signet_sync.errors import SignetSyncError, extra_hint, reason
from signet_sync.formats.ids import GUARDS, TRIAL
from signet_sync.formats.paths import display
from signet_sync.history import repository
from signet_sync.host import service as host_service
from signet_sync.host import systemd
from signet_sync.host.harness_settings.settings_text import Condition, HarnessProblem
from signet_sync.host.service_manager import ServiceState
from signet_sync.llm import provider_choice, providers
from signet_sync.settings.model_choice import resolve_meaning
from signet_sync.storage import state_dir


def agent(target: Installation) -> list[Finding]:
    """Checks what holds the workspace, and what its heartbeat reports."""
    if target.is_unreadable:
        return []  # unknown; another finding names the reason
    if not target.alive and target.heartbeat:
        words = f"an agent (pid {target.heartbeat.get('pid')}) did not end normally; its heartbeat is still there"
        return [warning("stale-heartbeat", words, target.start_command())]
    if not target.alive:
        return [warning("agent", "no agent runs on this workspace", target.start_command())]
    if target.pid is None:
        held = shlex.quote(os.path.join(target.folder.locks, "run.lock"))
        words = "the lock of the agent is held, but no agent sends a heartbeat"
        return [problem("stale-lock", words, f"fuser -v {held}  # shows who holds it; end that")]
    name = f"{target.heartbeat.get('state')} (pid {target.heartbeat.get('pid')})"
    if target.heartbeat_age is None or target.heartbeat_age > state_dir.SILENCE:
        age = "none" if target.heartbeat_age is None else f"{target.heartbeat_age:.0f} s old"
        words = f"{name} does not respond: its last heartbeat is {age}"
        return [problem("agent", words, f"{target.start_command()}  # {target.command('logs')} may say why")]
    trouble = target.heartbeat.get("trouble")
    found = [fine("agent", name)]
    if trouble or name.startswith("degraded"):
        found = [warning("agent", f"{name}: {trouble}" if trouble else name, target.command("logs"))]
    version = target.heartbeat.get("version")
    if version != __version__:
        words = f"the agent is signet-sync {version}, this is {__version__}; a service restarts it once it notices"
        found.append(warning("version-skew", words, target.start_command()))
    return found


# ── the service of the system ──


def service(target: Installation) -> list[Finding]:
    """Reports the unit of this workspace: that it runs, and outlives the login."""
    unit = target.unit
    if unit is not None:
        return [_own(target, unit)]
    if not host_service.manager().answers(os.environ):
        return [fine("service", "neither systemd nor launchd answers here; signet-sync run is started by hand")]
    if target.alive and target.chosen is None:  # otherwise another finding reports that none runs, with this remedy
        words = "no service is installed for this workspace: after the next start of the machine no agent runs"
        return [warning("service", words, target.command("service install"))]
    return []


def _own(target: Installation, unit: ServiceState) -> Finding:
    if unit.active is False:
        remedy = f"{target.start_command()}  # or {target.command('service install')}"
        return problem("service", f"{unit.name} is not running", remedy)
    if unit.active is None:
        return warning(
            "service", f"{unit.name}: it is unknown whether it runs", host_service.manager().restart_command(unit)
        )
    if "SSH_CONNECTION" in os.environ and systemd.is_lingering(os.environ) is False:
        words = f"{unit.name} ends when you log out"
        return warning("service", words, f"loginctl enable-linger {shlex.quote(getpass.getuser())}")
    return fine("service", unit.name)


# Harnesses allow a hook three to ten seconds, and the user waits for it at a session's start.
LIMIT = 10.0
# These hooks call something other than we would write now; it is not run to test it.
_OTHERS = frozenset({"hooks-gone", "hooks-outdated", "hooks-elsewhere"})
_AGAIN = _OTHERS | {"hooks-partly"}  # fixed by installing again
_SESSION_START = {"hook_event_name": "SessionStart", "session_id": TRIAL, "source": "startup"}


def harness(target: Installation) -> list[Finding]:
    """Reports every harness that delivers its sessions, and what prevents it."""
    try:
        found = hooks_install.conditions(target.root, registry.list_hooked())
    except SignetSyncError as error:
        return [problem("hooks", error.message, error.hint)]
    plugged = [condition for condition in found if condition.events or condition.server is not None]
    if not plugged:
        if any(condition.found for condition in found):
            install = target.command("hooks install auto")
            return [warning("hooks", "no harness sends its sessions", install)]
        return [fine("hooks", "no harness is on this machine")]
    findings = [_make_finding(target, condition, each) for condition in plugged for each in condition.problems]
    findings += _check_switches(target)
    silent = [condition.harness for condition in found if condition.found and not condition.events]
    if silent:
        words = f"{', '.join(silent)}: here, and sends no sessions ({target.command('hooks install auto')})"
        findings.append(fine("hooks", words))
    feeding = [condition for condition in plugged if condition.events]
    tried = [each.harness for each in feeding if _OTHERS.isdisjoint(one.code for one in each.problems)]
    return [*findings, *_try_hooks(target, tried)]


def _make_finding(target: Installation, condition: Condition, one: HarnessProblem) -> Finding:
    remedy = target.command(f"hooks install {condition.harness}") if one.code in _AGAIN else one.hint
    kind = problem if one.code in ("hooks-gone", "server-gone") else warning
    return kind("hooks", f"{condition.harness}: {one.message}", remedy)


def _check_switches(target: Installation) -> list[Finding]:
    named = [name for name in GUARDS if os.environ.get(name, "0") not in ("", "0")]
    return [warning("hooks-off", f"{name} is set: hooks that inherit it do nothing", f"unset {name}") for name in named]


# ── called as a harness calls them ──


def _try_hooks(target: Installation, names: Sequence[str]) -> list[Finding]:
    """Calls each hook with a session's start that leaves nothing behind; runs the command that we would write now."""
    found = []
    slowest = 0.0
    for name in names:
        words = hooks_install.program_for(target.root).hook(name)
        began = time.monotonic()
        wrong = _call_hook([*words, "--strict"], {**os.environ})
        slowest = max(slowest, time.monotonic() - began)
        again = f"echo {shlex.quote(json.dumps(_SESSION_START))} | {shlex.join(words)} --strict"
        if wrong:
            found.append(problem("hook-fails", display(f"{name}: its hook fails: {wrong}"), again))
    if not found and names:
        found.append(fine("hooks", f"{', '.join(names)}: answered within {slowest:.1f} s"))
    return found


def _call_hook(words: Sequence[str], environ: dict[str, str]) -> str:
    """Returns why a hook does not answer as it should; empty if it does."""
    for name in GUARDS:
        environ.pop(name, None)
    try:
        done = subprocess.run(
            words,
            input=json.dumps(_SESSION_START).encode(),
            capture_output=True,
            timeout=LIMIT,
            cwd="/",
            env=environ,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT:.0f} s"
    except OSError as error:
        return reason(error)
    if done.returncode == 0:
        return ""
    complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return complaint[-1] if complaint else f"exit code {done.returncode}"


def model(target: Installation) -> list[Finding]:
    """Checks that the configured language model can be called; nothing is sent to it."""
    try:
        provider = provider_choice.provider_for(target.settings, os.environ)
    except SignetSyncError as error:
        return [warning("language-model", f"none is used: {error.message}", error.hint)]
    if isinstance(provider, providers.CommandProvider) and shutil.which(provider.command[0]) is None:
        words = f"the program {provider.command[0]} does not exist or is not executable"
        return [warning("language-model", words, "name it by its full path in llm.command")]
    if provider is None:
        return [fine("language-model", "none; summaries are made by rules")]
    return [fine("language-model", provider.name)]


def meaning(target: Installation) -> list[Finding]:
    """Checks that what makes vectors is there, unasked; says how far it is, and what goes where."""
    chosen = target.settings.recall_meaning
    try:
        choice = resolve_meaning(target.settings)
        if choice is None:
            return [fine("meaning", f"{chosen}: recall finds by words")]
        if choice.folder:
            meaning_setup.require_extra()
    except SignetSyncError as error:
        return [warning("meaning", f"recall finds by words alone: {error.message}", error.hint)]
    if choice.folder and (lost := meaning_setup.find_lost(chosen)):
        remedy = target.command(f"settings recall.meaning {chosen}")
        return [warning("meaning", f"recall finds by words alone: {lost[0].name} is missing or damaged", remedy)]
    where = f"{choice.server.provider} {choice.server.model}: texts and queries, without secrets, are sent to "
    where = f"the model in {choice.folder}" if choice.folder else where + urlsplit(choice.server.endpoint).netloc
    return [fine("meaning", f"{where}; {target.query(store.progress) or 'no vectors'}")]


def history(target: Installation) -> list[Finding]:
    """Checks that the history can be written if it is enabled, without opening the repository."""
    if not target.settings.history_enabled:
        return [fine("history", "off")]
    if find_spec("pygit2") is None:
        return [problem("history", "it is on, but the extra `git` is missing", extra_hint("git"))]
    found = repository.inspect(target.root, target.folder.key)
    if found is None or found.code == "no-repository":
        return [fine("history", "on")]
    make = problem if found.code == "unsafe-repository" else warning
    return [make("history", f"it is not written: {found.message}", found.hint)]
