"""Loads settings from environment, user file, workspace file and defaults.

Order: `SIGNET_*` > user file > workspace file > defaults. A workspace may come from a checkout: its file may
set only what is harmless (`_HARMLESS`), and what is broken in it stops nothing. An unusable value is replaced by the
last good one (kept in the state folder), else by the default, and a `SettingsRemark` reports it. The last good one
comes first, because a default may be weaker: `noise.*` keeps sessions off pages, `agents.projects` keeps agents apart.

What is wrong in the person's own file or environment is an error. For callers that run unattended (`anyway`) it is
replaced likewise, and until it is repaired no model is asked, no history is written, nothing is shared and no kept
data is deleted (`_CAUTION`): the part that cannot be read may be the one that forbids it.
"""

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from signet_sync.errors import ConfigError, UsageError
from signet_sync.formats.ids import is_rule
from signet_sync.formats.paths import display
from signet_sync.settings.model_choice import ANTHROPIC, FOLDER, LOCAL, PROVIDERS, SERVERS, resolve, resolve_meaning
from signet_sync.storage.locations import locate, read_json, user_file

WORKSPACE_FILE = "signet-sync.toml"
UNKNOWN = "unknown setting"
FILE_LIMIT = 64 * 1024
DOTS_LIMIT = 100

Path = str

# What a workspace may set: nothing of it runs a program, sends text anywhere, writes elsewhere, deletes, ends capture.
_HARMLESS: tuple[str, ...] = ("watch.", "context.", "projection.", "noise.", "dream.", "agents.")
_HARMLESS += ("capture.idle", "reconcile.interval", "reconcile.settle_seconds")


class Setting(NamedTuple):
    """Declares a setting: its default, its key in TOML, its meaning, limits or choices, and the name of its field."""

    default: Any
    key: str
    doc: str
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    name: str = ""

    @property
    def workspace(self) -> bool:
        """Returns whether a workspace's own file may set it."""
        return self.key.startswith(_HARMLESS)


_setting: Any = Setting


