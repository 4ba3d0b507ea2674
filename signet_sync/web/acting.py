"""What the page can do: an action is planned and shown, comes back with a token, is planned again under the lock, and
done once.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal, NamedTuple

from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError
from signet_sync.formats.body import utf8
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest, WebPage

PATIENCE = 5.0  # seconds to wait for another process that holds the workspace
_BUSY = "Another process is working on this workspace, such as the agent or a command. Nothing was done; try again."
_CHANGED = "This has changed since you looked, so nothing was done. It is shown as it is now."
_FORGED = "this form was not made by this page, or by an earlier signet-sync ui"


# ── an action ──


class ViewLink(NamedTuple):
    """A link to a view: its label, the view's name, the parameters of its address."""

    label: str
    view: str
    given: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action did, in sentences, without any stored text; `well`: nothing is left to be done or looked at."""

    title: str
    sentences: Sequence[str] = ()
    links: Sequence[ViewLink] = ()
    command: str = ""
    well: bool = True


# Carries out a confirmed action, in the workspace that is locked for it, with the person's reason. The function raises
# `ChangedMeanwhile`, for what is asked just before files change.
CheckAgain = Callable[[int], None]
Doing = Callable[[Workspace, str, CheckAgain], ActionResult]


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """What an action would do now: sentences, and the state it was computed from, as values of JSON.

    `do` does just that, with the operation that `command` calls at a terminal. `prose` is a text that it is about,
    `difference` the lines of a change of one, under its heading; `reason`: a person is asked for one.
    """

    title: str
    button: str
    sentences: Sequence[str]
    back: ViewLink
    state: Any
    command: str
    do: Doing
    reason: Literal["", "optional", "required"] = ""
    prose: Prose | None = None
    difference: tuple[str, Sequence[str]] | None = None

    def fingerprint(self) -> str:
        """Returns the digest of the state."""
        return hashlib.sha256(json.dumps(self.state, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Action:
    """Something the page can do; `names` are the parameters of its address that say to what.

    `plan` reads only, and raises `UsageError` if there is no such thing.
    """

    plan: Callable[[ViewRequest], ActionPlan]
    names: tuple[str, ...] = ()

    def target(self, request: ViewRequest) -> dict[str, str]:
        """Returns the parameters that the request gives."""
        return {name: request.query[name] for name in self.names if request.query.get(name)}


class ChangedMeanwhile(Exception):
    """The plan differs from the one that was confirmed; the action has not begun."""


# ── tokens of forms ──


class FormToken(NamedTuple):
    """The hidden fields: a number used once, the fingerprint of what was shown, the seal."""

    once: str
    state: str
    seal: str


class FormTokens:
    """The forms of one server; nothing that was issued before it started is accepted."""

    def __init__(self, visitor: str) -> None:
        self._key = secrets.token_bytes(32)
        self._visitor = visitor

    def issue(self, target: Mapping[str, str], state: str) -> FormToken:
        """Makes the token for a form; `target` says which action it does to what, for which agent."""
        once = secrets.token_urlsafe(18)
        return FormToken(once, state, self._seal(target, once, state))

    def read(self, target: Mapping[str, str], given: Mapping[str, str]) -> FormToken | None:
        """Returns the token of a form that was sent; None if it is not one of ours for this target."""
        token = FormToken(*(given.get(name, "") for name in FormToken._fields))
        expected = self._seal(target, token.once, token.state)
        return token if hmac.compare_digest(token.seal.encode("utf-8", "replace"), expected.encode()) else None

    def _seal(self, target: Mapping[str, str], *fields: str) -> str:
        # ASCII-only JSON keeps apart what differs only in bytes that are not UTF-8.
        text = json.dumps([self._visitor, sorted(target.items()), *fields])
        return hmac.digest(self._key, text.encode(), "sha256").hex()


# ── confirming and doing ──


@dataclass
class Acting:
    """The actions of one server by name; they run one after the other, and each form does its action once."""

    known: Mapping[str, Action]
    tokens: FormTokens
    _done: dict[str, WebPage] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def confirm(self, request: ViewRequest) -> WebPage:
        """Shows what an action would do, with a form to confirm it. Raises `UsageError`."""
        request, name, target = self._read_target(request)
        return self._confirmation(name, request, target)

    def perform(self, request: ViewRequest, given: Mapping[str, str]) -> WebPage:
        """Does a confirmed action, or says why nothing was done; sent again, a form shows what it did.

        Raises `UsageError`.
        """
        request, name, target = self._read_target(request)
        token = self.tokens.read(target, given)
        if token is None:
            # Nothing of such a form is shown again.
            return _make_refusal_page(_FORGED, "open the confirmation again and use its button", "", 403)
        words = given.get("reason", "")
        with self._lock:
            if token.once in self._done:
                return self._done[token.once]
            page = self._attempt(name, request, target, words, token.state)
            if page.template == "result":
                self._done[token.once] = page
            return page

    def _attempt(self, name: str, request: ViewRequest, target: Mapping[str, str], words: str, state: str) -> WebPage:
        action = self.known[name]

        def plan_again() -> ActionPlan:
            try:
                plan = action.plan(request)
            except UsageError as error:
                raise ChangedMeanwhile from error
            if plan.fingerprint() != state:
                raise ChangedMeanwhile
            return plan

        def check_again(_: int) -> None:
            plan_again()

        with request.site.place.open_workspace() as workspace, ExitStack() as stack:
            try:
                stack.enter_context(state_dir.hold_workspace(workspace.state, PATIENCE))
            except WorkspaceError as error:
                if error.code != "busy":
                    raise
                return self._confirmation(name, request, target, words, _BUSY, 503)
            try:
                plan = plan_again()
                if plan.reason == "required" and not sanitize_line(words):
                    raise UsageError("the reason is empty")
                result = plan.do(workspace, words, check_again)
                result = replace(result, sentences=[*result.sentences, *map("{}.".format, workspace.events)])
            except ChangedMeanwhile:
                return self._confirmation(name, request, target, words, _CHANGED, 409)
            except SignetSyncError as error:
                if not isinstance(error, UsageError):
                    raise
                said = f"Nothing was done: {error.message}" + (f" ({error.hint})" if error.hint else "") + "."
                return self._confirmation(name, request, target, words, said, 400)
        return WebPage("result", result.title, {"result": result})

    def _read_target(self, request: ViewRequest) -> tuple[ViewRequest, str, dict[str, str]]:
        """Returns the request without bytes that are not UTF-8 (the index has no such names), its action, to what."""
        request = replace(request, query={name: utf8(text).decode() for name, text in request.query.items()})
        name = request.path["action"]
        if name not in self.known:
            raise no_such_action()
        return request, name, {**self.known[name].target(request), " agent": request.agent, " action": name}

    def _confirmation(
        self,
        name: str,
        request: ViewRequest,
        target: Mapping[str, str],
        words: str = "",
        trouble: str = "",
        status: int = 200,
    ) -> WebPage:
        try:
            plan = self.known[name].plan(request)
        except UsageError as error:
            if not trouble:
                raise
            # What it was about is gone, or is not such a thing any more.
            return _make_refusal_page(error.message, error.hint, error.path or "", status)
        data = {
            "plan": plan,
            "action": name,
            "target": self.known[name].target(request),
            "token": self.tokens.issue(target, plan.fingerprint())._asdict(),
            "words": words,
            "trouble": trouble,
        }
        return WebPage("confirm", plan.title, data, status)


def no_such_action() -> UsageError:
    """Returns the error for an address that no button has."""
    return UsageError("there is no such action", hint="use the buttons of the views", code="unknown-action")


def _make_refusal_page(message: str, hint: str, path: str, status: int) -> WebPage:
    return WebPage("error", "Nothing was done", {"message": message, "hint": hint, "path": path}, status)
