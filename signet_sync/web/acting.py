"""Confirms and does actions: a plan is shown, comes back with a token, is made again under the lock, and done once."""

import hmac
import json
import pkgutil
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from threading import Lock
from typing import NamedTuple

from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.body import utf8
from signet_sync.log import logger
from signet_sync.privacy.remove import refresh
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.web import actions
from signet_sync.web.action import Action, ActionCall, ActionResult, ChangedMeanwhile, planned
from signet_sync.web.request import ViewRequest, WebPage

LIFE = 1800  # seconds in which a form can be sent
PATIENCE = 5.0  # seconds to wait for another process that holds the workspace
WAIT = 8.0  # seconds until a page says that the action still runs
_BUSY = "Another process is working on this workspace, such as the agent or a command. Nothing was done; try again."
_CHANGED = "This has changed since you looked, so nothing was done. It is shown as it is now."
_OLD = "This confirmation was more than half an hour old, so nothing was done. It is shown as it is now."
_FORGED = "this form was not made by this page, or by an earlier signet-sync ui"


def collected() -> dict[str, Action]:
    """Returns every action by name."""
    found: dict[str, Action] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(actions.__path__)):
        found |= {one.name: one for one in import_module(f"{actions.__name__}.{module}").ACTIONS}
    return found


class FormToken(NamedTuple):
    """The hidden fields: a number used once, when the form expires, the fingerprint of what was shown, the seal."""

    once: str
    until: str
    state: str
    seal: str


