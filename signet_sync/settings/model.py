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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from signet_sync.errors import ConfigError
from signet_sync.formats.ids import is_rule
from signet_sync.formats.paths import display
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


# Known OpenAI-compatible servers, each with its address and the usual name of its key. Source: the servers' own
# documentation; `openai-compatible` is any other one.
SERVERS: Mapping[str, tuple[str, str]] = {
    "openai-compatible": ("", ""),
    "ollama": ("http://127.0.0.1:11434/v1", ""),
    "lm-studio": ("http://127.0.0.1:1234/v1", ""),
    "llama-cpp": ("http://127.0.0.1:8080/v1", ""),
    "vllm": ("http://127.0.0.1:8000/v1", ""),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
}
PROVIDERS = ("", "none", *SERVERS, "command")
# Libraries that compute vectors on this machine, from files in a folder; nothing is downloaded.
LOCAL_MODELS = ("fastembed", "model2vec")


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


def _of_provider(*given: Any, **more: Any) -> Any:
    """Declares a setting that runs a program or sends text somewhere: a workspace may never set it."""
    return _setting(*given, workspace=False, **more)


def _half_life(default: float, key: str, what: str) -> Any:
    doc = f"Days after which {what} counts half as much, unless it is pinned."
    return _setting(default, key, doc, (0.0, 36500.0))


