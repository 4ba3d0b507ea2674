"""Finds dead ends: what could not work as it was tried, or was refused, and what was done in its place.

From calls and what they gave back. That a test or a build fails is work, no dead end, and so is what worked later as
it stands, in its session or another (`statements.validity`). No words of a tool are told: how it failed is one of a few
phrases of ours.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from signet_sync.digest.deeds import EDITORS, SHELLS, is_refused
from signet_sync.digest.sentences import IS_CJK
from signet_sync.digest.turns import ToolCall, Turn
from signet_sync.formats.lazy_pattern import late

MOST = 6  # of a session
_COMMAND, _CHAIN, _WORDS = 120, 400, 200  # characters of a command, of several, and of the person's words
_LAST = 4  # lines in which a pipe leaves the error of what is before it
_NEAR = 8  # calls after a failure, among which is what was done in its place
_BEFORE = late(r"^(?:(?:cd|export|source) [^;&|]+(?:&&|;)\s*|[A-Za-z_]\w*=\S*\s+)+")
_BEHIND = late(r"(?:\s*(?:2>&1|2?>\s*/dev/null|\|\s*(?:tail|head|grep)\b[^|;&]*|\|\| true))+\s*$")
_JOINED = late(r"&&|;|\||\n|\\n|<<")
_TOKEN = late(r"[\w@./:~-]{3,}")
# What fails because of what it finds.
_WORK = late(
    r"\b(?:tests?|(?:type-?)?check|lint|build|fmt|tsc|grep|rg|find|ls|cat|head|tail|sed|awk|diff|wc|which|stat"
    r"|run (?:view|watch)|git (?:log|show|diff|status|commit|merge|rebase|apply|cherry-pick)|pr checks|curl|pre-commit"
    r"|compile|vet)\b"
)
_CANCELLED = "Cancelled: parallel tool call"  # for another one failed
_NOT_FOUND = "command not found"  # in this shell alone, unless something else worked
_HOW = {
    "is not a command here": r"command not found|not recognized as an? |unrecognized (?:sub)?command"
    r"|is not an? \w+ command|unknown (?:sub)?command|no such (?:sub)?command|missing script|script not found"
    r"|executable file not found",
    "has no such option": r"(?:illegal|unknown|invalid|unrecognized|unsupported|unexpected|no such) "
    r"(?:option|flag|argument|switch)|unknown shorthand flag|bad option|no library targets found",
    "works in another folder": r"could not find `?(?:cargo\.toml|package\.json|go\.mod|pom\.xml)|go\.mod file not found"
    r"|no rule to make target|not a git repository|no required module provides|ERR_PNPM_NO_IMPORTER",
    "needs what is not installed": r"no module named|cannot find module|modulenotfounderror|not installed",
    "is expanded by the shell": r"no matches found:|event not found",
    "is not permitted": r"permission[^\n]{0,60} denied|protected branch|EACCES|operation not permitted|unauthorized",
    "takes too long": r"timed out after|command timed out",
}
_PATTERNS = {phrase: late(pattern, re.IGNORECASE) for phrase, pattern in _HOW.items()}


def core_of(command: str) -> str:
    """Returns what a command line runs: without the folder and variables before it, and where its output goes."""
    return " ".join(_BEHIND.sub("", _BEFORE.sub("", command.strip())).split())


def list_worked(calls: Iterable[ToolCall]) -> dict[str, None]:
    """Returns what command lines ran that worked, each command of a chain; in their order.

    Where a pipe may hide how a command ended, what it printed must not tell of a failure.
    """
    found = dict[str, None]()
    for call in calls:
        if call.tool in SHELLS and not call.failed and len(call.detail) <= _CHAIN and "<<" not in call.detail:
            ran = list(filter(_is_plain, map(core_of, core_of(call.detail).split("&&"))))
            if ran and not ("|" in call.detail and _how_failed(call.output[-_LAST:])):
                found |= dict.fromkeys(ran)
    return found


def find_dead_ends(turns: Sequence[Turn], own: Mapping[int, Sequence[str]]) -> list[tuple[str, int]]:
    """Returns the dead ends of a session in their order, each once: one line and its turn."""
    calls = [(turn.number, step) for turn in turns for step in turn.steps if isinstance(step, ToolCall) and step.detail]
    worked: Mapping[str, None] | None = None
    found: dict[str, int] = {}
    for place, (turn, call) in enumerate(calls):
        if call.tool in SHELLS and call.failed and _CANCELLED not in call.printed:
            if worked is None:
                worked = list_worked(one for _, one in calls)
            if text := _failure(call, own.get(turn + 1, ()), calls[place + 1 : place + 1 + _NEAR], worked):
                found.setdefault(text, turn)
    return list(found.items())[:MOST]


def _failure(
    call: ToolCall, next_words: Sequence[str], after: Sequence[tuple[int, ToolCall]], worked: Mapping[str, None]
) -> str:
    """Returns what is told of a command that failed: that the person refused it, or how it failed and what worked."""
    core = core_of(call.detail)
    if not _is_plain(core) or core in worked:
        return ""
    if is_refused(call):
        said = _quote_person(next_words)  # the reason is the next message; a word or two are another task
        told = not _WORK.search(core) and (len(said.split()) > 2 or IS_CJK.search(said) is not None)
        return f'The person refused "{core}": “{said}”' if told else ""
    how = _how_failed(call.output)
    instead = _instead(core, after)
    if (how in ("", "is not permitted") and _WORK.search(core)) or (not instead and _NOT_FOUND in call.printed):
        return ""
    if not how and (not instead or not _ends_alike(core, instead)):
        return ""
    return f'"{core}" {how or "failed"}' + (f'; "{instead}" worked' if instead else "")


def _how_failed(output: Sequence[str]) -> str:
    printed = "\n".join(output)
    return next((phrase for phrase, pattern in _PATTERNS.items() if pattern.search(printed)), "")


def _ends_alike(core: str, other: str) -> bool:
    """Returns whether two commands are about the same: the last word of one begins with that of the other."""
    last, of_other = (one.split()[-1].rpartition("/")[2] for one in (core, other))
    return last.startswith(of_other) or of_other.startswith(last)


def _is_plain(core: str) -> bool:
    return 3 < len(core) <= _COMMAND and _JOINED.search(core) is None and '"' not in core


def _quote_person(words: Sequence[str]) -> str:
    said = " ".join(words)
    return said if len(said) <= _WORDS else ""


def _instead(core: str, after: Sequence[tuple[int, ToolCall]]) -> str:
    """Returns the command that did in the place of another what that could not: the next one with most of its words.

    After an edit the same may work that failed before.
    """
    wanted = set(_TOKEN.findall(core.replace("-", " ")))
    for _, call in after:
        if call.tool in EDITORS:
            return ""
        other = core_of(call.detail) if call.tool in SHELLS and not call.failed else ""
        words = set(_TOKEN.findall(other.replace("-", " ")))
        shared = len(wanted & words)
        most = shared > 1 and 2 * shared >= min(len(wanted), len(words))
        if other and other != core and _is_plain(other) and (most or 2 * shared >= max(len(wanted), len(words)) > 1):
            return other
    return ""
