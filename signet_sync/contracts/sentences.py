"""Memory sentences: Signet's gate for what we read, our stricter one for what we write, and the fallback.

The model proposes, the contract disposes (contracts, *Sentences*; seed 000, *Per-session sentence quality floor*).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from signet_sync.contracts.bodies import JS_BLANKS, js_trim
from signet_sync.contracts.names import IMMUTABLE_KINDS

MIN_WORDS, MAX_WORDS = 12, 48
LOW_SIGNAL = frozenset({"Investigated issue.", "Worked on task.", "Reviewed code."})

_JS_SPACE = re.compile(f"[{JS_BLANKS}]+")
_TERMINAL = (".", "!", "?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Bidi overrides; and what nobody sees but a model reads: zero-width blanks, invisible operators, tag characters.
_INVISIBLE = re.compile("[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")

# Signet's own anchors. Its patterns backtrack quadratically on hostile text, so the runs are walked here instead.
_SIGNET_ISSUE = re.compile(rf"\b(?:PR|pr|issue|Issue|task|TASK)[-#:{JS_BLANKS}]*+([A-Za-z0-9._-]+)\b", re.ASCII)
_SIGNET_ROOTS = "platform|surfaces|integrations|libs|dist|runtimes|plugins|web|memorybench|packages"
_SIGNET_PATH = re.compile(rf"\b(?:{_SIGNET_ROOTS})/[A-Za-z0-9._/-]+\b", re.ASCII)
_SIGNET_WORDS = re.compile(rf"\b(?:(?:{_SIGNET_ROOTS})/|PR#?|issue#?|task#?)\b", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_SIGNET_EXTENSION = re.compile(r"\.(?:tsx|ts|jsx|js|rs|md)\b", re.ASCII)
_WORD_START = re.compile(r"\w", re.ASCII)

_EXTENSIONS = (
    "py|pyi|ts|tsx|js|jsx|mjs|cjs|rs|go|rb|java|kt|kts|c|h|cc|cpp|hpp|cs|swift|php|sh|bash|zsh|fish|toml|ya?ml|jsonl?"
    "|mdx?|rst|txt|sql|s?css|html?|vue|svelte|proto|lock|cfg|ini|conf|env|tf|nix|xml|csv|ipynb|lua|exs?|erl|hs|ml"
    "|scala|clj|dart|zig|service|plist|db"
)
_FILE = re.compile(rf"(?:^|[\s(\"'`\[])\.?[\w-][\w.@-]{{0,120}}\.(?:{_EXTENSIONS})(?![\w-])")
_PATH = re.compile(r"(?:^|[\s(\"'`])(?:[\w.@-]{1,80}/){1,20}[\w.@-]{1,80}")
_ISSUE = re.compile(r"\b(?:PR|issue|task)[-#:\s]{1,4}\d+\b|(?:^|[\s(])#\d+\b|\b[A-Z]{2,8}-\d{1,6}\b", re.ASCII)
_COMPONENT = re.compile(
    r"\b(?:[a-z]{1,40}[A-Z]\w{0,60}|[A-Z][a-z]{1,40}[A-Z]\w{0,60}|\w{1,40}_\w{1,60}|[A-Za-z]{2,40}-\w{1,40})\b",
    re.ASCII,
)
_SENTENCE_END = re.compile(r"([.!?]['\")\]]{0,3})\s+(?=\S)")
_SECOND_SENTENCE = re.compile(r"[.!?]['\")\]]{0,3}\s+[A-Z\"'(\[]")


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a sentence may be anchored in: the artifact's body, project, kind, harness, UTC day and token."""

    body: str
    project: str | None
    kind: str
    harness: str | None
    day: str
    token: str


def words(text: str) -> int:
    """Words as JavaScript's `\\s` separates them."""
    if text.isascii() and text.isprintable():
        return len(text.split())
    return sum(1 for word in _JS_SPACE.split(js_trim(text)) if word)


def basename(project: str | None) -> str:
    """The last part of a project path, as POSIX (and so Signet) takes it; empty where there is none."""
    return js_trim(project or "").rstrip("/").rpartition("/")[2]


def passes_signet(sentence: str, body: str, project: str | None) -> bool:
    """Signet's gate (vectors: `sentence`): 12–48 words, terminal point, its kinds of anchor."""
    if js_trim(sentence) in LOW_SIGNAL or not MIN_WORDS <= words(sentence) <= MAX_WORDS:
        return False
    if not js_trim(sentence).endswith(_TERMINAL):
        return False
    return (
        signet_anchor(body, project) in sentence
        or _SIGNET_WORDS.search(sentence) is not None
        or _signet_file(sentence) is not None
    )


