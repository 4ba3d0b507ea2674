"""Shows who owns the pages beside Signet, takes them over from it with its hooks, or leaves them to it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from signet_sync.admin import hooks_install
from signet_sync.app.workspace import opened
from signet_sync.errors import ConfigError, SignetSyncError, UsageError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.paths import SETTINGS, SIGNET_DATABASES, head_page
from signet_sync.formats.signet_page import persons_text
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.host.harness_settings import files as settings_files
from signet_sync.host.harness_settings import signet_hooks, signet_servers
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.host.harness_settings.signet_hooks import Removal, SignetHooks
from signet_sync.host.harness_settings.signet_servers import SignetServers
from signet_sync.pages import signet_takeover
from signet_sync.pages.signet_daemon import daemon_pid, holds
from signet_sync.settings import model, workspace_file
from signet_sync.settings.model import Settings
from signet_sync.storage import files, state_dir
from signet_sync.storage.durable import unlink
from signet_sync.storage.safe_paths import require_root
from signet_sync.sync import engine
from signet_sync.sync.request import Request
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Workspace

SIGNET, OURS, OPEN = "signet", "signet-sync", "undecided"
_RECORD = "signet-hooks.json"
_SETTINGS_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class SignetStatus:
    """Who owns the pages, and what of Signet is here; `both` are harnesses whose sessions go to Signet and to us."""

    owner: str
    held: str
    pid: int | None
    database: str | None
    pages: Mapping[str, str]
    hooks: tuple[SignetHooks, ...]
    servers: tuple[SignetServers, ...]
    plugins: tuple[str, ...]
    both: tuple[str, ...]
    taken_out: tuple[str, ...]


@dataclass(slots=True)
class Chosen:
    """What a decision did: harnesses whose hooks or servers went or came back, pages, manifests, what is left to do.

    `failed` is what the same command tries again.
    """

    owner: str
    hooks: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def status(workspace: Workspace, environ: Mapping[str, str] = os.environ) -> SignetStatus:
    """Looks at settings, daemon, pages and harnesses; writes nothing."""
    root = workspace.root
    agents = counts.agents(workspace.database)
    hooks = tuple(one for one in _signets_hooks(environ) if one.events or one.trouble)
    conditions = hooks_install.conditions(root, signet_hooks.HARNESSES, environ)
    feeding = {one.harness for one in conditions if hooks_install.is_fed(one, root)}
    return SignetStatus(
        _owner(workspace.settings),
        holds(workspace, agents),
        daemon_pid(root),
        next((path for path in SIGNET_DATABASES if files.status_of(root, path) is not None), None),
        {path: _writer(root, path) for path in map(head_page, sorted(agents))},
        hooks,
        tuple(one for one in _signets_servers(environ) if one.names or one.trouble),
        tuple(signet_servers.plugins(environ)),
        tuple(one.harness for one in hooks if one.events and one.harness in feeding),
        tuple(dict.fromkeys(one.harness for one in _record(workspace.state))),
    )


def _owner(settings: Settings) -> str:
    return SIGNET if settings.yields else OURS if settings.takeover else OPEN


def _signets_hooks(environ: Mapping[str, str]) -> list[SignetHooks]:
    return [signet_hooks.found(harness, environ) for harness in signet_hooks.HARNESSES]


def _signets_servers(environ: Mapping[str, str]) -> list[SignetServers]:
    return [signet_servers.found(harness, environ) for harness in signet_servers.HARNESSES]


def _writer(root: str, path: str) -> str:
    found = files.read(root, path, PAGE_LIMIT)
    if not isinstance(found, Found):
        return "none"
    if managed_block.around(found.raw) is not None:
        return OURS
    return SIGNET if persons_text(found.raw) is not None else "a person"


# ── the decision ──


def take_over(
    root: str, settings: Settings, now_us: int, *, database: str | None, environ: Mapping[str, str] = os.environ
) -> Chosen:
    """Takes Signet's hooks out, puts texts of people back, and makes us the owner of the pages; each step resumes.

    Raises `SignetSyncError`, `OSError`.
    """
    done = Chosen(OURS)
    with opened(root, settings, database=database) as workspace:
        engine.run_pass(workspace, Request(now_us=now_us, project=False))
        _take_out(workspace.state, environ, done)
        with state_dir.workspace_lock(workspace.state):
            done.pages += signet_takeover.keep_pages(workspace, now_us)
            done.manifests, trouble = signet_takeover.put_bodies_back(workspace)
        done.failed += trouble
        done.kept += workspace.events
    _decide(root, {"takeover": True, "yield": None}, OURS, done)
    if (pid := daemon_pid(root)) is not None:
        done.by_hand.append(f"stop Signet's daemon, which goes on writing MEMORY.md: kill {pid}")
    _pass(root, now_us, database)
    return done


def leave(
    root: str, settings: Settings, now_us: int, *, database: str | None, environ: Mapping[str, str] = os.environ
) -> Chosen:
    """Leaves the pages to Signet: keeps people's texts, withdraws our other pages, puts Signet's hooks back.

    Raises `SignetSyncError`, `OSError`.
    """
    done = Chosen(SIGNET)
    # First, so that no pass of a running agent writes again what is withdrawn.
    _decide(root, {"takeover": None, "yield": True}, SIGNET, done)
    with opened(root, settings, database=database) as workspace:
        with state_dir.workspace_lock(workspace.state):
            done.pages += signet_takeover.leave(workspace, now_us)
        _put_back(workspace.state, done)
        done.kept += workspace.events
        for harness in status(workspace, environ).both:
            words = "its sessions go to Signet and to us; to have them captured once"
            done.by_hand.append(f"{harness}: {words}: signet-sync hooks uninstall {harness}")
    return done


def undo(root: str, now_us: int, *, database: str | None) -> Chosen:
    """Puts Signet's hooks back and forgets the decision: pages are held while its daemon lives. Raises likewise."""
    done = Chosen(OPEN)
    _decide(root, {"takeover": None, "yield": None}, OPEN, done)
    _put_back(state_dir.locate(root), done)
    _pass(root, now_us, database)
    return done


