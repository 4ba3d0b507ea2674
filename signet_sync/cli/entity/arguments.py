"""`entity apply`: executes one operation given as a JSON document, parsed strictly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from signet_sync.cli.entity.run import ACTORS, answer_done, kind_of_word
from signet_sync.cli.input import read_json
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.handle import in_words

if TYPE_CHECKING:
    from signet_sync.entities.results import EntityResult

_HELP = """Execute one operation given as a JSON document.

\b
{"op": "create",    "kind": "user"|"person"|"relationship", "name": str,
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

Each also takes "actor" and "idempotency_key". The answer is that of the command of the same name.

\b
Example:
  echo '{"op": "set", "id": "mira", "section": "goals", "text": "Ship 0.9."}' |
    signet-sync entity apply --input - --json
"""


class _Form(NamedTuple):
    """An operation: its function, its required and optional fields, and the actor if none is given."""

    run: Callable[..., EntityResult]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    actor: str = "agent"


# Fields whose names differ from the operations' arguments.
_NAMES = {"type": "relation", "id": "ref"}
_COMMON = ("op", "actor", "idempotency_key")


@cache
def _forms() -> dict[str, _Form]:
    from signet_sync.entities import operations, protection  # completion does without

    return {
        "create": _Form(operations.create, ("kind", "name"), ("type", "between")),
        "set": _Form(operations.set_section, ("id", "section", "text"), ("rationale", "evidence")),
        "append": _Form(operations.append, ("id", "section", "text"), ("rationale", "evidence")),
        "prune": _Form(operations.prune, ("id", "section", "item", "reason")),
        "status": _Form(operations.set_status, ("id", "status"), ("reason",)),
        "rename": _Form(operations.rename, ("id", "name")),
        "deprecate": _Form(operations.deprecate, ("id", "reason")),
        "pin": _Form(protection.pin, ("id",), ("section",), "person"),
        "unpin": _Form(protection.unpin, ("id",), ("section",), "person"),
        "lock": _Form(protection.lock, ("id",), ("section",), "person"),
        "unlock": _Form(protection.unlock, ("id",), ("section",), "person"),
        "propose": _Form(protection.propose, ("id", "section", "text"), ("rationale", "evidence")),
        "approve": _Form(protection.approve, ("proposal",), (), "person"),
        "reject": _Form(protection.reject, ("proposal",), ("reason",), "person"),
    }


@click.command("apply", cls=Command, help=_HELP, short_help="Execute one operation given as a JSON document.")
@click.option("--input", "source", metavar="FILE|-", required=True, help="The JSON document; - reads it from stdin.")
@agent_option
@now_option
@json_option
@pass_context
def apply_(context: Context, source: str) -> None:
    name, arguments = request(read_json(source, "entity apply"))
    with context.opened(lasting=True) as workspace:
        done = _forms()[name].run(workspace, context.agent, **arguments, now_us=context.now_us)
    answer_done(context, done, f"{name}:")


def request(given: object) -> tuple[str, dict[str, Any]]:
    """Returns the operation that a document names, and its arguments. Raises `UsageError` (`input-invalid`)."""
    if not isinstance(given, Mapping):
        raise _invalid("the document must be a JSON object")
    name = given.get("op")
    form = _forms().get(name) if isinstance(name, str) else None
    if form is None or not isinstance(name, str):
        raise _invalid(f"`op` must be one of {', '.join(_forms())}")
    unknown = [field for field in given if field not in (*_COMMON, *form.required, *form.optional)]
    if unknown:
        raise _invalid(f"{name} has no field `{unknown[0]}`")
    arguments = {_NAMES.get(field, field): given[field] for field in (*form.required, *form.optional) if field in given}
    for field in form.required:
        if not isinstance(given.get(field), str):
            raise _invalid(f"{name} needs `{field}`, a text")
    for field in (*form.optional, "idempotency_key"):
        if field != "between" and not isinstance(given.get(field), str | None):
            raise _invalid(f"`{field}` must be a text")
    arguments["actor"] = given.get("actor") or form.actor
    arguments["key"] = given.get("idempotency_key")
    if arguments["actor"] not in ACTORS:
        raise _invalid(f"`actor` must be one of {', '.join(ACTORS)}")
    if name == "create":
        _check_create(arguments)
    return name, arguments


def _check_create(arguments: dict[str, Any]) -> None:
    arguments["kind"] = kind_of_word(arguments["kind"])
    if arguments["kind"] not in KINDS:
        raise _invalid(f"`kind` must be one of {', '.join(map(in_words, KINDS))}")
    between = arguments.get("between") or []
    if not isinstance(between, list) or not all(isinstance(ref, str) for ref in between):
        raise _invalid("`between` must be a list of ids")
    arguments["between"] = between
    if (arguments["kind"] == "relationship") != bool(between):
        raise _invalid("`between` is for relationships, which need it")


def _invalid(what: str) -> UsageError:
    return UsageError(what, hint="see signet-sync entity apply --help for the format", code="input-invalid")