class FormTokens:
    """The forms of one server; nothing that was issued before it started is accepted."""

    def __init__(self, visitor: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = secrets.token_bytes(32)
        self._visitor = visitor
        self._clock = clock

    def issue(self, target: Mapping[str, str], state: str) -> FormToken:
        """Makes the token for a form; `target` says which action it does to what, for which agent."""
        once, until = secrets.token_urlsafe(18), str(int(self._clock()) + LIFE)
        return FormToken(once, until, state, self._seal(target, once, until, state))

    def read(self, target: Mapping[str, str], given: Mapping[str, str]) -> FormToken | None:
        """Returns the token of a form that was sent; None if it is not one of ours for this target."""
        token = FormToken(*(given.get(name, "") for name in FormToken._fields))
        expected = self._seal(target, token.once, token.until, token.state)
        return token if hmac.compare_digest(token.seal.encode("utf-8", "replace"), expected.encode()) else None

    def is_old(self, token: FormToken) -> bool:
        """Returns whether a form of ours has expired."""
        return self._clock() > int(token.until)

    def _seal(self, target: Mapping[str, str], *fields: str) -> str:
        # ASCII-only JSON keeps apart what differs only in bytes that are not UTF-8.
        text = json.dumps([self._visitor, sorted(target.items()), *fields])
        return hmac.digest(self._key, text.encode(), "sha256").hex()


class _Busy(Exception):
    """Another process holds the workspace; the action has not begun."""


@dataclass(slots=True)
class _Started:
    """An action that was confirmed: what becomes of it, and until when its form is remembered."""

    future: Future[ActionResult]
    kept_until: float


@dataclass(frozen=True, slots=True)
class Redirect:
    """The answer to a form: the page of the result."""

    once: str


@dataclass
class Acting:
    """The actions of one server; they run one after the other."""

    tokens: FormTokens
    should_stop: Callable[[], bool]
    known: dict[str, Action] = field(default_factory=collected)
    _started: dict[str, _Started] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _runner: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "action"))

    def confirm(self, request: ViewRequest) -> WebPage:
        """Shows what an action would do, with a form to confirm it. Raises `UsageError`."""
        request = _utf8(request)
        return self._confirmation(self._action(request), request)

    def perform(self, request: ViewRequest, given: Mapping[str, str]) -> WebPage | Redirect:
        """Does a confirmed action once, or says why nothing was done. Raises `UsageError`."""
        request = _utf8(request)
        action = self._action(request)
        token = self.tokens.read(self._target(action, request), given)
        if token is None:
            # Nothing of such a form is shown again.
            return _nothing_done(_FORGED, "open the confirmation again and use its button", "", 403)
        words = {name: text for name, text in given.items() if name not in token._fields}
        if self.tokens.is_old(token):
            return self._confirmation(action, request, words, _OLD, 403)
        with self._lock:
            started = self._started.get(token.once)
            if started is None:
                started = self._start(token, partial(self._run, action, request, words, token.state))
        return self._answer(action, request, words, token.once, started)

    def result(self, request: ViewRequest) -> WebPage:
        """Shows what became of a confirmed action. Raises `UsageError` if it is not known (any more)."""
        with self._lock:
            started = self._started.get(request.path["once"])
        if started is None:
            raise UsageError(
                "the result of this action is not known any more",
                hint=f"see the log: {request.site.place.command_line('logs ui')}",
                code="unknown-result",
            )
        if not started.future.done():
            return WebPage("result", "Still working", {"result": None})
        result = started.future.result()
        return WebPage("result", result.title, {"result": result})

    # ── showing ──

    def _action(self, request: ViewRequest) -> Action:
        action = self.known.get(request.path["action"])
        if action is None:
            raise UsageError("there is no such action", hint="use the buttons of the views", code="unknown-action")
        return action

    def _target(self, action: Action, request: ViewRequest) -> dict[str, str]:
        return {**action.target(request), " agent": request.agent, " action": action.name}

    def _confirmation(
        self,
        action: Action,
        request: ViewRequest,
        words: Mapping[str, str] | None = None,
        trouble: str = "",
        status: int = 200,
    ) -> WebPage:
        try:
            plan = action.plan(request)
        except UsageError as error:
            if not trouble:
                raise
            # What it was about is gone, or is not such a thing any more.
            return _nothing_done(error.message, error.hint, error.path or "", status)
        data = {
            "plan": plan,
            "action": action.name,
            "target": action.target(request),
            "token": self.tokens.issue(self._target(action, request), plan.fingerprint())._asdict(),
            "words": words or {},
            "trouble": trouble,
        }
        return WebPage("confirm", plan.title, data, status)

    # ── doing ──

    def _start(self, token: FormToken, run: Callable[[], ActionResult]) -> _Started:
        now = time.monotonic()
        # A form that has expired cannot be sent again, so its number need not be remembered.
        self._started = {once: one for once, one in self._started.items() if one.kept_until > now}
        self._started[token.once] = started = _Started(self._runner.submit(run), now + 2 * LIFE)
        return started

    def _answer(
        self, action: Action, request: ViewRequest, words: Mapping[str, str], once: str, started: _Started
    ) -> WebPage | Redirect:
        try:
            started.future.result(WAIT)
        except NotYet:
            pass
        except (_Busy, ChangedMeanwhile) as error:
            with self._lock:
                self._started.pop(once, None)
            busy = isinstance(error, _Busy)
            return self._confirmation(action, request, words, _BUSY if busy else _CHANGED, 503 if busy else 409)
        except UsageError as error:
            told = f"Nothing was done: {error.message}" + (f" ({error.hint})" if error.hint else "") + "."
            return self._confirmation(action, request, words, told, 400)
        return Redirect(once)

    def _run(self, action: Action, request: ViewRequest, words: Mapping[str, str], state: str) -> ActionResult:
        told = " ".join([action.name, *action.target(request).values(), "of", request.agent])
        try:
            result = self._do(action, request, words, state)
        except (_Busy, ChangedMeanwhile) as error:
            logger.info("{}: not done, {}", told, "busy" if isinstance(error, _Busy) else "changed meanwhile")
            raise
        except SignetSyncError as error:
            logger.info("{}: not done, {}", told, error.code)
            raise
        except OSError as error:
            logger.warning("{}: {}", told, reason(error))
            raise
        logger.info("{}: {}", told, "done" if result.well else "done in part")
        return result

    def _do(self, action: Action, request: ViewRequest, words: Mapping[str, str], state: str) -> ActionResult:
        with _held(request) as workspace:
            if action.refresh:
                refresh(workspace, request.now_us, "done")
            plan = planned(action.plan, request, state)
            for one in plan.fields:
                one.check(words.get(one.name, ""))
            return action.do(ActionCall(workspace, request, plan, words, self.should_stop))


def _utf8(request: ViewRequest) -> ViewRequest:
    """Returns the request without bytes that are not UTF-8: the index has no such names."""
    return replace(request, query={name: utf8(text).decode() for name, text in request.query.items()})


def _nothing_done(message: str, hint: str, path: str, status: int) -> WebPage:
    return WebPage("error", "Nothing was done", {"message": message, "hint": hint, "path": path}, status)


@contextmanager
def _held(request: ViewRequest) -> Iterator[Workspace]:
    """Opens the workspace and locks it for the whole action. Raises `_Busy`."""
    with request.site.place.opened() as workspace, ExitStack() as stack:
        try:
            stack.enter_context(state_dir.workspace_held(workspace.state, PATIENCE))
        except WorkspaceError as error:
            if error.code == "busy":
                raise _Busy from error
            raise
        yield workspace
