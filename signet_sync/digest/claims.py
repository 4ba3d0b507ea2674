"""Holds what a report claims against the calls of its session: merged, pushed, committed, published, tested, changed.

A claim that no call shows is marked before its words, so that no cut parts them. Silent where a call may have done it
unseen: by a sub-agent, in the part of a session that a compaction took, or by the person, who says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from signet_sync.digest.deeds import COMMITTED, EDITORS, SHELLS, TODO, refused, writes
from signet_sync.digest.sentences import UNSEEN
from signet_sync.digest.transcript import ToolCall
from signet_sync.digest.turns import Turn
from signet_sync.formats.lazy_pattern import late

_LONGEST = 400  # characters of a sentence; a longer one is no claim
_PRINTED = 4_000  # characters of an output's end

_FILLERS = (
    r"(?:and|then|also|now|i|we|it|its|this|that|they|these|everything|all|both|the|my|changes?|work|fix(?:es)?|commits?"
    r"|branch|pr|mr|pull request|merge request|#?\d+|has|have|had|is|are|was|were|been|ve|s|successfully|just|squash"
    r"|re-?based|done)"
)
_DID = r"(committed|pushed|merged|deployed|published|released)"
_CLAIM = late(
    # "Fixed and pushed", "PR #7 has been squash merged", "I've committed", "the branch archive is merged"
    rf"^\W*(?:{_FILLERS}\b\W+){{0,7}}(?:[a-z-]+ed(?:,| and|, and| then|, then) ){{0,3}}{_DID}\b"
    rf"|\b(?:i|we)(?:['’]ve| have)? (?:also |then |now |just )?{_DID}\b"
    rf"|\b(?:pr|mr|pull request|branch|changes|#\d+)\b[^.;,?]{{0,40}}"
    rf"\b(?:is|are|was|were|been|got) (?:now |also )?{_DID}\b"
    rf"|\band {_DID}(?: (?:it|them|to \S+))?[.! ]*$",
    re.IGNORECASE,
)
_STEMS, _PASSES = (
    ("committed", "pushed", "merged", "deployed", "published", "released"),
    ("pass", "green", "clean", "succe"),
)
_OF_GIT = late(r"\b(?:pr|mr|pull request|merge request|branch|main|master|develop|trunk)\b|#\d", re.IGNORECASE)
_TESTS_PASS = late(
    r"\b(?:tests?|test suite|suite|specs)\b[^.;:?]{0,40}\b(?:pass(?:es|ed|ing)?|green|succeed\w*)\b"
    r"|\ball \d+ (?:tests )?pass",
    re.IGNORECASE,
)
_CHECKS_PASS = late(
    r"\b(?:lint(?:er|ing)?|type ?-?checks?|build|ci)\b[^.;:?]{0,30}\b(?:pass(?:es|ed|ing)?|green|clean|succeed\w*)\b",
    re.IGNORECASE,
)
_FINDS_NOTHING = late(r"\bclean\b|\b(?:0|no|zero) (?:errors|issues|warnings|findings|problems)\b", re.IGNORECASE)
_IDLE = late(
    r"(?:\bin|linting:|checked|linted|scanned|processed) 0 files?\b|collected 0 items|no tests? (?:ran|found)",
    re.IGNORECASE,
)
_WORD = late(r"[a-z][\w-]{3,}")
_COMMON_WORDS = frozenset(
    ("check", "lint", "build", "test", "tests", "clean", "docs", "files", "with", "warnings", "errors")
)
_CHANGED = late(
    r"\W*(?:all |everything(?:['’]s| is)? )?(?:done|fixed|implemented|updated|added|removed|renamed|refactored"
    r"|i(?:['’]ve| have) (?:fixed|implemented|updated|added|removed|renamed|refactored))\b",
    re.IGNORECASE,
)
# What claims nothing: denied, wished, of a condition, of another time, or of things that are so in general.
_NO_CLAIM = late(
    r"n['’]t\b|\b(?:not|no|never|none|yet|to be|still|un\w+ed|if|when|once|after|before|until|unless|should|would|could"
    r"|can|may|might|must|will|need\w*|want\w*|ready|previous\w*|already|earlier|recent\w*|or|whether|except|apart"
    r"|other than|but|only|expect\w*|assum\w*|ensur\w*|verif\w+ that|make sure|pre-existing|every time|always)\b|\?\W*$"
    rf"|\b{_DID} (?:commits|files|prs|versions|branches|sessions|metadata|data|state|code)\b",
    re.IGNORECASE,
)
_HIDES = late(r"(?:^|_)(?:task|skill)$|agent|workflow|:")  # a tool whose own calls nobody sees
_TESTED = late(
    r"\b(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tox|nox|playwright test)\b"
    r"|\b(?:go|cargo|npm|pnpm|yarn|bun|mix|swift|dotnet|gradlew?|mvn|make|just|task|mise|rails|sbt|deno)\b"
    r"[^|;&\n]{0,60}\btest",
)
_FAILURES = late(
    r"^\s*(?:FAIL\b|--- FAIL|FAILED\b|={3,}.*\b[1-9]\d* failed|[^\n]{0,40}\b[1-9]\d* (?:tests? )?fail(?:ed|ing|ures?))",
    re.M,
)
_HIDDEN_CODE = late(r"\|\s*(?:tail|head|grep|rg|tee|sort|awk|sed|cut|wc)\b|\|\||;\s*\S|&&[^|;]*\S")
_WORDS_ONLY = late(r"\.(?:md|mdx|txt|rst)\W*$")
_NAMES = late(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|#\d+")


class _Deed(NamedTuple):
    """What shows a claim: words of a call's tool or command, of what it printed; and what is said if nothing does."""

    called: tuple[str, ...]
    printed: tuple[str, ...]
    reason: str


