"""Settings: one frozen dataclass, filled from flags, environment, user file, workspace file and defaults.

Order (contracts: *Settings*): flags > `SIGNET_*` > user file > workspace file > defaults. The workspace file may only
set what cannot run a program, send text anywhere or write elsewhere; anything else in it is reported and ignored,
because a workspace may come from a checkout. Finding the workspace and the database needs none of this
(`locate_workspace`), so that `search`, `open` and `status` never pay for pydantic.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from signet_sync.contracts.places import display
from signet_sync.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

WORKSPACE_FILE = "signet-sync.toml"
DEFAULT_WORKSPACE = "~/.agents"
FILE_LIMIT = 64 * 1024
DOTS_LIMIT = 100

Path = str


def _setting(default: Any, key: str, doc: str, *, workspace: bool = True) -> Any:
    metadata = {"key": key, "doc": doc, "workspace": workspace}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata | {"default": default})
    return field(default=default, metadata=metadata | {"default": default})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting with its default; `metadata` holds the TOML key, its meaning and whether a workspace may set it.

    Times are seconds, sizes bytes, budgets tokens (see `projection.budget`), shares fractions of one.
    """

    debounce: float = _setting(
        0.2, "watch.debounce", "Quiet time after the last change before a pass starts, in seconds."
    )
    longest_wait: float = _setting(
        2.0,
        "watch.longest_wait",
        "Longest time that changes may be gathered while they keep coming, in seconds.",
    )
    watch_mode: str = _setting(
        "auto",
        "watch.mode",
        "`auto` (the system's events, polling when they are exhausted), `polling` or `off`.",
    )
    poll_interval: float = _setting(2.0, "watch.poll_interval", "Time between two looks when polling, in seconds.")
    sweep_interval: float = _setting(
        3.0, "watch.sweep_interval", "Least time between two sweeps of names after changes, in seconds."
    )
    interval: float = _setting(300.0, "reconcile.interval", "Time between two full passes of `run`, in seconds.")
    jitter: float = _setting(0.1, "reconcile.jitter", "Part of the interval by which each one is varied at random.")
    reread_days: float = _setting(
        1.0,
        "reconcile.reread_days",
        "Every file's content is read again about once in this many days; 0 never.",
    )
    max_file_bytes: int = _setting(
        64 * 1024 * 1024, "reconcile.max_file_bytes", "A larger file is `too-large` and never read, in bytes."
    )
    cliff_fraction: float = _setting(
        0.5,
        "reconcile.cliff_fraction",
        "A pass that would drop more than this part of the indexed files halts.",
    )
    cliff_minimum: int = _setting(
        20,
        "reconcile.cliff_minimum",
        "A pass that would drop fewer files than this never halts for their part.",
    )
    settle_seconds: float = _setting(
        2.0,
        "reconcile.settle_seconds",
        "A file younger than this is looked at once more before `run` calls it invalid, changed or gone, in seconds.",
    )
    budget_tokens: int = _setting(
        5000, "projection.budget_tokens", "Size of the generated part of MEMORY.md, in tokens."
    )
    share_head: float = _setting(0.40, "projection.share_head", "Part of the budget for the head sections.")
    share_ledger: float = _setting(0.45, "projection.share_ledger", "Part of the budget for the session ledger.")
    share_index: float = _setting(0.15, "projection.share_index", "Part of the budget for the temporal index.")
    window_days: int = _setting(30, "projection.window_days", "Days of sessions that the ledger of MEMORY.md shows.")
    takeover: bool = _setting(
        False,
        "projection.takeover",
        "Write pages and manifests although a live Signet daemon is on the same workspace.",
    )
    lease_seconds: float = _setting(
        30.0,
        "projection.lease_seconds",
        "After this long the lease of a page counts as abandoned, in seconds.",
    )
    noise_projects: tuple[str, ...] = _setting(
        (), "noise.projects", "More project prefixes whose sessions are indexed but not shown on pages."
    )
    noise_sessions: tuple[str, ...] = _setting(
        (),
        "noise.sessions",
        "More prefixes of session ids and keys, without a project, that are not shown on pages.",
    )
    log_level: str = _setting("INFO", "log.level", "`DEBUG`, `INFO`, `WARNING` or `ERROR`.", workspace=False)
    log_rotation_bytes: int = _setting(
        5_000_000, "log.rotation_bytes", "A log file is rotated at this size, in bytes.", workspace=False
    )
    log_keep: int = _setting(5, "log.keep", "Rotated log files that are kept.", workspace=False)
    backup_keep: int = _setting(
        3, "backup.keep", "Backups of native rows that are kept in the state folder.", workspace=False
    )


def spec(f: Field[Any]) -> tuple[str, Any, str, bool]:
    """TOML key, default, meaning, and whether a workspace file may set it."""
    default = f.metadata["default"]
    assert f.default is not MISSING or f.default_factory is not MISSING
    return f.metadata["key"], default, f.metadata["doc"], f.metadata["workspace"]


def environment_name(f: Field[Any]) -> str:
    """`SIGNET_` + the key in upper case: `projection.budget_tokens` is `SIGNET_PROJECTION_BUDGET_TOKENS`."""
    return "SIGNET_" + str(f.metadata["key"]).replace(".", "_").upper()


