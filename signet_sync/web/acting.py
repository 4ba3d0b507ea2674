"""Confirms and does actions: a plan is shown, comes back with a token, is made again under the lock, and done once."""

import hmac
import json
import pkgutil
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from threading import Lock
from typing import NamedTuple

from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.body import utf8
from signet_sync.log import logger
from signet_sync.privacy.remove import refresh
from signet_sync.storage import state_dir
from signet_sync.web import actions
from signet_sync.web.action import Action, ActionCall, ChangedMeanwhile, plan_again
from signet_sync.web.request import ViewRequest, WebPage

LIFE = 1800  # seconds in which a form can be sent
PATIENCE = 5.0  # seconds to wait for another process that holds the workspace
_BUSY = "Another process is working on this workspace, such as the agent or a command. Nothing was done; try again."
_CHANGED = "This has changed since you looked, so nothing was done. It is shown as it is now."
_OLD = "This confirmation was more than half an hour old, so nothing was done. It is shown as it is now."
_FORGED = "this form was not made by this page, or by an earlier signet-sync ui"


def collect_actions() -> dict[str, Action]:
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


@dataclass
class Acting:
    """The actions of one server; they run one after the other, and each form does its action once."""

    tokens: FormTokens
    should_stop: Callable[[], bool]
    known: dict[str, Action] = field(default_factory=collect_actions)
    _done: dict[str, tuple[FormToken, WebPage]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def confirm(self, request: ViewRequest) -> WebPage:
        """Shows what an action would do, with a form to confirm it. Raises `UsageError`."""
        request, action, target = self._asked(request)
        return self._confirmation(action, request, target)

    def perform(self, request: ViewRequest, given: Mapping[str, str]) -> WebPage:
        """Does a confirmed action, or says why nothing was done; sent again, a form shows what it did.

        Raises `UsageError`.
        """
        request, action, target = self._asked(request)
        token = self.tokens.read(target, given)
        if token is None:
            # Nothing of such a form is shown again.
            return _nothing_done(_FORGED, "open the confirmation again and use its button", "", 403)
        words = {name: text for name, text in given.items() if name not in token._fields}
        with self._lock:
            if token.once in self._done:
                return self._done[token.once][1]
            if self.tokens.is_old(token):
                return self._confirmation(action, request, target, words, _OLD, 403)
            page = self._attempt(action, request, target, words, token.state)
            if page.template == "result":
                # A form that has expired does nothing when it is sent again, so its number need not be remembered.
                self._done = {once: one for once, one in self._done.items() if not self.tokens.is_old(one[0])}
                self._done[token.once] = token, page
            return page

    def _attempt(
        self, action: Action, request: ViewRequest, target: Mapping[str, str], words: Mapping[str, str], state: str
    ) -> WebPage:
        told = " ".join([action.name, *action.target(request).values(), "of", request.agent])
        with request.site.place.opened() as workspace, ExitStack() as stack:
            try:
                stack.enter_context(state_dir.workspace_held(workspace.state, PATIENCE))
            except WorkspaceError as error:
                if error.code != "busy":
                    raise
                logger.info("{}: not done, busy", told)
                return self._confirmation(action, request, target, words, _BUSY, 503)
            try:
                if action.refresh:
                    refresh(workspace, request.now_us, "done")
                plan = plan_again(action.plan, request, state)
                for one in plan.fields:
                    one.check(words.get(one.name, ""))
                result = action.do(ActionCall(workspace, request, plan, words, self.should_stop))
            except ChangedMeanwhile:
                logger.info("{}: not done, changed meanwhile", told)
                return self._confirmation(action, request, target, words, _CHANGED, 409)
            except SignetSyncError as error:
                logger.info("{}: not done, {}", told, error.code)
                if not isinstance(error, UsageError):
                    raise
                said = f"Nothing was done: {error.message}" + (f" ({error.hint})" if error.hint else "") + "."
                return self._confirmation(action, request, target, words, said, 400)
            except OSError as error:
                logger.warning("{}: {}", told, reason(error))
                raise
        logger.info("{}: {}", told, "done" if result.well else "done in part")
        return WebPage("result", result.title, {"result": result})

    def _asked(self, request: ViewRequest) -> tuple[ViewRequest, Action, dict[str, str]]:
        """Returns the request without bytes that are not UTF-8 (the index has no such names), its action, to what."""
        request = replace(request, query={name: utf8(text).decode() for name, text in request.query.items()})
        action = self.known.get(request.path["action"])
        if action is None:
            raise UsageError("there is no such action", hint="use the buttons of the views", code="unknown-action")
        return request, action, {**action.target(request), " agent": request.agent, " action": action.name}

    def _confirmation(
        self,
        action: Action,
        request: ViewRequest,
        target: Mapping[str, str],
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
            "token": self.tokens.issue(target, plan.fingerprint())._asdict(),
            "words": words or {},
            "trouble": trouble,
        }
        return WebPage("confirm", plan.title, data, status)


def _nothing_done(message: str, hint: str, path: str, status: int) -> WebPage:
    return WebPage("error", "Nothing was done", {"message": message, "hint": hint, "path": path}, status)
