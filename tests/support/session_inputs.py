"""Session ends and compactions as a caller gives them, and what the vault and the state folder hold afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench import Answer, Vault, tree

from signet_sync.formats.frontmatter import parse

FIRST = (
    "# Queue\n\n## User\n\nWhy does the queue of lantern never drain?\n\n"
    "## Assistant\n\nsrc/queue.py retries for ever.\n"
)
SECOND = "\n## User\n\nBound it.\n\n## Assistant\n\nDone: five attempts, then src/queue.py gives up.\n"
THIRD = "\n## User\n\nAnd log it.\n\n## Assistant\n\nEvery attempt is logged by RetryLoop.\n"
SUMMARY = "# Queue\n\n## Decisions\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n"
SENTENCE = "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains in the end."
WHO: dict[str, Any] = {
    "session_id": "5e551003-0000-4000-8000-000000000003",
    "project": "/home/ada/code/lantern",
    "harness": "claude-code",
}


def moment(number: int) -> str:
    """A minute of 20 March 2026."""
    return f"2026-03-20T{10 + number // 60:02d}:{number % 60:02d}:00.000Z"


def document(kind: str = "end", **given: Any) -> dict[str, Any]:
    """The document of a caller; what is given as `...` is left out."""
    words = {"transcript": FIRST} if kind == "end" else {"compaction": SUMMARY}
    return {name: value for name, value in {**WHO, **words, **given}.items() if value is not ...}


def say(
    vault: Vault, kind: str = "end", *, raw: bytes | None = None, options: tuple[str, ...] = (), **given: Any
) -> Answer:
    """`session end --json` (or compact) in this process."""
    place = vault.root.parent / "input.json"
    place.write_bytes(json.dumps(document(kind, **given)).encode() if raw is None else raw)
    return vault.call("session", kind, "--json", "--input", str(place), *options)


def end(vault: Vault, kind: str = "end", **given: Any) -> dict[str, Any]:
    """The answer to an ending that succeeds."""
    answer = say(vault, kind, **given)
    assert answer.code == 0, answer
    found: dict[str, Any] = answer.json
    return found


def compact(vault: Vault, **given: Any) -> dict[str, Any]:
    """The answer to a compaction that succeeds."""
    return end(vault, "compact", **given)


def refuse(vault: Vault, code: str, exit_code: int = 2, kind: str = "end", **given: Any) -> dict[str, Any]:
    """The error of an ending that is refused: one line each of message and hint."""
    answer = say(vault, kind, **given)
    assert answer.code == exit_code, answer
    error: dict[str, Any] = answer.json["error"]
    assert error["code"] == code, error
    assert error["message"] and error["hint"], error
    assert "\n" not in error["message"] + error["hint"], error
    return error


def fields(vault: Vault, path: str) -> dict[str, Any]:
    """The frontmatter of a file."""
    return dict(parse((vault / path).read_bytes()).fields)


def body(vault: Vault, path: str) -> str:
    """The body of a file without its last newline."""
    return parse((vault / path).read_bytes()).body.removesuffix("\n")


def written(vault: Vault, kind: str = "") -> list[str]:
    """The artifacts of a kind (of all kinds) by path, in the order of their names."""
    return sorted(f"memory/{path.name}" for path in vault.memory.glob(f"*--*{kind}.md"))


def segments(vault: Vault, kind: str = "transcript") -> list[str]:
    """The bodies of the artifacts of a kind, in the order of their names."""
    return [body(vault, path) for path in written(vault, kind)]


def everything(vault: Vault) -> dict[str, tuple[Any, ...]]:
    """All that stands on disk, with times and inodes: vault, database, journal. Locks are no content."""
    state = tree(vault.state, but=["locks"]) if vault.state.exists() else {}
    return {f"vault/{path}": found for path, found in tree(vault.root).items()} | {
        f"state/{path}": found for path, found in state.items()
    }


def journal(vault: Vault) -> list[str]:
    """The inputs that are kept for somebody who finishes them."""
    folder = vault.state / "journal"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def sound(vault: Vault) -> None:
    """Every file is valid, none has a note for a person, nothing is left to be done."""
    answer = vault.call("check", "--json", "--strict")
    assert answer.code == 0, answer.out
    assert answer.json["problems"] == [] and answer.json["notes"] == [], answer.out
    assert journal(vault) == []
    assert not list(Path(vault.root).glob(".signet/tmp/*"))