def _deed(called: str, printed: str, reason: str) -> _Deed:
    return _Deed(tuple(called.split("|")), tuple(printed.split("|")), reason)


_RUNS = "check|make|.sh|just |mise|run view|run watch|run list| ci|commit|push"  # a commit may run hooks
_DEEDS: Mapping[str, _Deed] = {
    "merged": _deed("merge|rebase| pull|cherry-pick", "merged|fast-forward", "no merge"),
    "pushed": _deed("push|pr create|mr create|submit|sync", "[new branch]|up-to-date|pushed", "no push"),
    "committed": _deed("commit|rebase|cherry-pick|merge", "root-commit", "no commit"),
    "published": _deed(
        "publish|deploy|releas|upload|apply|rollout|push|ship|vercel|fly|gcloud|kubectl|terraform|workflow|curl|http|twine"
        f"|docker|ssh|scp|rsync|npm|cargo|{_RUNS}",
        "publish|deploy|releas",
        "no deployment",
    ),
    "tested": _deed(f"test|.spec|rspec|jest|verif|tox|nox|{_RUNS}", " pass|passed", "no test run"),
    "checked": _deed(
        f"lint|build|tsc|mypy|ruff|vet|clippy|fmt|format|test|compile|biome|prettier|{_RUNS}",
        "passed|passing|clean|succe",
        "no such run",
    ),
}
_RUN = frozenset(("tested", "checked"))  # which a call did that failed, too
_AGAIN = frozenset(("tested", "pushed"))  # which must have been done since an edit, or a commit
_OF = {"deployed": "published", "released": "published"}
_READERS = frozenset(
    ("read", "grep", "glob", "ls", "view", "read_file", "list_directory", "search_file_content", *TODO)
)


class Claims:
    """The claims of a session's reports, and which of them its calls show; its calls are read when first asked for."""

    def __init__(self, turns: Sequence[Turn], own: Mapping[int, Sequence[str]]) -> None:
        self._turns, self._own = turns, own

    def marked(self, text: str, turn: int) -> str:
        """Returns words of a turn's report, with the mark before them if they claim what no call up to it shows."""
        return f"{UNSEEN}: {reason}) {text}" if (reason := self.unseen(text, turn)) else text

    def unseen(self, text: str, turn: int) -> str:
        """Returns why words claim what is not seen: "no push"; "" if they claim nothing, or it is seen."""
        if _FINDS_NOTHING.search(text[:_LONGEST]) and not _IDLE.search(text) and self._looked_at_nothing(text, turn):
            return "its last run looked at no files"
        claimed = [_OF.get(one, one) for one in _claimed(text)] if len(text) <= _LONGEST else ()
        if not claimed or _NO_CLAIM.search(text):
            return ""
        last = {what: place for place, (at, what) in enumerate(self._events) if at <= turn}
        # Who only reads tells of others' work.
        if "hidden" in last or "tried" not in last or self._prints(_NAMES.findall(text), turn):
            return ""
        for one in claimed:
            if one == "changed":
                if "acted" not in last:
                    return "nothing was changed"
            elif one not in last:
                is_of_git = one != "merged" or len(text.split()) < 5 or _OF_GIT.search(text)
                if is_of_git and not self._person_did(text, turn):
                    return _DEEDS[one].reason
            elif one == "tested" and last.get("test failed", -1) > last.get("test passed", -1):
                return "the last test run failed"
            elif one == "tested" and last.get("edited", -1) > last[one] and self._events[last[one]][0] < turn:
                return "no test run since the last edit"
            elif one == "pushed" and last.get("made a commit", -1) > last[one]:
                return "no push since the last commit"
        return ""

    def ends_failing(self) -> bool:
        """Returns whether the last test run failed, and nothing was changed since."""
        last = {what: place for place, (_, what) in enumerate(self._events)}
        failed = last.get("test failed", -1)
        return failed > max(last.get("test passed", -1), last.get("edited", -1), last.get("hidden", -1))

    def _looked_at_nothing(self, text: str, turn: int) -> bool:
        """Returns whether the last run of a program that words name was of no file or no test."""
        for words, idle in self._runs(turn):
            if not words.isdisjoint(_WORD.findall(text.casefold())):
                return idle
        return False

    def _runs(self, turn: int) -> Iterator[tuple[set[str], bool]]:
        """Yields the words of commands up to a turn, the last one first, and whether they looked at nothing."""
        for one in reversed(self._turns):
            for step in reversed(one.steps) if one.number <= turn else ():
                if isinstance(step, ToolCall) and step.tool in SHELLS and step.detail:
                    idle = _IDLE.search(step.printed[-_PRINTED:]) is not None
                    yield set(_WORD.findall(step.detail.casefold()[:_LONGEST])) - _COMMON_WORDS, idle

    def _person_did(self, text: str, turn: int) -> bool:
        """Returns whether the person says in the same word that it was done."""
        said = " ".join(one for number, some in self._own.items() if number <= turn for one in some).casefold()
        return any(word.casefold() in said for word in re.findall(_DID, text, re.I))

    def _prints(self, names: Sequence[str], turn: int) -> bool:
        """Returns whether a call printed the name of a commit or a request that is claimed."""
        calls = (step for one in self._turns if one.number <= turn for step in one.steps if isinstance(step, ToolCall))
        return bool(names) and any(name in call.printed for call in calls for name in names)

    @cached_property
    def _events(self) -> list[tuple[int, str]]:
        """Returns what the session's calls show, in order, each with its turn."""
        found: list[tuple[int, str]] = []
        seen, called = set[str](), set[str]()
        for turn in self._turns:
            if turn.words is not None and turn.words.text.startswith("This session is being continued"):
                found.append((turn.number, "hidden"))
            for step in turn.steps:
                if isinstance(step, ToolCall):
                    # What has no arguments and no call before it is a sub-agent.
                    some = ["hidden"] if not step.detail and step.tool not in called else list(_shown(step, seen))
                    called.add(step.tool)
                    seen.update(some)
                    found += ((turn.number, what) for what in some)
        return found


