"""Defines what the page can do as plain values: an action, its plan for one request, the form's fields, the result."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.history.operations import filter_line
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest


class ViewLink(NamedTuple):
    """A link to a view: its label, the view's name, the parameters of its address."""

    label: str
    view: str
    given: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class FormField:
    """What a person types or chooses; `options` are values with labels, without them it is a line, or an `area`.

    `value` is what it holds at first; a field with the only option `yes` is a box to tick.
    """

    name: str
    label: str
    required: bool = False
    hint: str = ""
    options: tuple[tuple[str, str], ...] = ()
    value: str = ""
    area: bool = False

    def check(self, given: str) -> None:
        """Raises `UsageError` if nothing is given where something is required, or what is no option."""
        if self.required and not sanitize_line(given):
            raise UsageError(f"“{self.label}” is empty")
        if given and self.options and given not in dict(self.options):
            raise UsageError(f"“{self.label}” is none of what can be chosen")


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """What an action would do now: sentences, and the state it was computed from, as values of JSON.

    `lists` are files that it is about, each under its heading, `prose` a text, `difference` the lines of a change of
    one, under its heading; `final`: it cannot be undone. `command` does the same at a terminal; `computed` is what `do`
    needs of the plan.
    """

    title: str
    button: str
    sentences: Sequence[str]
    back: ViewLink
    state: Any
    command: str
    fields: Sequence[FormField] = ()
    lists: Sequence[tuple[str, Sequence[str]]] = ()
    prose: Prose | None = None
    difference: tuple[str, Sequence[str]] | None = None
    final: bool = False
    computed: Any = None

    def fingerprint(self) -> str:
        """Returns the digest of the state."""
        return hashlib.sha256(json.dumps(self.state, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action did, in sentences, without any stored text; `well`: nothing is left to be done or looked at."""

    title: str
    sentences: Sequence[str] = ()
    links: Sequence[ViewLink] = ()
    command: str = ""
    well: bool = True


class ChangedMeanwhile(Exception):
    """The plan differs from the one that was confirmed; the action has not begun."""


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A confirmed action: the workspace, which is locked for it, the request, its plan as of now, the person's words.

    `should_stop` tells a long action that the server is ending.
    """

    workspace: Workspace
    request: ViewRequest
    plan: ActionPlan
    words: Mapping[str, str]
    should_stop: Callable[[], bool]

    def agree(self, plan: Callable[[ViewRequest], ActionPlan]) -> Callable[[int], None]:
        """Returns what an operation asks just before it changes files: it raises as `plan_again` does."""

        def ask(count: int) -> None:
            plan_again(plan, self.request, self.plan.fingerprint())

        return ask


def plan_again(plan: Callable[[ViewRequest], ActionPlan], request: ViewRequest, state: str) -> ActionPlan:
    """Makes the plan again. Raises `ChangedMeanwhile` if it differs from the confirmed one, or cannot be made."""
    try:
        found = plan(request)
    except UsageError as error:
        raise ChangedMeanwhile from error
    if found.fingerprint() != state:
        raise ChangedMeanwhile
    return found


@dataclass(frozen=True, slots=True)
class Action:
    """Something the page can do; `names` are the parameters of its address that say to what.

    `plan` reads only, and raises `UsageError` if there is no such thing. `refresh` looks at all files first: for plans
    that list files from the index.
    """

    name: str
    names: tuple[str, ...]
    plan: Callable[[ViewRequest], ActionPlan]
    do: Callable[[ActionCall], ActionResult]
    refresh: bool = False

    def target(self, request: ViewRequest) -> dict[str, str]:
        """Returns the parameters that the request gives."""
        return {name: request.query[name] for name in self.names if request.query.get(name)}


REASON = FormField("reason", "Reason", required=True)


def digest(text: str | bytes | None) -> str | None:
    """Returns the SHA-256 of a text for the state of a plan, which holds no texts."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return None if raw is None else hashlib.sha256(raw).hexdigest()


def history_remedy(request: ViewRequest, paths: Iterable[str]) -> tuple[str, str]:
    """Returns a sentence and the command that takes files out of the git history which still contains them."""
    place = request.site.place
    line = filter_line(place.root, place.state().key, paths)
    where = " In a fresh clone of the repository, this takes it out:" if line else " This deletes the history:"
    return where, line or request.command("history", "forget")
