"""Loads settings into one frozen dataclass from flags, environment, user file, workspace file and defaults.

Order: flags > `SIGNET_*` > user file > workspace file > defaults. The workspace file may only
set what cannot run a program, send text anywhere or write elsewhere; anything else in it is reported and ignored,
because a workspace may come from a checkout.

A broken workspace file stops nothing either: an unusable value is replaced by the last good one (kept in the state
folder, see `last_good_values`), else by the default, and a `SettingsRemark` reports it. The last good one comes first,
because a default may be weaker: `noise.*` keeps sessions off pages, `agents.projects` keeps agents apart.

What is wrong in the person's own file or environment is an error. For callers that run unattended (`anyway`) it is
replaced likewise, and until it is repaired no model is asked, no history is written and no kept data is deleted
(`_CAUTION`): the part that cannot be read may be the one that forbids it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.errors import ConfigError, UsageError
from signet_sync.formats.ids import is_rule
from signet_sync.formats.paths import display
from signet_sync.settings.model_choice import (
    PROVIDERS,
    SERVERS,
    resolve,
    resolve_embeddings,
)
from signet_sync.storage.locations import DEFAULT_WORKSPACE as DEFAULT_WORKSPACE
from signet_sync.storage.locations import locate, read_json
from signet_sync.storage.locations import locate_workspace as locate_workspace
from signet_sync.storage.locations import user_file as user_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from signet_sync.storage.vault import Vault

WORKSPACE_FILE = "signet-sync.toml"
UNKNOWN = "unknown setting"
FILE_LIMIT = 64 * 1024
_SEARCHES = 10
DOTS_LIMIT = 100
_SHOWN = 200

Path = str


def _setting(
    default: Any,
    key: str,
    doc: str,
    limits: tuple[float, float] | None = None,
    *,
    choices: tuple[str, ...] = (),
    workspace: bool = True,
) -> Any:
    metadata = {"default": default, "key": key, "doc": doc, "workspace": workspace}
    metadata |= {"limits": limits, "choices": choices}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _own_setting(*given: Any, **more: Any) -> Any:
    """Declares a setting that a workspace may never set: it runs a program, sends text somewhere or deletes."""
    return _setting(*given, workspace=False, **more)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)  # they take a millisecond a field to make
class Settings:
    """Every setting with its default; `metadata` holds TOML key, meaning, limits and whether a workspace may set it.

    Times are seconds, sizes bytes, budgets tokens (see `pages.budget`), shares fractions of one.
    """

    debounce: float = _setting(
        0.2, "watch.debounce", "Quiet time after the last change before a pass starts, in seconds.", (0.0, 60.0)
    )
    watch_mode: str = _setting(
        "auto", "watch.mode", "`auto`: events of the system, else polling.", choices=("auto", "polling", "off")
    )
    poll_interval: float = _setting(
        2.0, "watch.poll_interval", "Time between two checks when polling, in seconds.", (0.1, 3600.0)
    )
    interval: float = _setting(
        300.0, "reconcile.interval", "Least time between two full passes of `run`, in seconds.", (1.0, 7 * 86400.0)
    )
    max_file_bytes: int = _own_setting(
        64 * 1024**2, "reconcile.max_file_bytes", "A larger file is not read, in bytes.", (1024, 4 * 1024**3)
    )
    settle_seconds: float = _setting(
        2.0, "reconcile.settle_seconds", "A younger file is looked at again before it is reported.", (0.0, 600.0)
    )
    context_budget_tokens: int = _setting(
        2000, "context.budget_tokens", "Size of the context that a session gets at its start, in tokens.", (100, 10_000)
    )
    context_prompts: bool = _setting(
        True, "context.prompts", "`false`: nothing is injected at prompts, only at a session's start."
    )
    budget_tokens: int = _setting(
        5000, "projection.budget_tokens", "Size of the generated part of MEMORY.md, in tokens.", (500, 1_000_000)
    )
    window_days: int = _setting(
        30, "projection.window_days", "Days of sessions that the session ledger of MEMORY.md shows.", (1, 3650)
    )
    takeover: bool = _setting(
        False,
        "projection.takeover",
        "Write pages and manifests although a Signet daemon is running on the same workspace.",
    )
    noise_projects: tuple[str, ...] = _setting(
        (), "noise.projects", "Additional project prefixes whose sessions are indexed but not shown on pages."
    )
    noise_sessions: tuple[str, ...] = _setting(
        (), "noise.sessions", "Additional prefixes of ids and keys of sessions without project that pages leave out."
    )
    recall_retention_days: float = _own_setting(
        365.0, "recall.retention_days", "Days for which recall hits are kept, and count; 0 forever.", (0.0, 36500.0)
    )
    dream_enabled: bool = _setting(
        True, "dream.enabled", "`false`: `run` makes no sweeps; the command `dream` still does."
    )
    dream_interval: float = _setting(
        86_400.0, "dream.interval", "Time between two sweeps of an agent by `run`, in seconds.", (60.0, 366 * 86400.0)
    )
    dream_min_score: float = _setting(
        0.35, "dream.min_score", "Least score of a memory that is promoted.", (0.0, 100.0)
    )
    dream_max_promotions: int = _setting(
        20, "dream.max_promotions", "Most memories that one sweep promotes.", (0, 10_000)
    )
    history_enabled: bool = _setting(
        False, "history.enabled", "Keep a git history of the workspace (needs the extra `git`).", workspace=False
    )
    history_author_name: str = _setting(
        "", "history.author_name", "Author of commits; empty: the agent's id.", workspace=False
    )
    history_author_email: str = _setting(
        "", "history.author_email", "Email address of the author of commits; empty: `agent@localhost`.", workspace=False
    )
    history_max_file_bytes: int = _setting(
        1024 * 1024, "history.max_file_bytes", "A larger file is not committed, in bytes.", (0, 10**9), workspace=False
    )
    history_transcripts: bool = _setting(False, "history.transcripts", "Also commit transcripts.", workspace=False)
    history_debounce: float = _setting(
        30.0,
        "history.debounce",
        "Quiet time after the end of a session before `run` commits it, in seconds.",
        (0.0, 3600.0),
        workspace=False,
    )
    capture_idle: float = _setting(
        900.0, "capture.idle", "Seconds of silence after which a transcript without end is captured.", (1.0, 604800.0)
    )
    agents_projects: tuple[str, ...] = _setting(
        (),
        "agents.projects",
        "Agents of projects, as `PATH=AGENT`; the longest path that contains the project counts.",
    )
    seals_keep_days: float = _setting(
        0.0,
        "seals.keep_days",
        "Days after which the sealed bytes of an unchanged file are deleted; 0 never. A later change of it is still "
        "detected, but can no longer be restored from the seal.",
        (0.0, 36500.0),
        workspace=False,
    )
    seals_max_bytes: int = _own_setting(
        0,
        "seals.max_bytes",
        "Most sealed bytes; beyond it those of unchanged files go, oldest first; 0 any.",
        (0, 10**13),
    )
    log_level: str = _own_setting(
        "INFO", "log.level", "What is logged: this, and what is worse.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    backup_keep: int = _own_setting(
        3, "backup.keep", "Backups of native rows that are kept in the state folder.", (1, 1000)
    )
    llm_daily_tokens: int = _own_setting(
        200_000, "llm.daily_tokens", "Most tokens for models on a UTC day, in all workspaces; 0: none.", (0, 10**12)
    )
    llm_provider: str = _own_setting(
        "", "llm.provider", "Who writes summaries and sentences (see below).", choices=PROVIDERS
    )
    llm_model: str = _own_setting("", "llm.model", "Name of the model on the server.")
    llm_endpoint: str = _own_setting(
        "", "llm.endpoint", "Base URL of the server, such as `http://127.0.0.1:11434/v1`; empty: the provider's own."
    )
    llm_timeout: float = _own_setting(
        60.0, "llm.timeout", "Longest time that a session's end waits for the model, in seconds.", (0.1, 3600.0)
    )
    llm_command: tuple[str, ...] = _own_setting(
        (), "llm.command", "Program and arguments for `command`: the prompt on stdin, the answer on stdout."
    )
    llm_api_key_env: str = _own_setting("", "llm.api_key_env", "Name of the environment variable with the key.")
    llm_api_key_file: str = _own_setting(
        "", "llm.api_key_file", "File that contains only the key, readable only by you (mode 0600)."
    )
    synthesis_enabled: bool = _own_setting(
        True, "llm.synthesis.enabled", "`false`: no model is asked for summaries and sentences."
    )
    synthesis_provider: str = _own_setting(
        "", "llm.synthesis.provider", "Another provider for summaries and sentences.", choices=PROVIDERS
    )
    synthesis_model: str = _own_setting("", "llm.synthesis.model", "Another model for them.")
    synthesis_endpoint: str = _own_setting(
        "", "llm.synthesis.endpoint", "Another server for them; the key of `[llm]` is not sent there."
    )
    synthesis_timeout: float = _own_setting(
        0.0, "llm.synthesis.timeout", "Another timeout for them, in seconds; 0: that of `[llm]`.", (0.0, 3600.0)
    )
    synthesis_command: tuple[str, ...] = _own_setting((), "llm.synthesis.command", "Another program for them.")
    synthesis_api_key_env: str = _own_setting(
        "", "llm.synthesis.api_key_env", "Another variable with the key for them."
    )
    synthesis_api_key_file: str = _own_setting("", "llm.synthesis.api_key_file", "Another file with the key for them.")
    embeddings_enabled: bool = _own_setting(
        True, "embeddings.enabled", "`false`: no vector is made or searched; those that exist are kept."
    )
    embeddings_provider: str = _own_setting(
        "",
        "embeddings.provider",
        "Who makes vectors for texts of similar meaning (see below); empty, `none`: nobody, and vectors are deleted.",
        choices=("", "none", *SERVERS),
    )
    embeddings_model: str = _own_setting("", "embeddings.model", "Name of the model on the server.")
    embeddings_endpoint: str = _own_setting(
        "", "embeddings.endpoint", "Base URL of the server; empty: the provider's own."
    )
    embeddings_api_key_env: str = _own_setting(
        "", "embeddings.api_key_env", "Name of the environment variable with the key."
    )
    embeddings_api_key_file: str = _own_setting(
        "", "embeddings.api_key_file", "File that contains only the key, readable only by you (mode 0600)."
    )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in fields(self)
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)))


def spec(f: Field[Any]) -> tuple[str, Any, str, bool]:
    """Returns TOML key, default, meaning, and whether a workspace file may set it."""
    return f.metadata["key"], f.metadata["default"], f.metadata["doc"], f.metadata["workspace"]


def environment_name(f: Field[Any]) -> str:
    """Returns `SIGNET_` + the key in upper case: `projection.budget_tokens` is `SIGNET_PROJECTION_BUDGET_TOKENS`."""
    return "SIGNET_" + str(f.metadata["key"]).replace(".", "_").upper()


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


def hook_settings(root: Path, environ: Mapping[str, str] = os.environ) -> tuple[dict[str, Any], list[SettingsRemark]]:
    """Loads only the settings that a hook needs, without the cost of all others; those that are set, by field name."""
    layers = _Layers(root, environ, anyway=True, only=_OF_HOOKS)
    return layers.of_workspace() | layers.of_person(), [remark for remark in layers.remarks if remark.broken]


def _suggestion(key: str, known: Iterable[str]) -> str:
    """Returns the setting that was meant, if a name is only mistyped."""
    from difflib import get_close_matches

    meant = get_close_matches(key, known, 1, 0.75)
    return f", did you mean {meant[0]}?" if meant else ""


def load(
    root: Path,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
    anyway: bool = False,
    vault: Vault | None = None,
) -> tuple[Settings, list[SettingsRemark]]:
    """Loads the settings of a workspace, with one remark per value that was ignored or could not be used.

    `flags` are keyed by field name; a workspace elsewhere has its own file in `vault`. Raises `ConfigError` with the
    file, the key and the allowed values for what a person set, and with `anyway` only for flags.
    """
    layers = _Layers(root, environ, anyway=anyway, kept=None if vault is None else {}, vault=vault)
    own, persons = layers.of_workspace(), layers.of_person()
    by_name = {f.name: f for f in fields(Settings)}
    given = {
        name: _checked(by_name[name], value, "--" + name.replace("_", "-"))
        for name, value in (flags or {}).items()
        if value is not None
    }
    values = own | persons | (_CAUTION if layers.doubtful else {}) | given
    settings = Settings(**values)  # type: ignore[arg-type]
    try:
        resolve(settings, None)
        resolve_embeddings(settings)
    except ConfigError as error:
        layers.refuse(error, user_file(environ))
        settings = replace(settings, **_CAUTION)
    return settings, layers.remarks


def broken_values(root: Path, environ: Mapping[str, str] = os.environ) -> list[SettingsRemark]:
    """Lists what cannot be used in the workspace's own file; the person's settings are not examined."""
    layers = _Layers(root, environ, anyway=True)
    layers.of_workspace()
    return [remark for remark in layers.remarks if remark.broken]


class KnownSetting(NamedTuple):
    """A setting with the value that is in effect and where that is from: a variable, a file, or `default`."""

    field: Field[Any]
    value: object
    origin: str


def known_settings(
    root: Path, environ: Mapping[str, str] = os.environ
) -> tuple[list[KnownSetting], list[SettingsRemark]]:
    """Returns every setting in order, and what of them could not be used."""
    settings, remarks = load(root, environ=environ, anyway=True)
    layers = _Layers(root, environ, anyway=True)
    origins = dict.fromkeys(layers.of_workspace(), WORKSPACE_FILE)
    origins |= dict.fromkeys(layers.of_user(), user_file(environ))
    origins |= {f.name: environment_name(f) for f in fields(Settings) if environment_name(f) in environ}
    return [
        KnownSetting(f, getattr(settings, f.name), origins.get(f.name, "default")) for f in fields(Settings)
    ], remarks


def named(key: str) -> Field[Any]:
    """Returns the setting of a key. Raises `UsageError` (`unknown-setting`)."""
    by_key: dict[str, Field[Any]] = {f.metadata["key"]: f for f in fields(Settings)}
    if key not in by_key:
        message = f"there is no setting {display(key[:60])}{_suggestion(key, by_key)}"
        raise UsageError(message, hint="signet-sync settings list shows every setting", code="unknown-setting")
    return by_key[key]


def parse(f: Field[Any], text: str, source: str) -> object:
    """Returns the value that a text means: a list is divided by commas, or written as in TOML. Raises `ConfigError`."""
    value: object = text
    if isinstance(f.metadata["default"], tuple):
        value = _split(text)
        if text.strip().startswith("["):
            import tomllib

            with suppress(ValueError):
                value = tomllib.loads(f"value = {text}")["value"]
    return _checked(f, value, source)


def in_one_line(remarks: Iterable[SettingsRemark]) -> str:
    """Returns what cannot be used of the settings, on one line; empty if all can."""
    broken = [remark for remark in remarks if remark.broken]
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"{display(str(broken[0]))}{more}: signet-sync doctor" if broken else ""


def file_states(root: Path, environ: Mapping[str, str] = os.environ) -> tuple[object, ...]:
    """Returns what changes when one of the two files changes."""
    found: list[object] = []
    for path, look in ((os.path.join(root, WORKSPACE_FILE), os.lstat), (user_file(environ), os.stat)):
        try:
            status = look(path)
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns))
    return tuple(found)


def last_good_values(
    root: Path, kept: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> dict[str, object]:
    """Returns the last good values of both files, for when one of them is broken; `kept` are the previous ones.

    Of the person's file, too, only what a workspace may set: a kept value can neither run, send nor delete anything.
    What the sanitizer would change is not kept at all.
    """
    layers = _Layers(root, environ, anyway=True, kept=kept)
    good: dict[str, object] = {}
    for name, found in ((_OF_WORKSPACE, layers.of_workspace()), (_OF_USER, layers.of_user())):
        values = {f.metadata["key"]: found[f.name] for f in fields(Settings) if f.name in found and spec(f)[3]}
        plain = {key: value for key, value in values.items() if _shown(value) == repr(value)}
        if plain:
            good[name] = plain
    return good


_OF_WORKSPACE, _OF_USER = "workspace", "user"
_OF_HOOKS = ("agents_projects", "context_budget_tokens", "context_prompts")

# What the unreadable part of a person's settings may have forbidden or required.
_CAUTION: dict[str, Any] = {
    "llm_provider": "none",
    "synthesis_enabled": False,
    "embeddings_enabled": False,
    "history_enabled": False,
    "recall_retention_days": 0.0,
    "seals_keep_days": 0.0,
    "seals_max_bytes": 0,
    "backup_keep": 1000,
}


class _Layers:
    """The layers below the flags, each limited to what it may set; problems are collected in `remarks`.

    `doubtful`: something is wrong with what the person set. With `only` no other field is examined.
    """

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        *,
        anyway: bool,
        only: tuple[str, ...] = (),
        kept: Mapping[str, object] | None = None,
        vault: Vault | None = None,
    ) -> None:
        self.remarks: list[SettingsRemark] = []
        self.doubtful = False
        self._root, self._environ, self._anyway = root, environ, anyway
        self._kept, self._vault = kept, vault
        self._by_key = {f.metadata["key"]: f for f in fields(Settings)}
        self._fields = [f for f in fields(Settings) if not only or f.name in only]

    def of_person(self) -> dict[str, object]:
        """Returns what the person's file and environment set, by field name. Raises `ConfigError` unless `anyway`."""
        return self.of_user() | self._of_environment()

    def refuse(self, error: ConfigError, place: str) -> None:
        """Records what is wrong with the workspace's own file, or with what the person set, or raises the latter."""
        own = place == WORKSPACE_FILE
        if not own and not self._anyway:
            raise error
        self.doubtful = self.doubtful or not own
        self.remarks.append(SettingsRemark(place if own else error.path or place, error.message, error.hint, True))

    def of_workspace(self) -> dict[str, object]:
        """Returns what the workspace's own file sets."""
        return self._of_file(os.path.join(self._root, WORKSPACE_FILE), _OF_WORKSPACE)

    def of_user(self) -> dict[str, object]:
        """Returns what the person's own file sets. Raises `ConfigError` unless with `anyway`."""
        return self._of_file(user_file(self._environ), _OF_USER)

    def _of_file(self, path: Path, layer: str) -> dict[str, object]:
        own = layer == _OF_WORKSPACE
        source = WORKSPACE_FILE if own else path
        values: dict[str, object] = {}
        try:
            entries = list(_entries(path, own=own, vault=self._vault if own else None))
        except ConfigError as error:
            self.refuse(error, source)
            return self._last_good(layer)
        for key, value in entries:
            known = self._by_key.get(key)
            # A workspace's file may come from a stranger and hold thousands of names: not each is worth a search.
            searches = known is None and len(self.remarks) < _SEARCHES
            meant = f"{UNKNOWN}{_suggestion(key, self._by_key) if searches else ''}"
            if own and (known is None or not known.metadata["workspace"]):
                why = meant if known is None else "a workspace may not set this"
                self.remarks.append(SettingsRemark(source, f"{display(key)} ignored: {why}", "", False))
            elif known is None:
                message = meant.replace(UNKNOWN, f"{UNKNOWN} {display(key)}", 1)
                hint = "signet-sync settings list shows every setting; remove or rename it"
                self.refuse(ConfigError(message, path=path, hint=hint), path)
            elif known in self._fields:
                try:
                    values[known.name] = _checked(known, value, source)
                except ConfigError as error:
                    self.refuse(error, source)
                    values |= _substitute(known, self._last_good(layer).get(known.name), value)
        return values

    def _last_good(self, layer: str) -> dict[str, object]:
        """Returns the last good values of a file, limited like any others to what it may set."""
        if self._kept is None:
            self._kept = read_json(locate(self._root, self._environ).settings) or {}
        found = self._kept.get(layer)
        values: dict[str, object] = {}
        for f in self._fields:
            if isinstance(found, dict) and f.metadata["workspace"] and f.metadata["key"] in found:
                try:
                    values[f.name] = _checked(f, found[f.metadata["key"]], "")
                except ConfigError:
                    continue  # another version kept it
        return values

    def _of_environment(self) -> dict[str, object]:
        values: dict[str, object] = {}
        for f in self._fields:
            name = environment_name(f)
            raw = self._environ.get(name)
            if raw is not None:
                try:
                    values[f.name] = parse(f, raw, name)
                except ConfigError as error:
                    self.refuse(error, name)
        return values