def _weight(default: float, key: str, why: str) -> Any:
    return _setting(default, key, f"Weight in a memory's score of {why}", (0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)  # each of 80 fields takes a millisecond to make
class Settings:
    """Every setting with its default; `metadata` holds TOML key, meaning, limits and whether a workspace may set it.

    Times are seconds, sizes bytes, budgets tokens (see `pages.budget`), shares fractions of one.
    """

    debounce: float = _setting(
        0.2,
        "watch.debounce",
        "Quiet time after the last change before a pass starts, in seconds; the first change after a quiet second"
        " waits 0.02.",
        (0.0, 60.0),
    )
    longest_wait: float = _setting(
        2.0,
        "watch.longest_wait",
        "Longest time to collect changes while more keep coming, in seconds.",
        (0.0, 600.0),
    )
    watch_mode: str = _setting(
        "auto",
        "watch.mode",
        "`auto` (the system's events, polling when they are exhausted), `polling` or `off`.",
        choices=("auto", "polling", "off"),
    )
    poll_interval: float = _setting(
        2.0, "watch.poll_interval", "Time between two checks when polling, in seconds.", (0.1, 3600.0)
    )
    sweep_interval: float = _setting(
        3.0,
        "watch.sweep_interval",
        "Least time between two sweeps of file names after changes, in seconds.",
        (0.0, 3600.0),
    )
    interval: float = _setting(
        300.0,
        "reconcile.interval",
        "Time between two full passes of `run`, in seconds; in a large vault longer, so that they take a hundredth of a"
        " processor at most.",
        (1.0, 7 * 86400.0),
    )
    jitter: float = _setting(
        0.1, "reconcile.jitter", "Fraction of the interval by which each one varies at random.", (0.0, 1.0)
    )
    reread_days: float = _setting(
        1.0,
        "reconcile.reread_days",
        "Days after which each file's content is read again, at most 500 files in a full pass; 0 never.",
        (0.0, 3650.0),
    )
    max_file_bytes: int = _setting(
        64 * 1024 * 1024,
        "reconcile.max_file_bytes",
        "A larger file is `too-large` and never read, in bytes.",
        (1024, 4 * 1024**3),
        workspace=False,
    )
    cliff_fraction: float = _setting(
        0.5,
        "reconcile.cliff_fraction",
        "A pass that would remove more than this fraction of the indexed files halts.",
        (0.0, 1.0),
    )
    cliff_minimum: int = _setting(
        20,
        "reconcile.cliff_minimum",
        "A pass that would remove fewer files than this never halts because of `cliff_fraction`.",
        (1, 10**9),
    )
    settle_seconds: float = _setting(
        2.0,
        "reconcile.settle_seconds",
        "A file younger than this is checked again before `run` reports it as invalid, changed or gone, in seconds.",
        (0.0, 600.0),
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
    share_head: float = _setting(
        0.45, "projection.share_head", "Fraction of the budget for the scored sections.", (0.0, 1.0)
    )
    share_ledger: float = _setting(
        0.45, "projection.share_ledger", "Fraction of the budget for the session ledger.", (0.0, 1.0)
    )
    share_index: float = _setting(
        0.10, "projection.share_index", "Fraction of the budget for the temporal index.", (0.0, 1.0)
    )
    window_days: int = _setting(
        30, "projection.window_days", "Days of sessions that the session ledger of MEMORY.md shows.", (1, 3650)
    )
    takeover: bool = _setting(
        False,
        "projection.takeover",
        "Write pages and manifests although a Signet daemon is running on the same workspace.",
    )
    lease_seconds: float = _setting(
        30.0,
        "projection.lease_seconds",
        "Time after which the lease of a page counts as abandoned, in seconds.",
        (1.0, 3600.0),
    )
    noise_projects: tuple[str, ...] = _setting(
        (), "noise.projects", "Additional project prefixes whose sessions are indexed but not shown on pages."
    )
    noise_sessions: tuple[str, ...] = _setting(
        (),
        "noise.sessions",
        "Additional prefixes of ids and keys of sessions without a project that are not shown on pages.",
    )
    score_half_life_thread: float = _half_life(14.0, "score.half_life_thread", "a thread")
    score_half_life_next: float = _half_life(14.0, "score.half_life_next", "a next step")
    score_half_life_blocker: float = _half_life(14.0, "score.half_life_blocker", "a blocker")
    score_half_life_question: float = _half_life(21.0, "score.half_life_question", "an open question")
    score_half_life_note: float = _half_life(45.0, "score.half_life_note", "a technical note")
    score_half_life_decision: float = _half_life(90.0, "score.half_life_decision", "a decision")
    score_half_life_constraint: float = _half_life(180.0, "score.half_life_constraint", "a constraint")
    score_half_life_preference: float = _half_life(365.0, "score.half_life_preference", "a preference")
    score_half_life_person: float = _half_life(180.0, "score.half_life_person", "what is known of a person")
    score_half_life_node: float = _half_life(30.0, "score.half_life_node", "a summary, compaction or condensation")
    recall_half_life_days: float = _setting(
        7.0,
        "recall.half_life_days",
        "Days after which the last hit of a memory counts half as recent; 0 immediately.",
        (0.0, 36500.0),
    )
    recall_window_days: float = _setting(
        0.0,
        "recall.window_days",
        "Days of recall hits that count for scores; 0 all that are kept.",
        (0.0, 36500.0),
    )
    recall_retention_days: float = _setting(
        365.0,
        "recall.retention_days",
        "Days for which recall hits are kept; 0 forever.",
        (0.0, 36500.0),
        workspace=False,
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
    dream_min_recall_count: int = _setting(
        3, "dream.min_recall_count", "Least number of hits of a memory that is promoted.", (1, 10**6)
    )
    dream_min_queries: int = _setting(
        2, "dream.min_queries", "Least number of distinct queries that found a memory that is promoted.", (1, 10**6)
    )
    dream_min_unique_days: int = _setting(
        1, "dream.min_unique_days", "Least number of UTC days on which a memory that is promoted was found.", (1, 36500)
    )
    dream_max_promotions: int = _setting(
        20, "dream.max_promotions", "Most memories that one sweep promotes.", (0, 10_000)
    )
    dream_weight_frequency: float = _weight(0.24, "dream.weight_frequency", "how often it was found.")
    dream_weight_relevance: float = _weight(0.30, "dream.weight_relevance", "how high it was ranked.")
    dream_weight_recency: float = _weight(0.15, "dream.weight_recency", "how recently it was found.")
    dream_weight_diversity: float = _weight(0.15, "dream.weight_diversity", "by how many queries it was found.")
    dream_weight_consolidation: float = _weight(0.10, "dream.weight_consolidation", "on how many days it was found.")
    entity_similarity: float = _setting(
        0.85,
        "entities.similarity",
        "Similarity at which a section of an entity file without its anchor is taken for the missing one (0.5 to 1).",
        (0.5, 1.0),
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
        900.0,
        "capture.idle",
        "A transcript whose end no hook reported is captured when nothing was added for this long, in seconds.",
        (1.0, 7 * 86400.0),
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
    seals_max_bytes: int = _setting(
        0,
        "seals.max_bytes",
        "Most bytes of sealed files; beyond it those of unchanged files are deleted, oldest seals first, never those "
        "of a file that changed or disappeared. 0 no limit.",
        (0, 10**13),
        workspace=False,
    )
    log_level: str = _setting(
        "INFO",
        "log.level",
        "`DEBUG`, `INFO`, `WARNING` or `ERROR`.",
        workspace=False,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    log_rotation_bytes: int = _setting(
        5_000_000,
        "log.rotation_bytes",
        "A log file is rotated at this size, in bytes.",
        (10_000, 10**10),
        workspace=False,
    )
    log_keep: int = _setting(5, "log.keep", "Rotated log files that are kept.", (0, 1000), workspace=False)
    backup_keep: int = _setting(
        3, "backup.keep", "Backups of native rows that are kept in the state folder.", (1, 1000), workspace=False
    )
    llm_daily_tokens: int = _of_provider(
        200_000,
        "llm.daily_tokens",
        "Most tokens that language models may take on a UTC day, prompts and answers, in all workspaces of yours; 0: no"
        " model is asked.",
        (0, 10**12),
    )
    extraction_enabled: bool = _of_provider(
        True,
        "extraction.enabled",
        "`false`: no language model is asked for facts, nor by a `[synthesis]` without its own provider.",
    )
    extraction_provider: str = _of_provider(
        "",
        "extraction.provider",
        "Provider for facts (see below), and for `[synthesis]` if that names none; empty: none, unless Signet's "
        "`agent.yaml` names one (see below).",
        choices=PROVIDERS,
    )
    extraction_model: str = _of_provider("", "extraction.model", "Name of the model on the server.")
    extraction_endpoint: str = _of_provider(
        "",
        "extraction.endpoint",
        "Base URL of the server, such as `http://127.0.0.1:11434/v1`; empty: the provider's own.",
    )
    extraction_timeout: float = _of_provider(
        60.0,
        "extraction.timeout",
        "Longest time that the end of a session, or a request for facts, waits for the model, in seconds.",
        (0.1, 3600.0),
    )
    extraction_command: tuple[str, ...] = _of_provider(
        (), "extraction.command", "Program and arguments for `command`: the prompt on stdin, the answer on stdout."
    )
    extraction_api_key_env: str = _of_provider(
        "", "extraction.api_key_env", "Name of the environment variable with the key."
    )
    extraction_api_key_file: str = _of_provider(
        "", "extraction.api_key_file", "File that contains only the key, readable only by you (mode 0600)."
    )
    synthesis_enabled: bool = _of_provider(
        True, "synthesis.enabled", "`false`: no language model is asked for summaries, sentences and paragraphs."
    )
    synthesis_provider: str = _of_provider(
        "",
        "synthesis.provider",
        "Provider (see below); empty: that of `[extraction]`. With a provider nothing is taken from `[extraction]`.",
        choices=PROVIDERS,
    )
    synthesis_model: str = _of_provider(
        "",
        "synthesis.model",
        "Name of the model on the server; empty: that of `[extraction]`, if the provider is.",
    )
    synthesis_endpoint: str = _of_provider(
        "",
        "synthesis.endpoint",
        "Base URL of the server, such as `http://127.0.0.1:11434/v1`; empty: the provider's own.",
    )
    synthesis_timeout: float = _of_provider(
        0.0,
        "synthesis.timeout",
        "Longest time that the end of a session waits for the model, in seconds; 0 as `[extraction]`.",
        (0.0, 3600.0),
    )
    synthesis_command: tuple[str, ...] = _of_provider(
        (), "synthesis.command", "Program and arguments for `command`: the prompt on stdin, the answer on stdout."
    )
    synthesis_api_key_env: str = _of_provider(
        "", "synthesis.api_key_env", "Name of the environment variable with the key."
    )
    synthesis_api_key_file: str = _of_provider(
        "", "synthesis.api_key_file", "File that contains only the key, readable only by you (mode 0600)."
    )
    embeddings_enabled: bool = _of_provider(
        True, "embeddings.enabled", "`false`: no vector is made or searched; those that exist are kept."
    )
    embeddings_provider: str = _of_provider(
        "",
        "embeddings.provider",
        "What makes the vectors by which `recall` also finds texts of similar meaning (see below); empty or `none`:"
        " nothing does, and existing vectors are deleted.",
        choices=("", "none", *SERVERS, *LOCAL_MODELS),
    )
    embeddings_model: str = _of_provider(
        "", "embeddings.model", "Name of the model, on the server or in fastembed's list; model2vec needs none."
    )
    embeddings_endpoint: str = _of_provider(
        "",
        "embeddings.endpoint",
        "Base URL of the server, such as `http://127.0.0.1:11434/v1`; empty: the provider's own.",
    )
    embeddings_folder: str = _of_provider(
        "", "embeddings.folder", "Folder with the files of the model, for `fastembed` and `model2vec`."
    )
    embeddings_api_key_env: str = _of_provider(
        "", "embeddings.api_key_env", "Name of the environment variable with the key."
    )
    embeddings_api_key_file: str = _of_provider(
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
    default = f.metadata["default"]
    assert f.default is not MISSING or f.default_factory is not MISSING
    return f.metadata["key"], default, f.metadata["doc"], f.metadata["workspace"]


def half_lives(settings: Settings) -> dict[str, float]:
    """Maps each kind to the days after which a memory or fact of it counts half as much (`memories.score`)."""
    return {kind: getattr(settings, f"score_half_life_{kind}") for kind in SCORED}


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
    own = layers.within_budget(own, persons | given)
    if refused := _budget_error(own | persons | given):
        layers.refuse(refused, user_file(environ))
        persons = _without_shares(persons)
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
    layers.within_budget(layers.of_workspace(), {})
    return [remark for remark in layers.remarks if remark.broken]


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
    "extraction_enabled": False,
    "synthesis_enabled": False,
    "embeddings_enabled": False,
    "history_enabled": False,
    "recall_retention_days": 0.0,
    "seals_keep_days": 0.0,
    "seals_max_bytes": 0,
    "backup_keep": 1000,
    "log_keep": 1000,
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
        """Records what is wrong with what the person set, or raises it."""
        if not self._anyway:
            raise error
        self.doubtful = True
        self.remarks.append(SettingsRemark(error.path or place, error.message, error.hint, True))

    def of_workspace(self) -> dict[str, object]:
        """Returns what the workspace's own file sets."""

        def broken(error: ConfigError) -> None:
            self.remarks.append(SettingsRemark(WORKSPACE_FILE, error.message, error.hint, True))

        def unknown(key: str, known: Field[Any] | None) -> None:
            # The file may come from a stranger and hold thousands of names: not each is worth a search.
            meant = _suggestion(key, self._by_key) if known is None and len(self.remarks) < _SEARCHES else ""
            why = f"{UNKNOWN}{meant}" if known is None else "a workspace may not set this"
            self.remarks.append(SettingsRemark(WORKSPACE_FILE, f"{display(key)} ignored: {why}", "", False))

        return self._of_file(os.path.join(self._root, WORKSPACE_FILE), _OF_WORKSPACE, broken, unknown)

    def of_user(self) -> dict[str, object]:
        """Returns what the person's own file sets. Raises `ConfigError` unless with `anyway`."""
        path = user_file(self._environ)

        def broken(error: ConfigError) -> None:
            self.refuse(error, path)

        def unknown(key: str, _known: Field[Any] | None) -> None:
            message = f"{UNKNOWN} {display(key)}{_suggestion(key, self._by_key)}"
            hint = "see docs/settings.md for every setting; remove or rename it"
            self.refuse(ConfigError(message, path=path, hint=hint), path)

        return self._of_file(path, _OF_USER, broken, unknown)

    def _of_file(
        self,
        path: Path,
        layer: str,
        broken: Callable[[ConfigError], None],
        unknown: Callable[[str, Field[Any] | None], None],
    ) -> dict[str, object]:
        own = layer == _OF_WORKSPACE
        source = WORKSPACE_FILE if own else path
        values: dict[str, object] = {}
        try:
            entries = list(_entries(path, own=own, vault=self._vault if own else None))
        except ConfigError as error:
            broken(error)
            return self._last_good(layer)
        for key, value in entries:
            known = self._by_key.get(key)
            if known is None or (own and not known.metadata["workspace"]):
                unknown(key, known)
            elif known in self._fields:
                try:
                    values[known.name] = _checked(known, value, source)
                except ConfigError as error:
                    broken(error)
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
                value: object = _split(raw) if isinstance(spec(f)[1], tuple) else raw
                try:
                    values[f.name] = _checked(f, value, name)
                except ConfigError as error:
                    self.refuse(error, name)
        return values

    def within_budget(self, own: dict[str, object], others: dict[str, object]) -> dict[str, object]:
        """Returns what the workspace sets, without its shares if they exceed the whole of a budget."""
        refused = _budget_error(own | others) if _SHARES & own.keys() else None
        if refused is None:
            return own
        self.remarks.append(SettingsRemark(WORKSPACE_FILE, refused.message, refused.hint, True))
        return _without_shares(own)


_SHARES = frozenset({"share_head", "share_ledger", "share_index"})


def _budget_error(values: Mapping[str, object]) -> ConfigError | None:
    """Returns why these shares cannot be used together, if so."""
    settings = Settings(**{name: value for name, value in values.items() if name in _SHARES})  # type: ignore[arg-type]
    total = settings.share_head + settings.share_ledger + settings.share_index
    if total <= 1.0001:
        return None
    return ConfigError(
        f"projection.share_head + share_ledger + share_index is {total:.2f}",
        hint="the shares of the budget must not exceed 1 in total",
    )


def _without_shares(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name not in _SHARES}


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


# Kinds that have their own half-life (`memories.score`).
SCORED = (
    "thread", "next", "blocker", "question", "note", "decision", "constraint", "preference", "person", "node",
)  # fmt: skip


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


# --- which model writes summaries and sentences ---------------------------------------------------------------------


class ModelChoice(NamedTuple):
    """The resolved model of a block: none (`kind` is "none", see `why`), a server, a program, or files in a folder.

    `timeout` is seconds; at most one of `api_key_env` and `api_key_file` is set.
    """

    kind: Literal["none", "http", "command", "folder"]
    provider: str = "none"
    model: str = ""
    endpoint: str = ""
    timeout: float = 0.0
    command: tuple[str, ...] = ()
    api_key_env: str = ""
    api_key_file: str = ""
    why: str = ""
    folder: str = ""


def may_ask_model(settings: Settings) -> bool:
    """Returns whether a language model may be asked at all: one is named, or could be by Signet's agent.yaml."""
    return bool(settings.synthesis_provider or settings.extraction_provider) or may_ask_signet(settings)


def may_ask_signet(settings: Settings) -> bool:
    """Returns whether Signet's agent.yaml is consulted: no provider is named, but an endpoint or a command for one."""
    named = settings.synthesis_provider or settings.extraction_provider
    return not named and bool(settings.extraction_endpoint or settings.extraction_command)


def resolve(settings: Settings, agent_yaml: Mapping[str, Any] | None) -> ModelChoice:
    """Resolves the synthesis block.

    Explicit settings win; without a provider of its own it is the extraction block, with its own model and timeout
    where they are given. Only if neither names a provider does `agent_yaml` count (Signet's `memory.pipelineV2` as
    texts): it may turn the model off, or name a provider whose endpoint or command the *user* set in `[extraction]`. It
    comes from the workspace, so it can choose neither where text is sent nor what runs.

    Raises `ConfigError` for a block that lacks what its provider needs.
    """
    timeout = settings.synthesis_timeout or settings.extraction_timeout
    if not settings.synthesis_enabled:
        return _no_model("synthesis.enabled is false")
    if settings.synthesis_provider:
        return _as_configured(settings, "synthesis", settings.synthesis_provider, settings.synthesis_model, timeout)
    _check_no_mixture(settings)
    if not settings.extraction_enabled:
        return _no_model("extraction.enabled is false")
    model = settings.synthesis_model or settings.extraction_model
    if settings.extraction_provider:
        return _as_configured(settings, "extraction", settings.extraction_provider, model, timeout)
    if not may_ask_signet(settings):
        return _no_model("no provider is set")
    name, why = _provider_of_signet(agent_yaml or {})
    if name in SERVERS and settings.extraction_endpoint and model:
        return _as_configured(settings, "extraction", name, model, timeout)
    if name == "command" and settings.extraction_command:
        return _as_configured(settings, "extraction", name, model, timeout)
    return _no_model(why or f"agent.yaml names {display(name[:60])}, for which you have no settings")


def resolve_embeddings(settings: Settings) -> ModelChoice:
    """Resolves the embeddings block; only the user's own settings say anything about it.

    Raises `ConfigError` if it lacks what its provider needs.
    """
    provider = settings.embeddings_provider
    if not provider:
        return _no_model("no provider is set")
    if not settings.embeddings_enabled:
        return _no_model("embeddings.enabled is false")
    if provider not in LOCAL_MODELS:
        return _as_configured(settings, "embeddings", provider, settings.embeddings_model, 0.0)
    if provider == "fastembed" and not settings.embeddings_model:
        raise ConfigError("embeddings.provider is fastembed, but embeddings.model is not set", hint=_NAME_OF_MODEL)
    folder = os.path.expanduser(settings.embeddings_folder)
    if not os.path.isabs(folder):
        # A relative one would be searched in the current folder, which may be a checkout.
        raise ConfigError("embeddings.folder is not an absolute path", hint=_FOLDER_OF_MODEL)
    return ModelChoice(kind="folder", provider=provider, model=settings.embeddings_model, folder=folder)


_NAME_OF_MODEL = "name a model of fastembed, such as BAAI/bge-small-en-v1.5"
_FOLDER_OF_MODEL = "download the model's files, for example with `hf download`, and name their folder"


def has_embeddings(settings: Settings) -> bool:
    """Returns whether the user's settings name something that makes vectors, even if it is not in use now."""
    return settings.embeddings_provider not in ("", "none")


def _no_model(why: str) -> ModelChoice:
    return ModelChoice(kind="none", why=why)


def _check_no_mixture(settings: Settings) -> None:
    """Refuses a server, a program or a key of `[synthesis]` that would be mixed with those of another block."""
    for name in ("endpoint", "command", "api_key_env", "api_key_file"):
        if getattr(settings, f"synthesis_{name}"):
            raise ConfigError(
                f"synthesis.{name} is set, but synthesis.provider is not", hint="also set synthesis.provider"
            )


def _as_configured(settings: Settings, block: str, provider: str, model: str, timeout: float) -> ModelChoice:
    """Returns one block of the settings as it is written; raises if it lacks what its provider needs."""
    if provider == "none":
        return _no_model(f"{block}.provider is none")
    if provider == "command":
        command: tuple[str, ...] = getattr(settings, f"{block}_command")
        _check_command(block, command)
        return ModelChoice(kind="command", provider=provider, command=command, timeout=timeout)
    endpoint, usual_key = SERVERS[provider]
    own: str = getattr(settings, f"{block}_endpoint")
    key_env: str = getattr(settings, f"{block}_api_key_env")
    key_file: str = getattr(settings, f"{block}_api_key_file")
    if not own and not key_env and not key_file:
        key_env = usual_key
    if key_env and key_file:
        raise ConfigError(f"{block}.api_key_env and {block}.api_key_file are both set", hint="keep one of them")
    if not model:
        raise ConfigError(
            f"{block}.provider is {provider}, but {block}.model is not set", hint="name a model of the server"
        )
    _check_endpoint(block, own or endpoint)
    _check_key_file(block, key_file)
    return ModelChoice(
        kind="http",
        provider=provider,
        model=model,
        endpoint=(own or endpoint).rstrip("/"),
        timeout=timeout,
        api_key_env=key_env,
        api_key_file=key_file,
    )


def _check_command(block: str, command: tuple[str, ...]) -> None:
    if not command or not command[0]:
        raise ConfigError(
            f"{block}.provider is command, but {block}.command is not set",
            hint='give program and arguments: command = ["llm", "-m", "small"]',
        )
    _check_program(f"{block}.command", command)


def _check_program(key: str, command: tuple[str, ...]) -> None:
    program = os.path.expanduser(command[0])
    if not program:
        raise ConfigError(f"{key} names no program", hint="give program and arguments as a list")
    if "/" in program and not os.path.isabs(program):
        # It would be searched in the current folder, which may be a checkout.
        raise ConfigError(f"{key} names a program by a relative path", hint="give its absolute path, or a name on PATH")
    if any("\0" in part for part in command):
        raise ConfigError(f"{key} contains a NUL character", hint="remove it")


def _check_endpoint(block: str, endpoint: str) -> None:
    """Accepts an http(s) URL with a host and nothing that may hide a secret; the value itself is never shown."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = None, None
    plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
    if parts is None or not host or not plain or parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"{block}.endpoint is not the URL of a server" if endpoint else f"{block}.endpoint is not set",
            hint="give the base URL, such as http://127.0.0.1:11434/v1",
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{block}.endpoint contains more than host and path",
            hint=f"put keys into {block}.api_key_env or {block}.api_key_file",
        )


def _check_key_file(block: str, path: str) -> None:
    if path and not os.path.isabs(os.path.expanduser(path)):
        raise ConfigError(f"{block}.api_key_file is a relative path", hint="give its absolute path")


def _provider_of_signet(pipeline: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the provider that Signet's agent.yaml names, and why there is none."""
    blocks = [part if isinstance(part := pipeline.get(key), Mapping) else {} for key in ("synthesis", "extraction")]
    switches = [pipeline, blocks[0]] if blocks[0] else [pipeline, blocks[1]]
    if any(str(switch.get("enabled")).strip().lower() in _OFF for switch in switches):
        return "", "agent.yaml turns it off"
    for block in (*blocks, {"provider": pipeline.get("extractionProvider")}):
        name = block.get("provider")
        if isinstance(name, str) and name.strip():
            name = name.strip().lower()
            return ("", "agent.yaml says provider: none") if name == "none" else (name, "")
    return "", "no provider is set"


# Every spelling of *no* that some reader of YAML accepts.
_OFF = frozenset({"false", "no", "off", "n", "0"})
