"""`entity apply`: executes one operation given as a JSON document, parsed strictly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from signet_sync.cli.entity.run import ACTORS, opened, tell
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context, resolve_now
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import KINDS

if TYPE_CHECKING:
    from signet_sync.entities.results import EntityResult

_HELP = """Do one operation that a JSON document names.

\b
{"op": "create",    "kind": "user"|"part"|"relationship", "name": str,
                    "type": str|null, "between": [ID, ID]|null}
{"op": "set"|"append"|"propose", "id": ID, "section": str, "text": str,
                    "rationale": str|null, "evidence": "PATH#LINE"|null}
{"op": "prune",     "id": ID, "section": str, "item": str, "reason": str}
{"op": "status",    "id": ID, "status": str, "reason": str|null}
{"op": "rename",    "id": ID, "name": str}
{"op": "deprecate", "id": ID, "reason": str}
{"op": "pin"|"unpin"|"lock"|"unlock", "id": ID, "section": str|null}
{"op": "approve",   "proposal": str}
{"op": "reject",    "proposal": str, "reason": str|null}

Each takes "actor" and "idempotency_key", too. The answer is that of the command of the same name.

\b
Example:
  echo '{"op": "set", "id": "mira", "section": "goals", "text": "Ship 0.9."}' |
    signet-sync entity apply --input - --json
"""


class _Form(NamedTuple):
    """An operation: its required and optional fields, and the actor if none is given."""

    needs: tuple[str, ...]
    may: tuple[str, ...] = ()
    actor: str = "agent"


_FORMS = {
    "create": _Form(("kind", "name"), ("type", "between")),
    "set": _Form(("id", "section", "text"), ("rationale", "evidence")),
    "append": _Form(("id", "section", "text"), ("rationale", "evidence")),
    "prune": _Form(("id", "section", "item", "reason")),
    "status": _Form(("id", "status"), ("reason",)),
    "rename": _Form(("id", "name")),
    "deprecate": _Form(("id", "reason")),
    "pin": _Form(("id",), ("section",), "person"),
    "unpin": _Form(("id",), ("section",), "person"),
    "lock": _Form(("id",), ("section",), "person"),
    "unlock": _Form(("id",), ("section",), "person"),
    "propose": _Form(("id", "section", "text"), ("rationale", "evidence")),
    "approve": _Form(("proposal",), (), "person"),
    "reject": _Form(("proposal",), ("reason",), "person"),
}
# Fields whose names differ from the operations' arguments.
_NAMES = {"type": "relation", "id": "ref"}
_COMMON = ("op", "actor", "idempotency_key")


@click.command("apply", help=_HELP, short_help="Do one operation that a JSON document names.")
@click.option("--input", "source", metavar="FILE|-", required=True, help="The JSON document; - reads it from stdin.")
@agent_option
@now_option
@json_option
@pass_context
def apply_(context: Context, source: str, agent: str, now: str | None, as_json: bool) -> None:
    from signet_sync.cli.session import read_input

    given = read_input(source, "entity apply")
    instant = resolve_now(now)
    name, arguments = request(given)
    act = _acts()[name]
    with opened(context) as workspace:
        done = act(workspace, agent, **arguments, now_us=instant)
    tell(context, done, f"{name}:", as_json=as_json)


def request(given: object) -> tuple[str, dict[str, Any]]:
    """Returns the operation that a document names, and its arguments. Raises `UsageError` (`input-invalid`)."""
    if not isinstance(given, Mapping):
        raise _bad("the document must be a JSON object")
    name = given.get("op")
    form = _FORMS.get(name) if isinstance(name, str) else None
    if form is None or not isinstance(name, str):
        raise _bad(f"`op` must be one of {', '.join(_FORMS)}")
    unknown = [field for field in given if field not in (*_COMMON, *form.needs, *form.may)]
    if unknown:
        raise _bad(f"{name} has no field `{unknown[0]}`")
    arguments = {_NAMES.get(field, field): given[field] for field in (*form.needs, *form.may) if field in given}
    for field in form.needs:
        if not isinstance(given.get(field), str):
            raise _bad(f"{name} needs `{field}`, a text")
    for field in (*form.may, "idempotency_key"):
        if field != "between" and not isinstance(given.get(field), str | None):
            raise _bad(f"`{field}` must be a text")
    arguments["actor"] = given.get("actor") or form.actor
    arguments["key"] = given.get("idempotency_key")
    if arguments["actor"] not in ACTORS:
        raise _bad(f"`actor` must be one of {', '.join(ACTORS)}")
    if name == "create":
        _check_create(arguments)
    return name, arguments


def _check_create(arguments: dict[str, Any]) -> None:
    if arguments["kind"] not in KINDS:
        raise _bad(f"`kind` must be one of {', '.join(KINDS)}")
    between = arguments.get("between") or []
    if not isinstance(between, list) or not all(isinstance(ref, str) for ref in between):
        raise _bad("`between` must be a list of ids")
    arguments["between"] = between
    if (arguments["kind"] == "relationship") != bool(between):
        raise _bad("a relationship, and nothing else, is `between` others")


def _bad(what: str) -> UsageError:
    return UsageError(what, hint="see signet-sync entity apply --help for its shape", code="input-invalid")


def _acts() -> dict[str, Callable[..., EntityResult]]:
    from signet_sync.entities import operations, protection

    return {
        "create": operations.create,
        "set": operations.set_section,
        "append": operations.append,
        "prune": operations.prune,
        "status": operations.set_status,
        "rename": operations.rename,
        "deprecate": operations.deprecate,
        "pin": protection.pin,
        "unpin": protection.unpin,
        "lock": protection.lock,
        "unlock": protection.unlock,
        "propose": protection.propose,
        "approve": protection.approve,
        "reject": protection.reject,
    }