def _pass(root: str, now_us: int, database: str | None) -> None:
    settings, _ = model.load(root)
    with opened(root, settings, database=database) as workspace:
        engine.run_pass(workspace, Request(now_us=now_us))


def _decide(root: str, flags: Mapping[str, bool | None], owner: str, done: Chosen) -> None:
    """Writes the decision into the workspace's settings, with which it reaches other machines."""
    require_root(root)
    found = files.read(root, SETTINGS, _SETTINGS_LIMIT)
    if isinstance(found, Found):
        try:
            text = found.raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError("it is not UTF-8", path=SETTINGS, hint="correct it; nothing was written") from error
        data = workspace_file.with_flags(text, "projection", flags).encode()
        if data != found.raw and files.replace(root, SETTINGS, data, found.raw).displaced is not None:
            raise UsageError("it changed in the meantime", path=SETTINGS, hint="run the same command again")
    elif found.code == "gone":
        data = workspace_file.with_flags("", "projection", flags).encode()
        if data:
            with suppress(FileExistsError):
                files.create_once(root, SETTINGS, data)
    else:
        raise ConfigError(found.message, path=SETTINGS, hint="put a file in its place; nothing was written")
    if _owner(model.load(root)[0]) != owner:
        done.by_hand.append("your own config.toml or the environment sets projection.takeover or .yield: take it out")


# ── hooks ──


def _take_out(folder: state_dir.StateFolder, environ: Mapping[str, str], done: Chosen) -> None:
    for harness in signet_hooks.HARNESSES:
        if _taken(folder, f"{harness}: Signet's hooks", partial(signet_hooks.taking_out, harness, environ), done):
            done.hooks.append(harness)
            if harness == "codex":
                done.by_hand.append("codex: it knows hooks by their position; run /hooks inside Codex if it asks again")
    for harness in signet_servers.HARNESSES:
        if _taken(folder, f"{harness}: Signet's servers", partial(signet_servers.taking_out, harness, environ), done):
            done.servers.append(harness)
    for name in (name for one in _signets_servers(environ) if one.by_hand for name in one.names):
        done.by_hand.append(f"take out Signet's MCP server: codex mcp remove {shlex.quote(name)}")
    done.by_hand += [f"{path}: a plug-in of Signet; delete it there" for path in signet_servers.plugins(environ)]


def _taken(
    folder: state_dir.StateFolder, what: str, plan: Callable[[], tuple[Edit, Removal] | None], done: Chosen
) -> bool:
    """Takes what is planned out of a file; returns whether there was anything."""
    try:
        planned = plan()
        if planned is None:
            return False
        edit, removal = planned
        # Before the file changes, so that what is taken out can be put back whatever happens.
        others = [one for one in _record(folder) if (one.path, one.way) != (removal.path, removal.way)]
        _save(folder, [*others, removal])
        settings_files.apply(edit)
    except (SignetSyncError, OSError) as error:
        done.failed.append(f"{what} are still there: {_why(error)}")
        return False
    return True


def _put_back(folder: state_dir.StateFolder, done: Chosen) -> None:
    left: list[Removal] = []
    # Of two that one file held, the last one that was taken out first: then the bytes are the same again.
    for removal in reversed(_record(folder)):
        try:
            edit = signet_hooks.putting_back(removal)
            if edit.kind != "unchanged":
                settings_files.apply(edit)
                (done.servers if removal.servers else done.hooks).append(removal.harness)
        except (SignetSyncError, OSError) as error:
            left.insert(0, removal)
            done.failed.append(f"{removal.harness}: what was taken out of {removal.path} is not back: {_why(error)}")
    _save(folder, left)


def _why(error: SignetSyncError | OSError) -> str:
    return f"{error.message}: {error.hint}" if isinstance(error, SignetSyncError) else reason(error)


def _record(folder: state_dir.StateFolder) -> list[Removal]:
    """Returns what was taken out of harnesses; what cannot be read of it is left out."""
    saved = (state_dir.read_json(os.path.join(folder.path, _RECORD)) or {}).get("removals")
    found = []
    for fields in saved if isinstance(saved, list) else ():
        with suppress(KeyError, TypeError, ValueError):
            found.append(Removal.of(fields))
    return found


def _save(folder: state_dir.StateFolder, removals: Sequence[Removal]) -> None:
    path = os.path.join(folder.path, _RECORD)
    if not removals:
        with suppress(FileNotFoundError):
            unlink(path)
        return
    fields = [{name: getattr(one, name) for name in Removal.__slots__} for one in removals]
    state_dir.write_json(path, {"removals": fields})
