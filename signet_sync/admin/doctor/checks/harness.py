"""Checks harnesses: our hooks (and MCP server) are installed, and hooks respond when called as a harness does it."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Sequence

from signet_sync.admin import hooks_install
from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, warning
from signet_sync.capture.harnesses import registry
from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats.ids import GUARDS, TRIAL
from signet_sync.formats.paths import display
from signet_sync.host.harness_settings.settings_text import Condition, HarnessProblem

# Harnesses allow a hook three to ten seconds, and the user waits for it at a session's start.
LIMIT = 10.0
# These hooks call something other than we would write now; it is not run to test it.
_OTHERS = frozenset({"hooks-gone", "hooks-outdated", "hooks-elsewhere"})
_AGAIN = _OTHERS | {"hooks-partly"}  # fixed by installing again
_SESSION_START = {"hook_event_name": "SessionStart", "session_id": TRIAL, "source": "startup"}


def harness(target: Installation) -> list[Finding]:
    """Reports every harness that delivers its sessions, and what prevents it."""
    try:
        found = hooks_install.conditions(target.root, registry.names(), target.environ)
    except SignetSyncError as error:
        return [problem("hooks", error.message, error.hint)]
    plugged = [condition for condition in found if condition.events or condition.server is not None]
    if not plugged:
        if any(condition.found for condition in found):
            install = target.command("hooks install auto")
            return [warning("hooks", "no harness sends its sessions", install)]
        return [fine("hooks", "no harness is on this machine")]
    findings = [_finding(target, condition, each) for condition in plugged for each in condition.problems]
    findings += _check_switches(target)
    silent = [condition.harness for condition in found if condition.found and not condition.events]
    if silent:
        words = f"{', '.join(silent)}: here, and sends no sessions ({target.command('hooks install auto')})"
        findings.append(fine("hooks", words))
    feeding = [condition for condition in plugged if condition.events]
    tried = [each.harness for each in feeding if _OTHERS.isdisjoint(one.code for one in each.problems)]
    return [*findings, *_try_hooks(target, tried)]


def broken(target: Installation) -> list[str]:
    """Returns the harnesses whose hooks cannot do anything until they are written again."""
    found = hooks_install.conditions(target.root, registry.names(), target.environ)
    return [each.harness for each in found if each.events and any(_is_dead(each, one) for one in each.problems)]


def _finding(target: Installation, condition: Condition, one: HarnessProblem) -> Finding:
    remedy = target.command(f"hooks install {condition.harness}") if one.code in _AGAIN else one.hint
    kind = problem if one.code in ("hooks-gone", "server-gone") else warning
    return kind("hooks", f"{condition.harness}: {one.message}", remedy, fix=_is_dead(condition, one))


def _is_dead(condition: Condition, one: HarnessProblem) -> bool:
    """Returns whether hooks or server call a program, or feed a workspace, that is gone; the rest may be intended."""
    if not condition.events:
        return False  # installing again would add hooks that the user has not requested
    astray = one.code == "hooks-elsewhere" and not hooks_install.feeds_a_folder(condition)
    return one.code in ("hooks-gone", "server-gone") or astray


def _check_switches(target: Installation) -> list[Finding]:
    named = [name for name in GUARDS if target.environ.get(name, "0") not in ("", "0")]
    return [warning("hooks-off", f"{name} is set: hooks that inherit it do nothing", f"unset {name}") for name in named]


# ── called as a harness calls them ──


def _try_hooks(target: Installation, names: Sequence[str]) -> list[Finding]:
    """Calls each hook with a session's start that leaves nothing behind; runs the command that we would write now."""
    found = []
    slowest = 0.0
    for name in names:
        words = hooks_install.program_for(target.root).hook(name)
        began = time.monotonic()
        wrong = _call_hook([*words, "--strict"], {**target.environ})
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
