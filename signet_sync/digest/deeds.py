"""Records what was really done in a session: commits, pull requests, edits, picked options.

Everything comes from calls and what they gave back, in no language's words: commits by the line that git prints, pull
requests by title and address, files by the editors' paths.

It also tells whether words stand in what tools printed: a page that an agent repeats states nothing. Six words in a row
are enough, of short words all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from signet_sync.digest.sentences import IS_CJK
from signet_sync.digest.turns import ToolCall, Turn
from signet_sync.formats.lazy_pattern import late

_FILES = 400
_COMMAND = 2_000  # characters of a command that a pattern reads

SHELLS = frozenset(
    ("bash", "shell", "sh", "exec", "exec_command", "local_shell", "local_shell_call", "run_shell_command", "terminal",
     "run_terminal_cmd", "powershell", "execute_command", "shell_command")
)  # fmt: skip
EDITORS = frozenset(
    ("edit", "multiedit", "write", "notebookedit", "apply_patch", "write_file", "replace", "edit_file", "create_file",
     "str_replace_editor", "str_replace_based_edit_tool", "patch", "str_replace")
)  # fmt: skip
_TODO = frozenset(("todowrite", "update_plan", "write_todos", "todo_write", "taskcreate", "taskupdate"))
_ASKERS = frozenset(("askuserquestion", "ask_user", "request_user_input", "question"))
_PLANNERS = frozenset(("exitplanmode", "exit_plan_mode"))
_COMMITTED = late(r"^\s*\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (\S.*)$")
_COMMIT = late(r"\bgit\b(?: -[cC] \S{1,200})* commit\b(?! --(?:help|dry-run))")
_MESSAGE = late(
    r"\s(?:-\w{0,6}m|--message)[= ]?\s?(?:\"\$\(cat <<-?\s?['\"]?\w+['\"]?(?:\\n|\s)*([^\n]{3,300})|\"((?:\\.|[^\"\\]){3,300})|'([^']{3,300}))"
    r"|\s-F -\s[^\n]{0,20}<<-?\s?['\"]?\w+['\"]?[^\\\n]{0,200}\\n((?:[^\\]|\\[^n]){3,300})"
)
_MESSAGE_ENDS = late(r"\\n| (?:Co-Authored-By|Signed-off-by|🤖|- )")
_SCRATCH = late(r"\bmktemp\b|\bgit init\b|\bcd \"?/tmp/|\bcd \"?\$(?:TMP|tmp|dir)")
_HEREDOC = late(r"<<-?\s*['\"]?(\w+)['\"]?\\n.*?\\n\s*\1\b")
_OPENED = late(r"\b(?:gh pr|glab mr) create\b")
_TITLE = late(r"(?:--title|-t)[= ](?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|(\S+))")
# A tool of a server that opens one, and the title in a program that calls it or in what it gave back.
_OPENER = late(r"create_(?:pull|merge)_request$")
_NAMED = late(r"title\"?: ?\"((?:\\.|[^\"\\])+)\"")
_ADDRESS = late(r"https://[^\s\"'<>)]+/(?:pull|merge_requests)/(\d+)")
# With another repository its numbers are not those of this one.
_MERGED = late(r"\b(?:gh pr|glab mr) merge\b(?![^;&|\n]*\s(?:-R|--repo)[= ])(?:\s+(\d+))?")
# After which nobody knows which edits are left, without a commit of its own.
_SETTLES = late(r"\bgit (?:merge|rebase|cherry-pick|stash|reset|checkout|restore|clean|am)\b|\brebase --continue\b")
_PUSHED = late(r"\bgit\b[^|;&\n]{0,80}?(?<! stash) push\b(?! --dry-run)|\b(?:gt|gh stack) submit\b")
_SENT = late(r"(?m)^\s*To (?:\w+://|\S+@\S+:)\S+$")  # what git prints of a push
_DELEGATES = late(r"(?:^|_)task$|agent|workflow")  # a tool whose own calls nobody sees
_SCRATCH_PATH = late(r"(?:^|/)(?:tmp|Temp|scratchpad|memory|\.(?:claude|codex|pi|agents|copilot))/")
_PATCHED = late(r"\*\*\* (?:Add|Update|Delete) File: ([^\s\\]+)")
_PATH = late(r"(?<![^\s,'\"])[^\s,'\"/.]*+[/.][^\s,'\"]*+|\w+")
_ANSWER = late(r"\"([^\"\n]{3,400})\"\s?=\s?\"([^\"\n]{1,400})\"")
_REMOVED = late(r"\brm ((?:-\w+ )*[^;&|<>\n]+)")


class Commit(NamedTuple):
    """A commit: its subject, the number of its turn, and its name and branch as git printed them (may be empty)."""

    subject: str
    turn: int
    name: str = ""
    branch: str = ""


class PullRequest(NamedTuple):
    """A pull request that was opened or merged: title and number (may be empty), turn, whether it was merged."""

    title: str
    number: str
    turn: int
    merged: bool = False


@dataclass(slots=True)
class Deeds:
    """What was done, in order. `edits` are counted per turn.

    `picks` are questions of the agent with the options that the person chose; `planned` is whether a plan was approved;
    `loose` are the files edited since the last commit, `removed` the names of files that a command removed, by turn.
    """

    commits: list[Commit] = field(default_factory=list)
    requests: dict[str, PullRequest] = field(default_factory=dict)
    edits: Counter[int] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    loose: dict[str, None] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    picks: list[tuple[str, str, int]] = field(default_factory=list)
    planned: bool = False
    pushed: int = 0
    tools: set[str] = field(default_factory=set)
    uses_git: bool = False

    @property
    def has_changes(self) -> bool:
        return bool(self.edits or self.commits or self.requests)

    @property
    def working_turns(self) -> set[int]:
        return {*self.edits, *(one.turn for one in self.commits)}

    def take(self, call: ToolCall, turn: int) -> None:
        # What has no arguments and no call before it is a sub-agent.
        if _DELEGATES.search(call.tool) or not (call.detail or call.tool in self.tools):
            self.loose.clear()
        self.tools.add(call.tool)
        if not call.detail:
            return  # what an earlier call gave back
        if call.tool in SHELLS:
            self._run(call, turn)
        elif call.tool in EDITORS and not call.failed:
            self._edit(_PATH.findall(call.detail[:_COMMAND])[:20], turn)
        elif _OPENER.search(call.tool) and not call.failed:
            named = _NAMED.search(call.detail) or _NAMED.search(call.printed)
            self._open(named[1] if named else "" if "tools." in call.detail else call.detail, call, turn)
        elif call.tool in _ASKERS:
            self.picks += [(asked, said, turn) for asked, said in _ANSWER.findall("\n".join(call.output))]
        elif call.tool in _PLANNERS and not call.failed:
            self.planned = self.planned or "approved" in "\n".join(call.output)

    def _edit(self, paths: Sequence[str], turn: int) -> None:
        paths = [
            path for one in paths if "/.claude/plans/" not in (path := one.replace("\\\\", "/").replace("\\", "/"))
        ]
        if paths:
            self.edits[turn] += len(paths)
            self.loose.update((path, None) for path in paths if not _SCRATCH_PATH.search(path))
        for path in paths:
            self.removed.pop(path.rpartition("/")[2], None)
        self.files.update(path for path in paths if path in self.files or len(self.files) < _FILES)

    def _run(self, call: ToolCall, turn: int) -> None:
        command = call.detail[:_COMMAND]
        if patched := _PATCHED.findall(command) if "*** " in command else []:
            self._edit([] if call.failed else patched, turn)
            return
        cut = command.endswith(" …")
        printed = call.output if (cut or "commit" in command) and "] " in call.printed else ()
        made = [
            Commit(found[3].removeprefix("@ "), turn, found[2], found[1])
            for line in printed
            if (found := _COMMITTED.match(line))
        ]
        if call.failed and not made and not (_OPENED.search(command) and " already exists:" in call.printed):
            return
        self.uses_git = self.uses_git or "git " in command
        bare = (_HEREDOC.sub(" ", command) if "<<" in command else command).replace("\\n", "\n")
        for removed in _REMOVED.findall(bare) if "rm " in bare else ():
            self.removed.update((path.rpartition("/")[2], turn) for path in _PATH.findall(removed) if "." in path)
        commits = (cut and made) or ("commit" in bare and _COMMIT.search(bare))
        if commits or _SETTLES.search(bare):
            self.loose.clear()
        if commits and not _SCRATCH.search(command):
            self._commit(made or [Commit(subject, turn) for subject in _read_subject(command)], "--amend" in command)
        if _PUSHED.search(bare) or (cut and _SENT.search("\n".join(call.output))):
            self.pushed = turn
        if "create" in command and _OPENED.search(bare):
            title = _TITLE.search(command)
            self._open(next(filter(None, title.groups()), "") if title else "", call, turn)
        self._number(call)
        if "merge" in bare and (merged := _MERGED.search(bare)):
            number = merged[1] or next(reversed(self.requests), "")
            known = self.requests.get(number, PullRequest("", number, turn))
            self.requests[number] = known._replace(merged=True)

    def _open(self, title: str, call: ToolCall, turn: int) -> None:
        address = _ADDRESS.search("\n".join(call.output))
        number = address[1] if address else ""
        self.requests[number or title] = PullRequest(title, number, turn)
        self.pushed = turn

    def _number(self, call: ToolCall) -> None:
        """Numbers a pull request whose opening gave no address back, by a call that shows both title and address."""
        unnumbered = [title for title, one in self.requests.items() if title and not one.number]
        for title in (title for title in unnumbered if f'"{title}"' in call.printed or f"{title}\n" in call.printed):
            if address := _ADDRESS.search("\n".join(call.output)):
                self.requests[address[1]] = self.requests.pop(title)._replace(number=address[1])

    def _commit(self, made: Iterable[Commit], amends: bool) -> None:
        for commit in made:
            if amends and self.commits:
                self.commits[-1] = commit
            elif all(one.subject != commit.subject for one in self.commits):
                self.commits.append(commit)


def deeds_of(turns: Sequence[Turn]) -> Deeds:
    """Collects the deeds of a session in one pass over its calls."""
    found = Deeds()
    for turn in turns:
        for call in turn.calls:
            found.take(call, turn.number)
    return found


def _read_subject(command: str) -> Iterator[str]:
    """Yields the subject of a commit as the command gives it, for a git that printed nothing."""
    if found := _MESSAGE.search(command):
        text = _MESSAGE_ENDS.split(next(filter(None, found.groups()), ""))[0].strip()
        if text:
            yield text.replace('\\"', '"')


# ── what tools printed ──


_WORDS, _RUN, _STRIDE = 80, 6, 3  # words of a statement that are read; of a run; between the places it is looked for
_SIGNS = 8 * 3  # bytes of a run of signs in scripts without spaces
_FETCHES = late(r"fetch|browse|search_query|web_?search|^mcp_|\b(?:curl|wget|gh (?:api|issue view|pr view))\b")

# Letters in lower case and digits; all else parts words.
_LETTERS = bytes(
    code if code >= 128 or chr(code).isalnum() or code == ord("_") else 32 for code in bytes(range(256)).lower()
)
_MARKS = late(rb"\xe2[\x80\x81][\x80-\xbf]|\xe3\x80[\x80-\xbf]|\xef\xbc[\x81-\x8f\x9a-\xa0]|\xc2[\xa0-\xbf]")


class Printed:
    """Texts that tools printed, in their order; made searchable when first asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Iterable[str] | None = texts
        self._text = b""
        self._ends: list[int] = []

    def holds(self, said: str, before: int | None = None) -> bool:
        """Returns whether words stand in the texts, or in the first ones; linear in their length."""
        end = self._end(before)
        words = _words(said)[:_WORDS] if end else ()
        if not words:
            return False
        in_a_row = self._has_run(words, end) if len(words) > _RUN else self._has(_space_words(words), end)
        if in_a_row or IS_CJK.search(said) is None:
            return in_a_row
        signs = (word[at : at + _SIGNS] for word in words for at in range(0, len(word) - _SIGNS + 1, 3))
        return any(self._has(some, end) for some in signs)

    def holds_all(self, said: str, before: int | None = None) -> bool:
        """Returns whether all words stand there in a row."""
        words = _words(said)[:_WORDS]
        return bool(words) and self._has(_space_words(words), self._end(before))

    def _end(self, before: int | None) -> int:
        if self._texts is not None:
            parts = [_space_words(words) if (words := _words(text)) else b"" for text in self._texts]
            self._text, self._ends, self._texts = b"".join(parts), list(accumulate(map(len, parts))), None
        return len(self._text) if before is None else self._ends[before - 1] if before else 0

    def _has(self, words: bytes, end: int) -> bool:
        return self._text.find(words, 0, end) >= 0

    def _has_run(self, words: Sequence[bytes], end: int) -> bool:
        for at in range(0, len(words) - _STRIDE + 1, _STRIDE):
            if self._has(_space_words(words[at : at + _STRIDE]), end):
                begins = range(max(0, at - _STRIDE), min(at, len(words) - _RUN) + 1)
                if any(self._has(_space_words(words[one : one + _RUN]), end) for one in begins):
                    return True
        return False