def locate_workspace(flag: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The workspace root as an absolute path: `--workspace`, else `SIGNET_WORKSPACE`, else `~/.agents`."""
    chosen = flag or environ.get("SIGNET_WORKSPACE") or DEFAULT_WORKSPACE
    return os.path.abspath(os.path.expanduser(chosen))


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Path of the user's own settings file; `SIGNET_CONFIG` moves it."""
    moved = environ.get("SIGNET_CONFIG")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    import platformdirs

    return os.path.join(platformdirs.user_config_dir("signet-sync", appauthor=False), "config.toml")


def load(
    root: Path,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Settings, list[str]]:
    """Settings for a workspace, and one warning per thing in the workspace file that was ignored.

    `flags` are keyed by field name. Raises `ConfigError` with the file, the key and what is allowed.
    """
    values: dict[str, object] = {}
    warnings: list[str] = []
    by_key = {f.metadata["key"]: f for f in fields(Settings)}

    workspace_path = os.path.join(root, WORKSPACE_FILE)
    for key, value in _entries(workspace_path, of_workspace=True):
        known = by_key.get(key)
        if known is None or not known.metadata["workspace"]:
            why = "unknown setting" if known is None else "a workspace may not set this"
            warnings.append(f"{WORKSPACE_FILE}: {display(key)} ignored: {why}")
            continue
        values[known.name] = _checked(known, value, WORKSPACE_FILE)

    user_path = user_file(environ)
    for key, value in _entries(user_path):
        known = by_key.get(key)
        if known is None:
            raise ConfigError(
                f"unknown setting {display(key)}",
                path=user_path,
                hint="see docs/settings.md for every setting; remove or rename it",
            )
        values[known.name] = _checked(known, value, user_path)

    for f in fields(Settings):
        raw = environ.get(environment_name(f))
        if raw is not None:
            value_: object = [p.strip() for p in raw.split(",") if p.strip()] if isinstance(spec(f)[1], tuple) else raw
            values[f.name] = _checked(f, value_, environment_name(f))

    by_name = {f.name: f for f in fields(Settings)}
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _checked(by_name[name], value, "--" + name.replace("_", "-"))

    settings = Settings(**values)  # type: ignore[arg-type]
    total = settings.share_head + settings.share_ledger + settings.share_index
    if total > 1.0001:
        raise ConfigError(
            f"projection.share_head + share_ledger + share_index is {total:.2f}",
            hint="the shares of the budget may add up to 1 at most",
        )
    return settings, warnings


def _entries(path: Path, *, of_workspace: bool = False) -> list[tuple[str, object]]:
    """A TOML file's dotted keys with their values; none where there is no file.

    A workspace's own file must be a plain file: a link could lead anywhere, and opening a pipe would wait for ever.
    """
    try:
        with open(path, "rb", opener=_open_plain if of_workspace else None) as handle:
            raw = handle.read(FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError("the settings file is a symlink", path=path, hint="replace it by a plain file") from None
        raise ConfigError(f"cannot be read: {error.strerror}", path=path, hint="check its permissions") from error
    if len(raw) > FILE_LIMIT:
        raise ConfigError(f"is larger than {FILE_LIMIT:,} bytes", path=path, hint="settings are a few lines")
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
        raise ConfigError(f"is not valid TOML: {error}", path=path, hint="mend the line that is named") from error


def _open_plain(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return handle


def _flatten(tree: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


_LIMITS: dict[str, tuple[float, float]] = {
    "debounce": (0.0, 60.0),
    "longest_wait": (0.0, 600.0),
    "poll_interval": (0.1, 3600.0),
    "sweep_interval": (0.0, 3600.0),
    "interval": (1.0, 7 * 86400.0),
    "jitter": (0.0, 1.0),
    "reread_days": (0.0, 3650.0),
    "max_file_bytes": (1024, 4 * 1024**3),
    "cliff_fraction": (0.0, 1.0),
    "cliff_minimum": (1, 10**9),
    "settle_seconds": (0.0, 600.0),
    "budget_tokens": (500, 1_000_000),
    "share_head": (0.0, 1.0),
    "share_ledger": (0.0, 1.0),
    "share_index": (0.0, 1.0),
    "window_days": (1, 3650),
    "lease_seconds": (1.0, 3600.0),
    "log_rotation_bytes": (10_000, 10**10),
    "log_keep": (0, 1000),
    "backup_keep": (1, 1000),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "watch_mode": ("auto", "polling", "off"),
    "log_level": ("DEBUG", "INFO", "WARNING", "ERROR"),
}


def _checked(f: Field[Any], value: object, source: str) -> object:
    """The value typed by pydantic and held to its limits; `ConfigError` names source, key and what is allowed."""
    from pydantic import TypeAdapter, ValidationError

    default = f.metadata["default"]
    expected: Any = tuple[str, ...] if isinstance(default, tuple) else type(default)
    key = f.metadata["key"]
    # A text may stand for a number (the environment knows nothing else); true for 1 or 2.0 for 2 is a slip.
    lax = isinstance(value, str)
    try:
        typed: Any = TypeAdapter(expected).validate_python(
            tuple(value) if isinstance(value, list) else value, strict=not lax
        )
    except ValidationError:
        wanted = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}.get(
            expected, "a list of texts"
        )
        raise ConfigError(f"{key} = {value!r} is not {wanted}", path=source, hint=f"set {key} to {wanted}") from None
    limits = _LIMITS.get(f.name)
    if limits is not None and not limits[0] <= typed <= limits[1]:
        raise ConfigError(
            f"{key} = {value!r} is out of range",
            path=source,
            hint=f"it may lie between {limits[0]:g} and {limits[1]:g}",
        )
    choices = _CHOICES.get(f.name)
    if choices is not None and typed not in choices:
        raise ConfigError(f"{key} = {value!r} is unknown", path=source, hint="one of: " + ", ".join(choices))
    return typed
