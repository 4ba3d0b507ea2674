"""Handles a harness's hook quickly: an event on stdin, a job in the spool, context on stdout.

The user waits for it: only the standard library is imported at the top, and what few events need is imported on use. No
error may fail the session: the exit code is 0 and the reason is in `logs/hook.log` of the state folder (never a word of
the payload), unless `--strict` asks for exit code 2 and a line on stderr.

A session start and a prompt print the context that the caller composes, between the markers that the parsers remove
again, and nothing of sessions if others read this one (`formats.ids`), in the form that the harness accepts
(`host.harness_settings.facts`).
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache

from signet_sync.capture import spool
from signet_sync.capture.harnesses import registry
from signet_sync.errors import SignetSyncError
from signet_sync.formats.ids import (
    GUARDS,
    TRIAL,
    agent_for,
    asks_model,
    is_excluded,
    is_in_model_folder,
    is_session_id,
    is_shared,
)
from signet_sync.formats.paths import display
from signet_sync.host.harness_settings.facts import part_of_file
from signet_sync.host.repository import Repository, resolve, views
from signet_sync.storage import locations
from signet_sync.storage.durable import private_folder
from signet_sync.text.stored_names import session_name, session_value, storable_path

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from typing import Any

    from signet_sync.capture.injections import HookSession, Injection, Moment

# The harnesses' events and ours; all others are ignored. Our hook in OpenClaw uses Claude Code's names.
EVENTS = {
    "SessionStart": "session-start",
    "session.created": "session-start",
    # The session is active: if its end is never reported, the sweep knows where to look.
    "UserPromptSubmit": "stop",
    "BeforeAgent": "stop",
    "Stop": "stop",
    "AfterAgent": "stop",
    "session.idle": "stop",
    "PostCompact": "compact",
    "session.compacted": "compact",
    "SessionEnd": "end",
    "dispose": "end",
}
PROMPTS = ("UserPromptSubmit", "BeforeAgent")
SOURCES = ("startup", "resume", "clear", "compact")
# A tool is about to run, ran, or failed. Where a text before it does not reach the model, or where a hook that fails
# before it would keep it from running, the harness asks once it ran: nothing is lost, for the model sees both at once.
MOMENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "AfterTool")

BUDGET = 2_000  # tokens of the context at a session's start: the default of `context.budget_tokens`
_VARIABLES = (
    *("SIGNET_AGENTS_PROJECTS", "SIGNET_CAPTURE_EXCLUDE"),
    *("SIGNET_CONTEXT_BUDGET_TOKENS", "SIGNET_CONTEXT_PROMPTS", "SIGNET_CONTEXT_MOMENTS", "SIGNET_CONTEXT_NOTES"),
)
_SETTINGS = (b"projects", b"exclude", b"context")  # words in a file that sets one of these

PAYLOAD_LIMIT = 16 * 1024 * 1024  # bytes
LONGEST_COMMAND = 4_000  # characters of a command, and of an error
LOG_LIMIT = 256 * 1024  # bytes; one earlier file is kept
# Lines with which an agent hands its work over are asked for only where a person sees them: a program that runs a
# harness (headless, an SDK, CI) reads its answer, another agent that of a sub-agent, and a line more could break them.
LABELS = "Outcome:, Decided:, Next:, Blocked:, Tried:"
REQUEST = (
    f"If a turn edited, decided or stopped, end its report with one to three lines for the next session: {LABELS}"
    " (and the ^handle it ends)"
)
# A folder's path without any of these holds no secret; any other is sanitized, which costs an import.
_MAY_BE_SECRET = re.compile(r"[^\w./ -]|(?:^|/)(?=[^/]*\d)[^/]{16}|(?:key|token|secret|pass|pwd|auth)", re.IGNORECASE)


# Exit code, what is printed on stdout and on stderr, and what records that a session got it.
HookAnswer = tuple[int, str, str, Callable[[], object]]
# What a session gets on the words of a prompt ("" if they are not searched for), at the moment of a tool's call, at its
# start on None (from its source and a budget of tokens).
InjectedContext = Callable[["HookSession", "str | Moment | None", "str | None", int], "Injection"]


class _RefusedEvent(Exception):
    """Why an event is refused, without words of the payload."""


def answer(
    arguments: list[str],
    payload: bytes | bytearray,
    context: InjectedContext,
    environ: Mapping[str, str] = os.environ,
    place: tuple[str, locations.StateFolder] | None = None,
) -> HookAnswer:
    """Handles `[--workspace PATH] hook HARNESS [--strict]`; the exit code is 0, or 2 if refused with `--strict`.

    The agent names its `place`, workspace and state folder; then what the session gets is recorded by the caller.
    """
    event, trouble = None, ""
    try:
        harness, workspace, _ = _parse_arguments(arguments)
        if place is None and any(environ.get(name, "0") not in ("", "0") for name in GUARDS):
            return _finish_hook(arguments, None, "")
        root = locations.locate_workspace(workspace) if place is None else place[0]
        folder = locations.locate(root) if place is None else place[1]
        event = _HookEvent(harness, root, folder, context, environ, later=place is not None)
        event.handle(payload)
    except (_RefusedEvent, SignetSyncError) as error:
        trouble = display(str(error))
    except OSError as error:
        trouble = f"failed: {error.strerror or type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - no error may fail a session
        trouble = f"unexpected {type(error).__name__}"
    return _finish_hook(arguments, event, trouble)


def _parse_arguments(arguments: list[str]) -> tuple[str, str | None, bool]:
    """Returns the harness, the workspace and `--strict`; other options are ignored, with their values."""
    words: list[str] = []
    workspace = None
    rest = iter(arguments)
    for word in rest:
        name, separator, value = word.partition("=")
        if name in ("--workspace", "--db", "--agent", "--now"):
            value = value if separator else next(rest, "")
            workspace = value if name == "--workspace" else workspace
        elif not word.startswith("-"):
            words.append(word)
    return words[1] if len(words) > 1 else "", workspace, "--strict" in arguments


def _finish_hook(arguments: list[str], event: _HookEvent | None, trouble: str) -> HookAnswer:
    harness, _, strict = _parse_arguments(arguments)
    facts = None
    with suppress(SignetSyncError):
        facts = registry.facts(harness)
    printed = event.printed if event is not None else []
    if not printed and facts is not None and facts.silence:
        printed = [facts.silence]
    if trouble and event is not None:
        from signet_sync.text.sanitizer import redact  # errors quote settings and paths

        trouble = redact(trouble)[0]
        _log(event.folder, f"{harness if facts is not None else 'hook'}: {trouble}")
    said = f"signet-sync hook: {trouble}\n" if trouble and strict else ""
    record: Callable[[], object] = event.record if event is not None and not trouble else str
    return 2 if said else 0, "".join(f"{text}\n" for text in printed), said, record


class _HookEvent:
    """One event of one harness: what it prints, and the job that it leaves."""

    def __init__(
        self,
        harness: str,
        root: str,
        folder: locations.StateFolder,
        context: InjectedContext,
        environ: Mapping[str, str],
        later: bool,
    ) -> None:
        self.harness = harness
        self.root = root
        self.folder = folder
        self.context = context
        self.environ = environ
        self.later = later
        self.printed: list[str] = []
        self.record: Callable[[], object] = str

    def handle(self, data: bytes | bytearray) -> None:
        """Handles the event, and keeps what is to be printed. Raises `_RefusedEvent`, `SignetSyncError`, `OSError`."""
        self.facts = registry.facts(self.harness)
        self.payload = self.facts.payload(_parse_payload(data), self.environ)
        name, cwd, session_id = (self.payload.get(one) for one in ("hook_event_name", "cwd", "session_id"))
        if not isinstance(name, str):
            raise _RefusedEvent("hook_event_name is missing")
        event = EVENTS.get(name)
        if self.payload.get("agent_id"):  # inside a sub-agent, which is no session of its own
            return
        at_moment = name in MOMENTS and self.later  # only the agent is asked
        if event is None and not at_moment:
            return
        self.project = project = cwd if isinstance(cwd, str) and cwd.startswith("/") else None
        if is_in_model_folder(project) or asks_model(self.payload.get("prompt")):
            return
        settings = _read_settings(self.root, self.folder)
        rules = settings.get("agents_projects", ())
        places = views(project, resolve(project)) if project is not None and rules else []
        self.agent = agent_for(places, self.environ, rules)
        self.session = session_name(session_id) if isinstance(session_id, str) and session_id != TRIAL else None
        excluded = is_excluded(project, settings.get("capture_exclude", ()), self.environ)
        try:
            if event == "session-start" or name in PROMPTS or (at_moment and not excluded):
                self._print_context(name, settings, asks=not excluded and settings.get("context_notes", True))
        finally:
            if not excluded and event is not None and session_id != TRIAL:
                job = self._make_job(event)
                if job is not None:
                    self._hand_over(job)

    # ── what is printed ──

    def _print_context(self, name: str, settings: Mapping[str, Any], *, asks: bool) -> None:
        from signet_sync.capture.injections import HookSession  # most events need none

        if not os.path.isdir(self.root):
            return
        words: str | Moment | None = None
        if name in MOMENTS:
            words = self._read_moment() if settings.get("context_moments", True) else None
            if words is None:
                return
        elif name in PROMPTS:
            words = ""
            if settings.get("context_prompts", True):
                from signet_sync.capture.harnesses.texts import drop_injected, text_of  # most events are no prompts
                from signet_sync.text.prompt import find_search_words

                words = find_search_words(drop_injected(text_of(self.payload.get("prompt"))))
            if not words and self.facts.reports_compaction:
                return
        source = next((one for one in SOURCES if one == self.payload.get("source")), None)
        budget = settings.get("context_budget_tokens", BUDGET)
        shared = is_shared(self.payload, carries_chats=self.facts.carries_chats)

        @cache  # reads a file, and only a start needs it
        def hands_over() -> bool:
            return asks and self._is_attended()

        database = os.path.expanduser(self.environ.get("SIGNET_DB") or self.folder.database)
        names = self.agent, self.harness, self.session or "", self.project, shared, hands_over
        found = self.context(HookSession(self.root, self.folder, database, *names), words, source, budget)
        self.record = found.record if self.later else self.record
        if text := found.text if self.later else found.record():
            self.printed.append(self.facts.format_output(name, text))

    def _read_moment(self) -> Moment | None:
        """Returns the files or the command that a tool is called with, and its error; None for any other tool."""
        from signet_sync.capture.harnesses.texts import call_line, mapping_of  # only the agent comes here
        from signet_sync.capture.injections import Moment

        fields, error = mapping_of(self.payload.get("tool_input")), self.payload.get("error")
        path, command = fields.get("file_path", fields.get("path")), fields.get("command")
        if error is None:
            said = mapping_of(self.payload.get(self.facts.result[0])).get(self.facts.result[1])
            error = said if isinstance(said, str) and re.search(self.facts.failed, said) else ""
        if isinstance(command, str) and "*** Begin Patch" in command:
            path, command = call_line(command), None
        if isinstance(command, str) and isinstance(error, str):
            return Moment("", command[:LONGEST_COMMAND], error[:LONGEST_COMMAND])
        return Moment(path, "", "") if isinstance(path, str) and not error else None

    def _is_attended(self) -> bool:
        """Returns whether a person sits before a session that no one else reads; False if in doubt."""
        return (
            os.path.isdir(self.root)
            and not is_shared(self.payload, carries_chats=self.facts.carries_chats)
            and self.environ.get("CI", "").lower() in ("", "0", "false")
            and self.facts.is_attended(self.payload, self.environ)
        )

    # ── the job ──

    def _make_job(self, event: str) -> spool.Job | None:
        """Returns the job of an event, None if there is nothing to keep."""
        if not is_session_id(self.session):
            raise _RefusedEvent("session_id is missing or blank")
        path, project = self.payload.get("transcript_path"), self.project
        if path is None and self.facts.pathless == "not to be kept":
            return None
        if path is None and self.facts.pathless == "an error":
            raise _RefusedEvent("transcript_path is missing")
        if path is not None:
            present = _find_transcript(path, may_be_absent=event != "compact")
            if present is None and event == "end":
                return None  # nothing was said (`claude mcp list`), or it was deleted: its marker keeps what was read
            # At a session's first prompt its file does not exist yet.
            path = str(path) if event == "stop" else present
        if not os.path.isdir(self.root) and not os.path.isdir(self.folder.path):
            raise _RefusedEvent("there is no workspace; create it with: signet-sync setup")
        repository = resolve(project) if project is not None else None  # now, because it may be gone at the capture
        if repository is not None and any(map(_MAY_BE_SECRET.search, filter(None, repository))):
            repository = Repository._make(part and session_value(part) for part in repository)
        return spool.Job(
            event=event,
            harness=self.harness,
            session_id=str(self.session),
            agent_id=self.agent,
            transcript_path=path if isinstance(path, str) else None,
            cwd=storable_path(project) if project is not None and _MAY_BE_SECRET.search(project) else project,
            at=_now(),
            repository=repository,
        )

    def _hand_over(self, job: spool.Job) -> None:
        spool.put(self.folder.spool, job)
        # A stop is only a marker for the next sweep. Without a workspace no worker could do anything yet.
        if job.event != "stop" and os.path.isdir(self.root) and not _is_agent_listening(self.folder):
            _start_worker(self.root, self.folder)


# ── input ──


def _parse_payload(data: bytes | bytearray) -> dict[str, object]:
    if not data:
        raise _RefusedEvent("stdin is empty")
    if len(data) > PAYLOAD_LIMIT:
        raise _RefusedEvent(f"more than {PAYLOAD_LIMIT >> 20} MiB on stdin")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _RefusedEvent("stdin is not JSON") from None
    if not isinstance(value, dict):
        raise _RefusedEvent("stdin is not a JSON object")
    return value


def _find_transcript(path: object, *, may_be_absent: bool) -> str | None:
    """Returns a transcript's path if it may be read later: absolute, of a regular file that the user owns."""
    import stat

    if not isinstance(path, str) or not path.startswith("/"):
        raise _RefusedEvent("transcript_path is not an absolute path")
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        if may_be_absent:
            return None
        raise _RefusedEvent("there is no file at transcript_path") from None
    except (OSError, ValueError):
        raise _RefusedEvent("transcript_path cannot be examined") from None
    if not stat.S_ISREG(status.st_mode):
        raise _RefusedEvent("transcript_path is not a regular file")
    if status.st_uid != os.geteuid():
        raise _RefusedEvent("the file at transcript_path belongs to another user")
    return path


