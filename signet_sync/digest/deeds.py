"""Records what was really done in a session: commits, pull requests, edits, tests, picked options.

Everything comes from calls and what they gave back, in no language's words: commits by the line that git prints, pull
requests by title and address, files by the editors' paths.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
TODO = frozenset(("todowrite", "update_plan", "write_todos", "todo_write", "taskcreate", "taskupdate"))
ASKERS = frozenset(("askuserquestion", "ask_user", "request_user_input", "question"))
COMMITTED = late(r"^\s*\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (\S.*)$")
_COMMIT = late(r"\bgit\b(?: -[cC] \S{1,200})* commit\b(?! --(?:help|dry-run))")
_MESSAGE = late(
    r"\s(?:-\w{0,6}m|--message)[= ]?\s?(?:\"\$\(cat <<-?\s?['\"]?\w+['\"]?(?:\\n|\s)*([^\n]{3,300})|\"((?:\\.|[^\"\\]){3,300})|'([^']{3,300}))"
    r"|\s-F -\s[^\n]{0,20}<<-?\s?['\"]?\w+['\"]?[^\\\n]{0,200}\\n((?:[^\\]|\\[^n]){3,300})"
)
_SCRATCH = late(r"\bmktemp\b|\bgit init\b|\bcd \"?/tmp/|\bcd \"?\$(?:TMP|tmp|dir)")
_HEREDOC = late(r"<<-?\s*['\"]?(\w+)['\"]?\\n.*?\\n\s*\1\b")
_OPENED = late(r"\b(?:gh pr|glab mr) create\b")
_TITLE = late(r"(?:--title|-t)[= ](?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|(\S+))")
_ADDRESS = late(r"https://[^\s\"'<>)]+/(?:pull|merge_requests)/(\d+)")
_SEEN = late(r"\b(?:gh pr|glab mr) (?:view|checkout|diff|checks|comment|edit|review|ready)\s+(\d{1,6})\b")
_MERGED = late(r"\b(?:gh pr|glab mr) merge\b(?:\s+(\d+))?")
_ELSEWHERE = late(
    r"\s(?:-R|--repo)[= ]['\"]?([\w./-]+)"
)  # the repository that a command names: its number is of that one
_LOGGED = late(r"^\s*(?:\* )?[0-9a-f]{7,12} (?:\([^)]*\) )?(\S.{8,200})$")  # a commit in `git log --oneline`
# After which nobody knows which edits are left, without a commit of its own.
_SETTLES = late(r"\bgit (?:merge|rebase|cherry-pick|stash|reset|checkout|restore|clean|am)\b|\brebase --continue\b")
_PUSHED = late(r"\bgit\b[^|;&\n]{0,80}? push\b|\b(?:gt|gh stack) submit\b")
_PUSHED_TO = late(r"\s*To \S+[:/]\S+$")  # what git prints of a push, whose command may be cut
_TESTS = late(
    r"\b(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tox|nox|playwright test)\b"
    r"|\b(?:go|cargo|npm|pnpm|yarn|bun|mix|swift|dotnet|gradlew?|mvn|make|just|task|mise run|rails|sbt|deno)\b"
    r"[^|;&\n]{0,60}\b(?:test|verify)|\bmake check\b"
)
_TEST_WORDS = ("test", "spec", "jest", "mocha", "phpunit", "tox", "nox", "make check", "verify")
_FAILURES = late(
    r"^\s*(?:FAIL\b|--- FAIL|FAILED\b|={3,}.*\b[1-9]\d* failed|[^\n]{0,40}\b[1-9]\d* (?:tests? )?fail(?:ed|ing|ures?))",
    re.M,
)
_HIDDEN_CODE = late(r"\|\s*(?:tail|head|grep|rg|tee|sort|awk|sed|cut|wc)\b|\|\||;\s*\S|&&[^|;]*\S")
_PRINTED = 4_000  # characters of an output's end
_DELEGATES = late(r"(?:^|_)task$|agent|workflow")  # a tool whose own calls nobody sees
_SCRATCH_PATH = late(r"(?:^|/)(?:tmp|scratchpad|memory|\.(?:claude|codex|pi|agents|copilot))/")
_PARTS = late(r"[;&|\n]\s*")
_WRITES = late(
    r"sed -i|perl -pi|tee |git (?:apply|mv|rm|push|rebase|merge|cherry-pick|revert|reset|tag)\b|mv |rm |mkdir |cp "
    r"|(?:Remove|New|Copy|Move|Set)-(?:Item|Content)\b|npm (?:i|install)\b|pip install|kubectl (?:apply|delete)"
    r"|terraform apply|docker (?:run|build|compose up)"
    r"|gh (?:release|workflow|pr (?:review|comment|close|edit|ready)|issue (?:comment|close|edit))"
)
_INTO = late(r"[^2&]>>? ?[\w./~-]{2,}")
_SILENT = late(r"2>&1|2?> ?/dev/null")
_REMOVED = late(r"\brm ((?:-\w+ )*[^;&|<>\n]+)")
_PATCHED = late(r"\*\*\* (?:Add|Update|Delete) File: ([^\s\\]+)")
_PATH = late(r"(?<![^\s,'\"])[^\s,'\"/.]*+[/.][^\s,'\"]*+|\w+")
_ANSWER = late(r"\"([^\"\n]{3,400})\"\s?=\s?\"([^\"\n]{1,400})\"")
_REFUSALS = ("doesn't want to proceed with this tool use", "doesn't want to take this action", "rejected by user")
_APPROVED = ("User has approved your plan", "Plan approved", "approved")


class Commit(NamedTuple):
    """A commit: its subject, the number of its turn, and its name and branch as git printed them (may be empty)."""

    subject: str
    turn: int
    name: str = ""
    branch: str = ""


class PullRequest(NamedTuple):
    """A pull request that was opened or merged: title (may be empty), number or `?`, turn, whether it was merged.

    The number of one that a command names by its repository is `owner/name#7`.
    """

    title: str
    number: str
    turn: int
    merged: bool = False

    @property
    def shown(self) -> str:
        """Returns the number as it is shown; empty if it is not known."""
        return "" if self.number == "?" else f"#{self.number}" if self.number.isdigit() else self.number


@dataclass(slots=True)
class Deeds:
    """What was done, in order. `edits` and `acts` (other commands that change something) are counted per turn.

    `picks` are questions of the agent with the options that the person chose; `planned` is the turn of a plan that was
    approved, 0 if none was; `seen` counts commands about a pull request by its number; `failing` is whether the last test run failed, None without any, or if something was changed or done unseen
    since; `loose` are the files edited since the last commit, `removed` those that a command removed, with its turn.
    `logged` are commits that a log listed.
    """

    commits: list[Commit] = field(default_factory=list)
    requests: dict[str, PullRequest] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    edits: Counter[int] = field(default_factory=Counter)
    acts: Counter[int] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    loose: dict[str, None] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    commands: dict[str, bool] = field(default_factory=dict)
    logged: dict[str, None] = field(default_factory=dict)
    picks: list[tuple[str, str, int]] = field(default_factory=list)
    planned: int = 0
    pushed: int = 0
    failing: bool | None = None
    tools: set[str] = field(default_factory=set)
    uses_git: bool = False

    @property
    def changed(self) -> bool:
        """Returns whether anything was changed at all."""
        return bool(self.edits or self.commits or self.requests or self.acts)

    @property
    def last_turn(self) -> int:
        """Returns the last turn that changed something, 0 without any."""
        return max([*self.edits, *self.acts, *(one.turn for one in self.commits)], default=0)

    def works(self, turn: int) -> bool:
        """Returns whether anything was changed in a turn."""
        return turn in self.edits or turn in self.acts or any(one.turn == turn for one in self.commits)

    def take(self, call: ToolCall, turn: int) -> None:
        """Adds what a call did."""
        # What has no arguments and no call before it is a sub-agent.
        if _DELEGATES.search(call.tool) or not (call.detail or call.tool in self.tools):
            self.failing = None
            self.loose.clear()
        self.tools.add(call.tool)
        if not call.detail:
            return  # what an earlier call gave back
        if call.tool in SHELLS:
            self._run(call, turn)
        elif call.tool in EDITORS and not call.failed:
            self._edit(_PATH.findall(call.detail[:_COMMAND])[:20], turn)
        elif call.tool in ASKERS:
            self.picks += [(asked, said, turn) for asked, said in _ANSWER.findall("\n".join(call.output))]
        elif call.tool in ("exitplanmode", "exit_plan_mode"):
            said = "\n".join(call.output)
            self.planned = turn if not call.failed and any(one in said for one in _APPROVED) else self.planned

    def _edit(self, paths: Sequence[str], turn: int) -> None:
        paths = [path for path in paths if "/.claude/plans/" not in path]
        if paths:
            self.edits[turn] += len(paths)
            self.loose.update((path, None) for path in paths if not _SCRATCH_PATH.search(path))
            self.failing = None
        self.files.update(path for path in paths if path in self.files or len(self.files) < _FILES)
        for path in paths:
            self.removed.pop(path.rpartition("/")[2], None)

    def _run(self, call: ToolCall, turn: int) -> None:
        command = call.detail[:_COMMAND]
        self.commands.pop(call.detail, None)
        self.commands[call.detail] = call.failed
        if len(self.commands) > _FILES:
            del self.commands[next(iter(self.commands))]
        cut = command.endswith(" …")
        printed = call.output if (cut or "commit" in command) and "] " in call.printed else ()
        made = [(found[3], found[2], found[1]) for line in printed if (found := COMMITTED.match(line))]
        if patched := _PATCHED.findall(command) if "*** " in command else []:
            if not call.failed:
                self._edit(patched, turn)
            return
        tests = any(word in command for word in _TEST_WORDS) and _TESTS.search(command) is not None
        if tests and not is_refused(call):
            # A pipe, or what follows, hides how a run ended.
            hidden = _HIDDEN_CODE.search(command) is not None
            self.failing = (call.failed and not hidden) or _FAILURES.search(call.printed[-_PRINTED:]) is not None
        if call.failed and not made:
            return
        self.uses_git = self.uses_git or "git " in command
        bare = (_HEREDOC.sub(" ", command) if "<<" in command else command).replace("\\n", "\n")
        for removed in _REMOVED.findall(bare) if "rm " in bare else ():
            self.removed.update((path.rpartition("/")[2], turn) for path in _PATH.findall(removed)[:20] if "." in path)
        commits = (cut and made) or ("commit" in bare and _COMMIT.search(bare))
        if commits or _SETTLES.search(bare):
            self.loose.clear()
        if commits and not _SCRATCH.search(command):
            self._commit(call, made, turn)
        if "git" in bare and " log" in bare:
            self.logged.update((found[1], None) for line in call.output if (found := _LOGGED.match(line)))
        pushes = _PUSHED.search(bare) if "push" in bare or "submit" in bare else None
        if (pushes and "--dry-run" not in bare) or any(map(_PUSHED_TO.match, call.output)):
            self.pushed = turn
        if "create" in command and _OPENED.search(bare):
            address = _ADDRESS.search("\n".join(call.output))
            number = address[1] if address else "?"
            self.requests[number] = PullRequest(_title(command), number, turn)
            self.pushed = turn
        other = _ELSEWHERE.search(bare)
        self.seen.update(_SEEN.findall(bare) if other is None and (" pr " in bare or " mr " in bare) else ())
        if "merge" in bare and (merged := _MERGED.search(bare)):
            number = merged[1] or next(reversed(self.requests), "?")
            number = f"{other[1]}#{number}" if other and merged[1] and merged[1] not in self.requests else number
            known = self.requests.get(number, PullRequest("", number, turn))
            self.requests[number] = known._replace(merged=True)
        if not tests and writes(bare):
            self.acts[turn] += 1

    def _commit(self, call: ToolCall, made: Sequence[tuple[str, str, str]], turn: int) -> None:
        for subject, name, branch in made or [(subject, "", "") for subject in _read_subject(call.detail[:_COMMAND])]:
            if "--amend" in call.detail and self.commits:
                self.commits[-1] = Commit(subject, turn, name, branch)
            elif all(one.subject != subject for one in self.commits):
                self.commits.append(Commit(subject, turn, name, branch))


def deeds_of(turns: Sequence[Turn]) -> Deeds:
    """Collects the deeds of a session in one pass over its calls."""
    found = Deeds()
    for turn in turns:
        for step in turn.steps:
            if isinstance(step, ToolCall):
                found.take(step, turn.number)
    return found


def is_refused(call: ToolCall) -> bool:
    """Returns whether the person refused a call: nothing was run."""
    return call.failed and any(one in call.printed for one in _REFUSALS)


def writes(command: str) -> bool:
    """Returns whether a command changes something besides commits."""
    if any(map(_WRITES.match, _PARTS.split(command))):
        return True
    return ">" in command and _INTO.search(_SILENT.sub(" ", command)) is not None


def _read_subject(command: str) -> Iterator[str]:
    """Yields the subject of a commit as the command gives it, for a git that printed nothing."""
    found = _MESSAGE.search(command)
    if found:
        text = next(filter(None, found.groups()), "")
        text = re.split(r"\\n| (?:Co-Authored-By|Signed-off-by|🤖|- )", text)[0].strip()
        if text:
            yield text.replace('\\"', '"')


def _title(command: str) -> str:
    found = _TITLE.search(command)
    return next((one for one in found.groups() if one), "") if found else ""
