"""Chooses the lines of a page or context: best first, within a budget, each statement once; lays them out."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from signet_sync.formats.handle import short_handle
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.token_estimate import estimate_tokens

PIN = "📌 "
_GAP = 2  # tokens of a blank line beside a heading
# Says that there is more than is shown, and how it is found.
MORE = "… and more: signet-sync recall WORDS"

_LEAST = 3  # words; texts with fewer are the same only if their words are
_WORD = late(r"\w+(?:[.:/@#+'’-]\w+)*")

Size = Callable[[str], int]  # of one line


class Line(NamedTuple):
    """A line that may be shown. `text` has neither bullet nor handle.

    `rank` is its place in the choice, `place` that within its section; both lowest first. It is left out if the board
    says its `statement` already; what `sentence` contains is said, too. Lines of one `project` are compared. `group` is
    a heading inside the section. `session` is the node of the session whose words are shown, where `id` outlives it.
    `mark` stands behind the text, and is none of its words.
    """

    id: str
    section: str
    text: str
    rank: tuple[bool, float, int, str]
    statement: str
    place: tuple[bool | float | int | str, ...] = ()
    project: str = ""
    path: str | None = None
    sentence: str = ""
    group: str = ""
    session: str = ""
    mark: str = ""

    @property
    def is_pinned(self) -> bool:
        """Returns whether it is pinned."""
        return not self.rank[0]

    def render(self) -> str:
        """Returns the line with bullet and handles."""
        handles = " ".join(short_handle(one) for one in (self.session, self.id) if one)
        return f"- {PIN if self.is_pinned else ''}{self.text}{self.mark} {handles}"


class Board(NamedTuple):
    """The chosen lines by section, best first, and those without room."""

    lines: Mapping[str, Sequence[Line]]
    left: Sequence[Line]

    @property
    def line_ids(self) -> frozenset[str]:
        """Returns the ids of the chosen lines."""
        return frozenset(line.id for lines in self.lines.values() for line in lines)


class SessionContext(NamedTuple):
    """The text, the paths (relative to the workspace) that it was made of, and what could not be read and why.

    `ids` are those of its lines; of a quote its session's behind `QUOTED`, of a whole file "".
    """

    text: str
    sources: Sequence[str]
    troubles: Sequence[str]
    ids: Sequence[str] = ()


class Said:
    """Collects statements, to say each once: of one scope, and of none with all."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._said: list[tuple[str, str, frozenset[str]]] = []

    def add(self, text: str, scope: str = "", *, sentence: bool = False) -> None:
        """Adds a statement; one all of whose words are in a `sentence` counts as said, too."""
        key = _words(text)
        self._keys.add(key)
        self._said.append((scope, f" {key} ", frozenset(key.split()) if sentence else frozenset()))

    def holds(self, text: str, scope: str = "") -> bool:
        """Returns whether a text was said in the same words, or is a part of one that was."""
        key = _words(text)
        words = frozenset(key.split())
        if key in self._keys or len(words) < _LEAST:
            return key in self._keys
        return any(
            (not scope or not other or scope == other) and (f" {key} " in said or words <= whole)
            for other, said, whole in self._said
        )


def choose(lines: Iterable[Line], headings: Mapping[str, str], budget: int, size: Size = estimate_tokens) -> Board:
    """Returns lines within a budget: best first, each statement once.

    A line that alone exceeds the budget is skipped; the first that no longer fits ends the choice, so that nothing of
    lower rank takes its place. Each section's heading, with the blank lines around it, counts, and so does `MORE`.
    `headings` are those of the sections in their order; a line of no section is left out.
    """
    budget -= size(MORE) + 2
    ranked = sorted((line for line in lines if line.section in headings), key=lambda line: line.rank)
    chosen: dict[str, list[Line]] = {key: [] for key in headings}
    left: list[Line] = []
    said, shown, used, full = Said(), set[str](), 0, False
    for line in ranked:
        scope = line.project.casefold()
        if line.id in shown or said.holds(line.statement, scope):
            continue
        around = size(headings[line.section]) + 2 * _GAP + 1
        cost = size(line.render()) + 1
        if full or around + cost > budget:
            left.append(line)
            continue
        if line.group and all(one.group != line.group for one in chosen[line.section]):
            cost += size(line.group) + _GAP + 1
        cost += 0 if chosen[line.section] else around
        if used + cost > budget:
            full = True
            left.append(line)
            continue
        used += cost
        chosen[line.section].append(line)
        shown.add(line.id)
        said.add(line.statement, scope)
        if line.sentence:
            said.add(line.sentence, scope, sentence=True)
    return Board(chosen, left)


def blocks(board: Board, headings: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Returns the heading and the lines of each section that has some."""
    found = []
    for key, heading in headings.items():
        lines, group = list[str](), ""
        for line in sorted(board.lines[key], key=lambda line: line.place):
            if line.group != group:
                group = line.group
                lines += [*([""] if lines else []), group, ""]
            lines.append(line.render())
        if lines:
            found.append((heading, lines))
    return found


def cost(lines: Collection[str], size: Size) -> int:
    """Returns the size of lines with their newlines."""
    return sum(size(line) + 1 for line in lines)


@lru_cache(maxsize=4_000)
def _words(text: str) -> str:
    """Returns the words of a text, casefolded, with a blank between two."""
    return " ".join(_WORD.findall(text.casefold()))