def _shown(call: ToolCall, seen: AbstractSet[str]) -> Iterator[str]:
    """Yields the kinds of claims that a call shows, without most of those `seen`, and how a test run ended."""
    if _HIDES.search(call.tool) and call.tool not in TODO:
        yield "hidden"
    if call.tool in EDITORS or (call.tool in SHELLS and (writes(call.detail) or _TESTED.search(call.detail))):
        yield "tried"
    if refused(call):
        return
    if call.tool in EDITORS:
        if call.detail and not call.failed:
            yield "acted"
            if not _WORDS_ONLY.search(call.detail):
                yield "edited"
        return
    told, printed = f"{call.tool} {call.detail}".casefold(), call.printed[-_PRINTED:].casefold()
    runs = not call.failed and call.tool not in _READERS
    for name, deed in _DEEDS.items():
        if ((runs or name in _RUN) and name not in seen - _AGAIN and any(map(told.__contains__, deed.called))) or (
            name not in seen and any(map(printed.__contains__, deed.printed))
        ):
            yield name
    if call.tool not in _READERS:
        yield "acted"
    if call.tool in SHELLS:
        if "commit" in call.detail and any(map(COMMITTED.match, call.output)):
            yield "made a commit"
            yield "committed"
            if "push" in call.detail and not call.failed:
                yield "pushed"
        if "test" in call.detail and _TESTED.search(call.detail):
            # A pipe, or what follows, hides how the run ended.
            fails = ("fail" in printed and _FAILURES.search(call.printed[-_PRINTED:])) or (
                call.failed and not _HIDDEN_CODE.search(call.detail)
            )
            yield "test failed" if fails else "test passed"


def _claimed(text: str) -> Iterator[str]:
    """Yields the kinds of what words claim."""
    low = text.casefold()
    if any(map(low.__contains__, _STEMS)) and (found := _CLAIM.search(text)):
        yield from (word.casefold() for word in re.findall(rf"\b{_DID}\b", found[0], re.I))
    if any(map(low.__contains__, _PASSES)):
        if _TESTS_PASS.search(text):
            yield "tested"
        if _CHECKS_PASS.search(text):
            yield "checked"
    if _CHANGED.match(text):
        yield "changed"


_DISPUTES = late(
    r"\b(?:still|does(?:n['’]t| not)|did(?:n['’]t| not)|is(?:n['’]t| not)|not) (?:\w+ )?"
    r"(?:work\w*|fail\w*|broken|happen\w*|fix\w*|help\w*)\b|\bsame (?:error|problem|issue|failure)\b"
    r"|\b(?:funktioniert|geht) (?:immer noch |noch )?nicht|\bne (?:marche|fonctionne) (?:toujours )?pas|\bno funciona"
    r"|\bnão funciona|\bnon funziona|не работает|还是不|まだ(?:動|失敗)",
    re.IGNORECASE,
)


def disputed(words: Sequence[str]) -> bool:
    """Returns whether a person's words after a report say that what it tells does not work."""
    return any(map(_DISPUTES.search, words))