def _substitute(f: Field[Any], last: object, value: object) -> dict[str, object]:
    """Replaces a value that cannot be used: by the last good one, and in a list by its good part, too.

    Each of these lists keeps agents apart or sessions off pages: of two possible meanings the stricter one is taken.
    """
    good: list[object] = list(last) if isinstance(last, tuple) else [] if last is None else [last]
    if not isinstance(f.metadata["default"], tuple) or not f.metadata["workspace"]:
        return {f.name: last} if good else {}
    for item in value if isinstance(value, list) else ():
        try:
            _checked(f, [item], "")
        except ConfigError:
            continue
        good.append(item)
    return {f.name: tuple(dict.fromkeys(good))} if good else {}


def _split(raw: str) -> list[str]:
    """Splits a list of texts in the environment at its commas."""
    return [part.strip() for part in raw.split(",") if part.strip()]


def _display(value: object) -> str:
    """Shows a refused value in an error without leaking it: it may be a key that was put on the wrong line."""
    shown = _shown(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _shown(value: object) -> str:
    from signet_sync.text.sanitizer import sanitize_line  # slow, and seldom is a value shown or kept

    return sanitize_line(repr(value))


def _check_rules(rules: Iterable[str], source: str) -> None:
    for rule in rules:
        if not is_rule(rule):
            raise ConfigError(
                f"agents.projects contains {_display(rule)}",
                path=source,
                hint='write each as "~/path/of/project=agent-id"',
            )


def _entries(path: Path, *, own: bool = False, vault: Vault | None = None) -> list[tuple[str, object]]:
    """Lists a TOML file's dotted keys with their values; none if there is no file.

    A workspace's own file must be a regular file: a link could lead anywhere, and opening a pipe would wait forever.
    """
    try:
        if vault is not None:
            raw = _read_from(vault)
        else:
            with open(path, "rb", opener=_open_plain if own else None) as handle:
                raw = handle.read(FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(
                "the settings file is a symlink", path=path, hint="replace it by a regular file"
            ) from None
        raise ConfigError(f"cannot be read: {error.strerror}", path=path, hint="check its permissions") from error
    if len(raw) > FILE_LIMIT:
        raise ConfigError(f"is larger than {FILE_LIMIT:,} bytes", path=path, hint="settings need only a few lines")
    # tomllib needs minutes for a key of some ten thousand parts.
    deep = ConfigError("is nested too deeply", path=path, hint="settings are tables of plain values")
    if any(line.count(b".") > DOTS_LIMIT for line in raw.split(b"\n")):
        raise deep
    import tomllib

    try:
        return list(_flatten(tomllib.loads(raw.decode("utf-8"))))
    except RecursionError:
        raise deep from None
    except ValueError as error:
        raise ConfigError(f"is not valid TOML: {error}", path=path, hint="fix the line that is named") from error


def _open_plain(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _irregular()
    return handle


def _irregular() -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file")


def _read_from(vault: Vault) -> bytes:
    """Returns the bytes of a workspace's own file, or more than are allowed. Raises `OSError` as `open` does."""
    from signet_sync.formats.snapshot import Found  # a slow import, needed for workspaces elsewhere only

    status = vault.status(WORKSPACE_FILE)
    if status is None:
        raise FileNotFoundError
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(status.st_mode):
        raise _irregular()
    if status.st_size > FILE_LIMIT:
        return bytes(FILE_LIMIT + 1)
    found = vault.read(WORKSPACE_FILE, FILE_LIMIT)
    if isinstance(found, Found):
        return found.raw
    raise OSError(errno.EIO, found.message.rpartition(": ")[2])


def _flatten(tree: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _checked(f: Field[Any], value: object, source: str) -> object:
    """Returns the value typed by pydantic and within its limits; `ConfigError` names source, key and allowed values."""
    default = f.metadata["default"]
    key = f.metadata["key"]
    typed: Any = _typed(type(default), value)
    if typed is None:
        wanted = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}.get(
            type(default), "a list of texts"
        )
        message = f"{key} = {_display(value)} is not {wanted}"
        raise ConfigError(message, path=source, hint=f"set {key} to {wanted}")
    limits = f.metadata["limits"]
    if limits is not None and not limits[0] <= typed <= limits[1]:
        raise ConfigError(
            f"{key} = {_display(value)} is out of range",
            path=source,
            hint=f"it must be between {limits[0]:g} and {limits[1]:g}",
        )
    if f.name == "agents_projects":
        _check_rules(typed, source)
    choices = f.metadata["choices"]
    if choices and typed not in choices:
        raise ConfigError(
            f"{key} = {_display(value)} is unknown", path=source, hint="one of: " + ", ".join(filter(None, choices))
        )
    return typed


_TRUTH = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)


def _typed(expected: type, value: object) -> object:
    """Converts a value to a setting's type; None if it does not fit.

    A text may represent a number (in the environment everything is text); true for 1 or 2.0 for 2 is a mistake.
    """
    if expected is tuple:
        texts = isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)
        return tuple(value) if texts else None  # type: ignore[arg-type]
    if isinstance(value, str) and expected is bool:
        return _TRUTH.get(value.strip().lower())
    if isinstance(value, str) and expected in (int, float):
        try:
            return expected(value)
        except ValueError:
            return None
    if expected is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return None
    return value if type(value) is expected else None