class Settings:
    """The value of every setting; what is not given is the default.

    Times are seconds, sizes bytes, budgets tokens (see `pages.budget`), shares fractions of one.
    """

    debounce: float = _setting(0.2, "watch.debounce", "Quiet seconds after a change before a pass.", (0.0, 60.0))
    watch_mode: str = _setting("auto", "watch.mode", "`off`: full passes alone, no events.", choices=("auto", "off"))
    interval: float = _setting(300.0, "reconcile.interval", "Least seconds between full passes.", (1.0, 604_800.0))
    max_file_bytes: int = _setting(64 << 20, "reconcile.max_file_bytes", "A larger file is not read.", (1024, 4 << 30))
    settle_seconds: float = _setting(2.0, "reconcile.settle_seconds", "No younger file is reported.", (0.0, 600.0))
    context_budget_tokens: int = _setting(
        2000, "context.budget_tokens", "Size of the context at a session's start, in tokens.", (100, 10_000)
    )
    context_prompts: bool = _setting(True, "context.prompts", "`false`: nothing is injected at prompts.")
    context_moments: bool = _setting(True, "context.moments", "`false`: nothing is injected at edits and commands.")
    context_notes: bool = _setting(True, "context.notes", "`false`: no agent is asked to hand over in its reports.")
    budget_tokens: int = _setting(
        5000, "projection.budget_tokens", "Size of the generated part of MEMORY.md, in tokens.", (500, 1_000_000)
    )
    window_days: int = _setting(30, "projection.window_days", "Days in MEMORY.md's session ledger.", (1, 3650))
    takeover: bool = _setting(False, "projection.takeover", "Write pages although a Signet daemon is running here.")
    noise_projects: tuple[str, ...] = _setting(
        (), "noise.projects", "More project prefixes whose sessions are indexed but not shown on pages."
    )
    noise_sessions: tuple[str, ...] = _setting(
        (), "noise.sessions", "More prefixes of ids and keys of sessions without project that pages leave out."
    )
    recall_retention_days: float = _setting(
        365.0, "recall.retention_days", "Days for which recall hits are kept, and count; 0 forever.", (0.0, 36500.0)
    )
    recall_meaning: str = _setting(
        "off",
        "recall.meaning",
        "What finds texts that say it in other words: `local`, `multilingual`, a folder with a model, or a server (see"
        " below). `off`: nothing, and its vectors are deleted; `paused`: they are kept.",
        choices=("off", "paused", *LOCAL, *(server for server in SERVERS if server != ANTHROPIC), FOLDER),
    )
    dream_enabled: bool = _setting(True, "dream.enabled", "`false`: only the command `dream` makes sweeps, not `run`.")
    dream_interval: float = _setting(86_400.0, "dream.interval", "Seconds between two sweeps.", (60.0, 31_622_400.0))
    dream_min_score: float = _setting(0.35, "dream.min_score", "Least score of a promoted memory.", (0.0, 100.0))
    dream_max_promotions: int = _setting(20, "dream.max_promotions", "Most promotions in one sweep.", (0, 10_000))
    history_enabled: bool = _setting(False, "history.enabled", "Keep a git history (needs the extra `git`).")
    history_author_name: str = _setting("", "history.author_name", "Author of commits; empty: the agent's id.")
    history_author_email: str = _setting("", "history.author_email", "Author's email; empty: `agent@localhost`.")
    capture_idle: float = _setting(
        900.0, "capture.idle", "Seconds of silence after which a transcript without end is captured.", (1.0, 604_800.0)
    )
    capture_exclude: tuple[str, ...] = _setting(
        (), "capture.exclude", "Projects that are not captured: globs of paths (`~/clients/*`) or of a folder's name."
    )
    agents_projects: tuple[str, ...] = _setting(
        (), "agents.projects", "Agents of projects, as `PATH=AGENT`; the longest path with the project counts."
    )
    log_level: str = _setting("INFO", "log.level", "Least that is logged.", None, ("DEBUG", "INFO", "WARNING", "ERROR"))
    llm_daily_tokens: int = _setting(
        200_000, "llm.daily_tokens", "Most tokens for models on a UTC day, in all workspaces; 0: none.", (0, 10**12)
    )
    llm_provider: str = _setting("", "llm.provider", "Who digests sessions (see below).", choices=PROVIDERS)
    llm_model: str = _setting("", "llm.model", "Name of the model on the server.")
    llm_endpoint: str = _setting("", "llm.endpoint", "Base URL of the server; empty: the provider's own.")
    llm_timeout: float = _setting(60.0, "llm.timeout", "Most seconds to wait for the model.", (0.1, 3600.0))
    llm_command: tuple[str, ...] = _setting((), "llm.command", "Program and arguments for `command`.")
    llm_api_key_env: str = _setting("", "llm.api_key_env", "Environment variable with the key.")
    llm_api_key_file: str = _setting("", "llm.api_key_file", "File with only the key, readable only by you.")
    meaning_model: str = _setting("", "meaning.model", "Name of the model on the server.")
    meaning_endpoint: str = _setting("", "meaning.endpoint", "Base URL of the server; empty: the provider's own.")
    meaning_api_key_env: str = _setting("", "meaning.api_key_env", "Environment variable with the key.")
    meaning_api_key_file: str = _setting("", "meaning.api_key_file", "File with only the key, readable only by you.")
    fleet_url: str = _setting(
        "", "fleet.url", "Where the agent shares this machine's rows: a folder or a URL; empty: nowhere."
    )
    fleet_holds: str = _setting(
        "rows", "fleet.holds", "What a share holds: `rows` without text, or `text` as well.", choices=("rows", "text")
    )
    fleet_interval: float = _setting(3600.0, "fleet.interval", "Seconds between two shares by `run`.", (1.0, 604_800.0))
    fleet_removals: bool = _setting(False, "fleet.removals", "Also remove the sessions that are approved there.")

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - _DEFAULTS.keys():
            raise TypeError(f"no settings: {', '.join(unknown)}")
        vars(self).update(_DEFAULTS | values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("settings do not change")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and vars(self) == vars(other)

    def replace(self, **values: Any) -> "Settings":
        """Returns settings with other values."""
        return Settings(**vars(self) | values)


ALL_SETTINGS = [one._replace(name=name) for name, one in vars(Settings).items() if isinstance(one, Setting)]
_DEFAULTS = {one.name: one.default for one in ALL_SETTINGS}


def environment_name(f: Setting) -> str:
    """Returns `SIGNET_` + the key in upper case: `projection.budget_tokens` is `SIGNET_PROJECTION_BUDGET_TOKENS`."""
    return "SIGNET_" + f.key.replace(".", "_").upper()


class SettingsRemark(NamedTuple):
    """Something in a file or variable (`place`) that was not taken as written: ignored, or `broken` and replaced."""

    place: str
    message: str
    hint: str
    broken: bool

    def __str__(self) -> str:
        line = f"{self.place}: {self.message}"
        if not self.broken:
            return line
        own = self.place == WORKSPACE_FILE
        return f"{line}; the last good value or the default is used{'' if own else ', and no model is asked'}"


def hook_settings(root: Path) -> tuple[dict[str, Any], list[SettingsRemark]]:
    """Loads only the settings that a hook needs, without the cost of all others; those that are set, by field name."""
    needed = ("agents_projects", "capture_exclude", "context_budget_tokens", "context_prompts", "context_notes")
    layers = _Layers(root, anyway=True, only=(*needed, "context_moments"))
    values = layers.merge()
    return values, [remark for remark in layers.remarks if remark.broken]


def load(
    root: Path, *, environ: Mapping[str, str] = os.environ, anyway: bool = False
) -> tuple[Settings, list[SettingsRemark]]:
    """Loads the settings of a workspace, with one remark per value that was ignored or could not be used.

    Raises `ConfigError` with the file, the key and the allowed values for what a person set; with `anyway` nothing.
    """
    layers = _Layers(root, anyway=anyway, environ=environ)
    values = layers.merge()
    values |= _CAUTION if layers.doubtful else {}
    settings = Settings(**values)
    try:
        resolve(settings)
        resolve_meaning(settings)
    except ConfigError as error:
        layers.refuse(error, user_file(environ))
        settings = settings.replace(**_CAUTION)
    return settings, layers.remarks


def list_broken_values(root: Path) -> list[SettingsRemark]:
    """Lists what cannot be used in the workspace's own file; the person's settings are not examined."""
    layers = _Layers(root, anyway=True)
    layers.read_file(_OF_WORKSPACE)
    return [remark for remark in layers.remarks if remark.broken]


class KnownSetting(NamedTuple):
    """A setting with the value that is in effect and where that is from: a variable, a file, or `default`."""

    field: Setting
    value: object
    origin: str


def list_settings(root: Path) -> tuple[list[KnownSetting], list[SettingsRemark]]:
    """Returns every setting in order, and what of them could not be used."""
    settings, remarks = load(root, anyway=True)
    layers = _Layers(root, anyway=True)
    origins = dict.fromkeys(layers.read_file(_OF_WORKSPACE), WORKSPACE_FILE)
    origins |= dict.fromkeys(layers.read_file(_OF_USER), user_file())
    origins |= {f.name: environment_name(f) for f in ALL_SETTINGS if environment_name(f) in os.environ}
    known = [KnownSetting(f, getattr(settings, f.name), origins.get(f.name, "default")) for f in ALL_SETTINGS]
    return known, remarks


def require_setting(key: str) -> Setting:
    """Returns the setting of a key. Raises `UsageError` (`unknown-setting`)."""
    by_key: dict[str, Setting] = {f.key: f for f in ALL_SETTINGS}
    if key not in by_key:
        message = f"there is no setting {display(key[:60])}{_suggestion(key, by_key)}"
        raise UsageError(message, hint="signet-sync settings shows every setting", code="unknown-setting")
    return by_key[key]


def _suggestion(key: str, known: Iterable[str]) -> str:
    """Returns the setting that was meant, if a name is only mistyped."""
    from difflib import get_close_matches

    meant = get_close_matches(key, known, 1, 0.75)
    return f", did you mean {meant[0]}?" if meant else ""


def parse(f: Setting, text: str, source: str) -> object:
    """Returns the value that a text means: a list is divided by commas, or written as in TOML. Raises `ConfigError`."""
    value: object = text
    if isinstance(f.default, tuple):
        value = [part.strip() for part in text.split(",") if part.strip()]
        if text.strip().startswith("["):
            import tomllib

            with suppress(ValueError):
                value = tomllib.loads(f"value = {text}")["value"]
    return _check_value(f, value, source)


def join_remarks(remarks: Iterable[SettingsRemark]) -> str:
    """Returns what cannot be used of the settings, on one line; empty if all can."""
    broken = [remark for remark in remarks if remark.broken]
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"{display(str(broken[0]))}{more}: signet-sync doctor" if broken else ""


def file_states(root: Path) -> tuple[object, ...]:
    """Returns what changes when one of the two files changes."""
    found: list[object] = [None, None]
    for at, (path, look) in enumerate(((os.path.join(root, WORKSPACE_FILE), os.lstat), (user_file(), os.stat))):
        with suppress(OSError, ValueError):
            status = look(path)
            found[at] = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return tuple(found)


def last_good_values(
    root: Path, kept: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> dict[str, object]:
    """Returns the last good values of both files, for when one of them is broken; `kept` are the previous ones.

    Of the person's file, too, only what a workspace may set: a kept value can neither run, send nor delete anything.
    What the sanitizer would change is not kept at all.
    """
    from signet_sync.text.sanitizer import sanitize_line

    layers = _Layers(root, anyway=True, environ=environ, kept=kept)
    good: dict[str, object] = {}
    for layer in (_OF_WORKSPACE, _OF_USER):
        found = layers.read_file(layer)
        values = {f.key: found[f.name] for f in ALL_SETTINGS if f.name in found and f.workspace}
        if plain := {key: value for key, value in values.items() if sanitize_line(repr(value)) == repr(value)}:
            good[layer] = plain
    return good


_OF_WORKSPACE, _OF_USER = "workspace", "user"

# What the unreadable part of a person's settings may have forbidden or required.
_CAUTION: dict[str, Any] = {"llm_provider": "none", "recall_meaning": "paused"}
_CAUTION |= {"history_enabled": False, "recall_retention_days": 0.0}
_CAUTION |= {"fleet_url": "", "fleet_removals": False}


class _Layers:
    """The layers, each limited to what it may set; problems are collected in `remarks`.

    `doubtful`: something is wrong with what the person set. With `only` no other field is examined.
    """

    def __init__(
        self,
        root: Path,
        *,
        anyway: bool,
        environ: Mapping[str, str] = os.environ,
        only: tuple[str, ...] = (),
        kept: Mapping[str, object] | None = None,
    ) -> None:
        self.remarks: list[SettingsRemark] = []
        self.doubtful = False
        self._root, self._environ, self._anyway = root, environ, anyway
        self._kept = kept
        self._by_key = {f.key: f for f in ALL_SETTINGS}
        self._fields = [f for f in ALL_SETTINGS if not only or f.name in only]

    def refuse(self, error: ConfigError, place: str) -> None:
        """Records what is wrong with the workspace's own file, or with what the person set, or raises the latter."""
        own = place == WORKSPACE_FILE
        if not own and not self._anyway:
            raise error
        self.doubtful = self.doubtful or not own
        self.remarks.append(SettingsRemark(place if own else error.path or place, error.message, error.hint, True))

    def read_file(self, layer: str) -> dict[str, object]:
        """Returns what a file sets, by field name. Raises `ConfigError` for the person's own, unless `anyway`."""
        own = layer == _OF_WORKSPACE
        path = os.path.join(self._root, WORKSPACE_FILE) if own else user_file(self._environ)
        source = WORKSPACE_FILE if own else path
        values: dict[str, object] = {}
        try:
            entries = list(flatten(_document(path, own=own)))
        except ConfigError as error:
            self.refuse(error, source)
            return self._last_good(layer)
        for key, value in entries:
            known = self._by_key.get(key)
            # A workspace's file may come from a stranger and hold thousands of names: not each is worth a search.
            meant = _suggestion(key, self._by_key) if known is None and len(self.remarks) < 10 else ""
            if own and (known is None or not known.workspace):
                why = f"{UNKNOWN}{meant}" if known is None else "a workspace may not set this"
                self.remarks.append(SettingsRemark(source, f"{display(key)} ignored: {why}", "", False))
            elif known is None:
                hint = "signet-sync settings shows every setting; remove or rename it"
                self.refuse(ConfigError(f"{UNKNOWN} {display(key)}{meant}", path=path, hint=hint), path)
            elif known in self._fields:
                try:
                    values[known.name] = _check_value(known, value, source)
                except ConfigError as error:
                    self.refuse(error, source)
                    last = self._last_good(layer)
                    values |= {known.name: last[known.name]} if known.name in last else {}
        return values

    def merge(self) -> dict[str, object]:
        """Returns what all of them set, by field name; the person's own comes before the workspace's."""
        return self.read_file(_OF_WORKSPACE) | self.read_file(_OF_USER) | self.read_environment()

    def _last_good(self, layer: str) -> dict[str, object]:
        """Returns the last good values of a file, limited like any others to what it may set."""
        if self._kept is None:
            self._kept = read_json(locate(self._root, self._environ).settings) or {}
        found = self._kept.get(layer)
        values: dict[str, object] = {}
        for f in self._fields:
            if isinstance(found, dict) and f.workspace and f.key in found:
                with suppress(ConfigError):  # another version kept it
                    values[f.name] = _check_value(f, found[f.key], "")
        return values

    def read_environment(self) -> dict[str, object]:
        """Returns what the environment sets, by field name. Raises `ConfigError` unless `anyway`."""
        values: dict[str, object] = {}
        for f in self._fields:
            name = environment_name(f)
            if name in self._environ:
                try:
                    values[f.name] = parse(f, self._environ[name], name)
                except ConfigError as error:
                    self.refuse(error, name)
        return values


def _document(path: Path, *, own: bool) -> dict[str, object]:
    """Returns a TOML file, empty if there is none.

    A workspace's own file must be a regular file: a link could lead anywhere, and opening a pipe would wait forever.
    """
    guard = os.O_NOFOLLOW | os.O_NONBLOCK if own else 0
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | guard)) as handle:
            if own and not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            raw = handle.read(FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        why = "it is a symlink" if error.errno == errno.ELOOP else error.strerror
        hint = "it must be a regular file that you may read"
        raise ConfigError(f"cannot be read: {why}", path=path, hint=hint) from None
    if len(raw) > FILE_LIMIT:
        raise ConfigError(f"is larger than {FILE_LIMIT:,} bytes", path=path, hint="settings need only a few lines")
    # tomllib needs minutes for a key of some ten thousand parts.
    deep = ConfigError("is nested too deeply", path=path, hint="settings are tables of plain values")
    if any(line.count(b".") > DOTS_LIMIT for line in raw.split(b"\n")):
        raise deep
    import tomllib

    try:
        return tomllib.loads(raw.decode("utf-8"))
    except RecursionError:
        raise deep from None
    except ValueError as error:
        raise ConfigError(f"is not valid TOML: {error}", path=path, hint="fix the line that is named") from error


def flatten(tree: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    """Yields the values of a document by dotted key; empty tables say nothing."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", tuple: "a list of texts"}
_TRUTH = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)


def _check_value(f: Setting, value: object, source: str) -> object:
    """Returns a value typed and within its limits; `ConfigError` names source, key and allowed values.

    A text may represent a number (in the environment everything is text); true for 1 or 2.0 for 2 is a mistake.
    """
    key, limits, choices, kind = f.key, f.limits, f.choices, type(f.default)
    typed: Any = value if type(value) is kind else None
    with suppress(ValueError, OverflowError):
        if kind is tuple and isinstance(value, (list, tuple)):
            typed = tuple(value) if all(isinstance(part, str) for part in value) else None
        elif kind is bool and isinstance(value, str):
            typed = _TRUTH.get(value.strip().lower())
        elif (kind in (int, float) and isinstance(value, str)) or (kind is float and type(value) is int):
            typed = kind(value)
    if typed is None:
        message, hint = f"is not {TYPES[kind]}", f"set {key} to {TYPES[kind]}"
    elif limits is not None and not limits[0] <= typed <= limits[1]:
        message, hint = "is out of range", f"it must be between {limits[0]:g} and {limits[1]:g}"
    elif f.name == "agents_projects" and not all(map(is_rule, typed)):
        message, hint = "contains what is no rule", 'write each as "~/path/of/project=agent-id"'
    elif choices and typed not in choices and not (FOLDER in choices and os.path.isabs(typed)):
        message, hint = "is unknown", "one of: " + ", ".join(filter(None, choices))
    else:
        return typed
    from signet_sync.text.sanitizer import sanitize_line  # slow; the value may be a key that is on the wrong line

    shown = sanitize_line(repr(value))
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    raise ConfigError(f"{key} = {shown} {message}", path=source, hint=hint)