def signet_anchor(body: str, project: str | None) -> str:
    """The one text that Signet looks for first: project, else issue, else path or file in the body, else `session`."""
    name = basename(project)
    if name:
        return name
    issue = _SIGNET_ISSUE.search(body)
    if issue is not None:
        return re.sub(f"[{JS_BLANKS}]+", "", issue[0])
    path = _SIGNET_PATH.search(body)
    file = _signet_file(body, path.start() if path else None)
    if path is not None and (file is None or path.start() <= file[0]):
        return path[0]
    return file[1] if file else "session"


def _signet_file(text: str, before: int | None = None) -> tuple[int, str] | None:
    """Start and text of the first `name.ts`-like token of Signet, found in linear time."""
    for run in _RUN.finditer(text):
        if before is not None and run.start() > before:
            return None
        token = run[0]
        if "." not in token:
            continue
        start = _WORD_START.search(token)
        ends = [m.end() for m in _SIGNET_EXTENSION.finditer(token) if start is not None and m.start() > start.start()]
        if ends and start is not None:
            return run.start() + start.start(), token[start.start() : ends[-1]]
    return None


def has_anchor(sentence: str, context: SessionContext) -> bool:
    """Whether the sentence names something of this session: project, file or path, issue, component in the body."""
    name = basename(context.project)
    if name and name != ".." and name in sentence:
        return True
    if _FILE.search(sentence) or _PATH.search(sentence) or _ISSUE.search(sentence):
        return True
    return any(match[0] in context.body for match in _COMPONENT.finditer(sentence))


def passes_strict(sentence: str, context: SessionContext) -> bool:
    """Our gate for all that we write: one sentence on one line, 12–48 words, terminal point, concrete anchor."""
    if sentence != js_trim(sentence) or len(sentence) > 2000 or _CONTROL.search(sentence):
        return False
    if sentence in LOW_SIGNAL or not MIN_WORDS <= words(sentence) <= MAX_WORDS:
        return False
    if not sentence.endswith(_TERMINAL) or _SECOND_SENTENCE.search(sentence):
        return False
    return has_anchor(sentence, context)


def acceptable(sentence: str, context: SessionContext) -> bool:
    """The render gate: a stored sentence is kept if it passes ours or Signet's."""
    return passes_signet(sentence, context.body, context.project) or passes_strict(flatten(sentence), context)


def fallback(context: SessionContext) -> str:
    """A true sentence about this session, built from its own words; passes `passes_strict` for every input.

    It names the project (or the file), the day, the first heading, request or line, and the size; it never invents.
    """
    kind = context.kind if context.kind in IMMUTABLE_KINDS else "file"
    place = _place(context, kind)
    lead, first = _lead(context.body)
    subject = f"In {place} the {kind} of {context.day}"
    lines = context.body.count("\n") + 1 if context.body else 0
    size = words(context.body[:200_000])
    more = " or more" if len(context.body) > 200_000 else ""
    if not size:
        return f"{subject} was saved without words of its own, so only its name, times and links remain."
    told = f'{"opens with" if first else "holds"} "{lead}"' if lead else "opens without heading or request"
    return (
        f"{subject} {told} and keeps {lines} {'line' if lines == 1 else 'lines'} "
        f"and {size}{more} {'word' if size == 1 else 'words'} behind its link."
    )


def _place(context: SessionContext, kind: str) -> str:
    return usable_name(context.project) or f"{context.token}--{kind}.md"


def usable_name(project: str | None) -> str:
    """The project's name where a sentence may use it as it is; else empty."""
    name = flatten(basename(project))
    usable = (
        name == basename(project)
        and 0 < len(name) <= 60
        and words(name) <= 4
        and name not in (".", "..")
        and '"' not in name
        and not _SENTENCE_END.search(name)
        and any(c.isalnum() for c in name)
    )
    return name if usable else ""


_MARKUP = re.compile(
    r"^(?:#{1,6}\s+|>\s*|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+|(?:User|Human|Assistant|Model|System)\s*:\s*)+"
)


def _lead(body: str) -> tuple[str, bool]:
    """The first heading or request of a body, else its first line with a word, and whether the body opens with it.

    Shortened to at most twelve words.
    """
    first = ""
    for position, line in enumerate(body.split("\n", 400)[:400]):
        text = line.strip()
        if not any(c.isalnum() for c in text[:200]) or text.startswith(("```", "|", "---")):
            continue
        if text.startswith(("#", "User:", "Human:")):
            cleaned = lead_of(text)
            if cleaned and not (text.startswith("#") and position > 0 and first and cleaned.lower() in _SECTION_WORDS):
                return cleaned, not first
        if not first:
            first = lead_of(text)
    return first, True


_SECTION_WORDS = frozenset(
    {
        "context",
        "decisions",
        "constraints",
        "blockers",
        "next",
        "people",
        "notes",
        "summary",
        "overview",
        "goal",
        "goals",
    }
)