def read_printed(turns: Sequence[Turn]) -> Printed:
    """Returns what the tools of each turn printed, without what the agent or the person told them."""
    return Printed("\n".join(text for call in turn.calls for text in _list_told(call)) for turn in turns)


def read_fetched(turns: Sequence[Turn]) -> Printed:
    """Returns what the tools of each turn brought from outside: pages, issues, answers of other servers."""
    return Printed("\n".join(call.printed for call in turn.calls if fetches(call.tool, call.detail)) for turn in turns)


def fetches(tool: str, detail: str) -> bool:
    """Returns whether a call brings something from outside."""
    if tool in SHELLS:
        return ("curl" in detail or "wget" in detail or "gh " in detail) and _FETCHES.search(detail) is not None
    return _FETCHES.search(tool) is not None


def _list_told(call: ToolCall) -> Iterator[str]:
    if call.tool in _TODO or call.tool in _ASKERS:
        return
    if call.tool in SHELLS and "commit" in call.detail:
        yield from (line for line in call.printed.split("\n") if not _COMMITTED.match(line))
    else:
        yield call.printed


def _words(text: str) -> list[bytes]:
    if text.isascii():
        return text.encode().translate(_LETTERS).split()
    return _MARKS.sub(b" ", text.casefold().encode(errors="replace")).translate(_LETTERS).split()


def _space_words(words: Sequence[bytes]) -> bytes:
    return b" " + b" ".join(words) + b" "