def _read_settings(root: str, folder: locations.StateFolder) -> dict[str, Any]:
    """Returns the settings of hooks that are set, by field name; files are parsed only if one mentions them.

    A copy of the settings that were last readable counts, too. Broken settings never fail a session; the problem is
    logged.
    """
    places = (locations.user_file(), os.path.join(root, "signet-sync.toml"), folder.settings)
    given = any(name in os.environ for name in _VARIABLES)
    if not given and not any(word in part_of_file(place, 1 << 17) for place in places for word in _SETTINGS):
        return {}
    from signet_sync.settings import model  # for those who have such a setting

    settings, remarks = model.hook_settings(root)
    for remark in remarks:
        _log(folder, display(str(remark)))
    return settings


def _now() -> str:
    nanoseconds = time.time_ns()
    moment = time.gmtime(nanoseconds // 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + f".{nanoseconds // 1_000_000 % 1000:03d}Z"


# ── worker ──


def _is_agent_listening(folder: locations.StateFolder) -> bool:
    """Checks whether a live `run` will take the job; if in doubt False, since an additional worker does no harm."""
    beat = locations.read_heartbeat(folder)
    if beat is None or beat.get("boot") != locations.boot_id() or type(beat.get("pid")) is not int:
        return False
    silence = locations.silence(folder)
    return silence is not None and silence < locations.SILENCE and locations.process_alive(beat["pid"])


def _start_worker(root: str, folder: locations.StateFolder) -> None:
    """Starts capture as a detached process, unless one is there: one takes what all hooks have put.

    It outlives hook, terminal and harness, and holds none of their files.
    """
    from signet_sync.host import command  # nearly always there is an agent
    from signet_sync.storage import state_dir  # as above

    lock = state_dir.intake_lock_to_give(folder)
    if lock is None:
        return
    try:
        command.start("--workspace", root, "session", "take-spool", stdin=lock)
    finally:
        os.close(lock)


# ── the log ──


def _log(folder: locations.StateFolder, text: str) -> None:
    """Appends a line to a log of at most twice its limit; does nothing if the state folder is not writable."""
    path = os.path.join(folder.logs, "hook.log")
    try:
        private_folder(folder.logs)
        if os.path.exists(path) and os.path.getsize(path) > LOG_LIMIT:
            os.replace(path, f"{path}.1")
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, f"{_now()} {text}\n".encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except OSError:
        pass