def lead_of(line: str) -> str:
    """What a line says, as a sentence may quote it: its first sentence, without markup, at most twelve words."""
    # Emphasis goes first: taken out of a flattened text it would let two brackets meet.
    text = flatten(re.sub(r"[\"“”*~`]+|(?<!\w)_+|_+(?!\w)", "", _MARKUP.sub("", line[:400])))
    parts = text.split()
    kept = " ".join(part[:40] for part in parts[:12]).strip(" .,;:!?-|")[:120].strip(" .,;:!?-|")
    if not any(c.isalnum() for c in kept):
        return ""
    end = _SENTENCE_END.search(kept)
    if end is not None and words(kept[: end.start()]) >= 3:
        return kept[: end.start()].strip(" .,;:!?-|")
    kept = _SENTENCE_END.sub(", ", kept)
    return f"{kept} …" if len(parts) > 12 and end is None else kept


def flatten(text: str, limit: int = 1000) -> str:
    """Text as it may be shown on a page: one line that can forge no row, link, heading or marker.

    Control characters become blanks, bidi overrides and what nobody sees go, `[[ ]] <!-- -->` and what else a Markdown
    reader would act on (links, images, footnotes, HTML, struck text, Obsidian's `%%` and `$$`) are taken apart,
    backticks become quotes. What would be a tag, a highlight or a formula gets the wide form of its sign: `＃tag`;
    issues (`#12`) and addresses of the web stay.
    """
    if not text.isprintable():
        text = _INVISIBLE.sub("", _CONTROL.sub(" ", text))
        text = text.encode("utf-8", "replace").decode("utf-8")
    if "[" in text or "]" in text:
        text = re.sub(r"\[(?=\[)", "[ ", text)
        text = re.sub(r"\](?=[\](])|[!^](?=\[)", r"\g<0> ", text)
    if "--" in text or "`" in text:
        text = text.replace("`", "'").replace("<!--", "<! --").replace("-->", "-- >")
    if "<" in text or "%%" in text or "~~" in text:
        text = re.sub(r"%(?=%)|(?<!~)~(?=~(?!~))", r"\g<0> ", re.sub(r"<(?=[A-Za-z/?]|![A-Za-z\[])", "‹", text))
    if "#" in text:
        text = _SIGNS.sub(_without_tag, text)
    if "$" in text:
        text = _without_formulas(text)
    if "==" in text and _is_highlighted(text):
        text = text.replace("==", "＝＝")
    if "  " in text or text[:1] == " " or text[-1:] == " " or not text.isascii():
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip(" #$=~") + "…"


# What Obsidian takes for a tag holds something other than digits; inside an address nothing is one.
_SIGNS = re.compile(
    r"https?://[\w-]++(?:\.[\w-]++)++[^\s<>]*+"
    r"|(?P<behind>[0-9A-Za-z]?)(?P<signs>#++)"
    r"(?:(?=[0-9]*+[^\s0-9\u2000-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\])(?P<tag>))?"
)
_OPENING_HIGHLIGHT = re.compile(r"==[^\s=]")
_CLOSING_HIGHLIGHT = re.compile(r"[^\s=]==")
_LONE_HIGHLIGHT = re.compile(r"(?<!\S)==[^\s=]|[^\s=]==(?!\S)")
_OPENING_DOLLAR = re.compile(r"\$(?=\S)")
_CLOSING_DOLLAR = re.compile(r"(?<=\S)\$(?!\d)")
_LONE_CLOSING_DOLLAR = re.compile(r"(?<=[\w)\]}])\$(?!\d)")


def _without_tag(found: re.Match[str]) -> str:
    if found["tag"] is None:
        return found[0]
    kept = "#" if found["behind"] else ""  # behind a letter no tag begins
    return f"{found['behind']}{kept}{'＃' * (len(found['signs']) - len(kept))}"


def _is_highlighted(text: str) -> bool:
    """Whether something is, or would be together with what another field holds."""
    opening = _OPENING_HIGHLIGHT.search(text)
    pair = opening is not None and _CLOSING_HIGHLIGHT.search(text, opening.end() - 1) is not None
    return pair or _LONE_HIGHLIGHT.search(text) is not None


def _without_formulas(text: str) -> str:
    """No dollar is left that could close a formula, whatever stands before this text."""
    text = _LONE_CLOSING_DOLLAR.sub("＄", re.sub(r"\$(?=\$)", "$ ", text))
    opening = _OPENING_DOLLAR.search(text)
    if opening is None:
        return text
    return text[: opening.end()] + _CLOSING_DOLLAR.sub("＄", text[opening.end() :])


def flatten_cell(text: str, limit: int = 200) -> str:
    """Flattened for a column of a ledger row: ` | ` would forge the next column."""
    return flatten(text, limit).replace(" | ", " ¦ ").replace(" |", " ¦").replace("| ", "¦ ")
