"""Checks memory sentences: by Signet's rule those that we read, by our stricter one those that we write; the fallback.

The model proposes, the rules decide.
"""

import re
from typing import NamedTuple

from signet_sync.formats.body import CONTROLS, JS_BLANKS, drop_unseen, js_trim
from signet_sync.formats.filename import IMMUTABLE_KINDS
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import STOP_WORDS
from signet_sync.text.phrases import count_noun

MIN_WORDS, MAX_WORDS = 12, 48
LOW_SIGNAL = frozenset({"Investigated issue.", "Worked on task.", "Reviewed code."})

_JS_SPACE = late(f"[{JS_BLANKS}]+")
_TERMINAL = (".", "!", "?")
_CONTROL = late(f"[{CONTROLS}\t\n]+")

# Signet's own anchors. Its patterns backtrack quadratically on hostile text, so the runs are searched one by one here.
_SIGNET_ISSUE = late(rf"\b(?:PR|pr|issue|Issue|task|TASK)[-#:{JS_BLANKS}]*+([A-Za-z0-9._-]+)\b", re.ASCII)
_SIGNET_ROOTS = "platform|surfaces|integrations|libs|dist|runtimes|plugins|web|memorybench|packages"
_SIGNET_PATH = late(rf"\b(?:{_SIGNET_ROOTS})/[A-Za-z0-9._/-]+\b", re.ASCII)
_SIGNET_WORDS = late(rf"\b(?:(?:{_SIGNET_ROOTS})/|PR#?|issue#?|task#?)\b", re.ASCII)
_RUN = late(r"[A-Za-z0-9._-]+", re.ASCII)
_SIGNET_EXTENSION = late(r"\.(?:tsx|ts|jsx|js|rs|md)\b", re.ASCII)
_WORD_START = late(r"\w", re.ASCII)

_EXTENSIONS = (
    "py|pyi|ts|tsx|js|jsx|mjs|cjs|rs|go|rb|java|kt|kts|c|h|cc|cpp|hpp|cs|swift|php|sh|bash|zsh|fish|toml|ya?ml|jsonl?"
    "|mdx?|rst|txt|sql|s?css|html?|vue|svelte|proto|lock|cfg|ini|conf|env|tf|nix|xml|csv|ipynb|lua|exs?|erl|hs|ml"
    "|scala|clj|dart|zig|service|plist|db"
)
_FILE = late(rf"(?:^|[\s(\"'`\[])\.?[\w-][\w.@-]{{0,120}}\.(?:{_EXTENSIONS})(?![\w-])")
_PATH = late(r"(?:^|[\s(\"'`])(?:[\w.@-]{1,80}/){1,20}[\w.@-]{1,80}")
_ISSUE = late(r"\b(?:PR|issue|task)[-#:\s]{1,4}\d+\b|(?:^|[\s(])#\d+\b|\b[A-Z]{2,8}-\d{1,6}\b", re.ASCII)
_COMPONENT = late(
    r"\b(?:[a-z]{1,40}[A-Z]\w{0,60}|[A-Z][a-z]{1,40}[A-Z]\w{0,60}|\w{1,40}_\w{1,60}|[A-Za-z]{2,40}-\w{1,40})\b",
    re.ASCII,
)
_SENTENCE_END = late(r"([.!?]['\")\]]{0,3})\s+(?=\S)")
_SECOND_SENTENCE = late(r"[.!?]['\")\]]{0,3}\s+[A-Z\"'(\[]")


class SentenceSubject(NamedTuple):
    """What a sentence is about, and may name: the artifact's body, project, kind and UTC day."""

    body: str
    project: str | None
    kind: str
    day: str


def words(text: str) -> int:
    """Counts words as JavaScript's `\\s` separates them."""
    if text.isascii() and text.isprintable():
        return len(text.split())
    return sum(1 for word in _JS_SPACE.split(js_trim(text)) if word)


def basename(project: str | None) -> str:
    """Returns the last part of a project path, as POSIX (and so Signet) defines it; empty if there is none."""
    return js_trim(project or "").rstrip("/").rpartition("/")[2]


def passes_signet(sentence: str, body: str, project: str | None) -> bool:
    """Returns whether a sentence passes Signet's rule (vectors: `sentence`): 12–48 words, terminal point, an anchor."""
    if js_trim(sentence) in LOW_SIGNAL or not MIN_WORDS <= words(sentence) <= MAX_WORDS:
        return False
    if not js_trim(sentence).endswith(_TERMINAL):
        return False
    return (
        signet_anchor(body, project) in sentence
        or _SIGNET_WORDS.search(sentence) is not None
        or _signet_file(sentence) is not None
    )


# Sentences that state that something was stored instead of what: Signet's, and the fallback below.
_TEMPLATE = late(
    r"Session .{1,200} captured durable (?:summary|transcript|compaction) context, preserved lineage metadata, and "
    r"|Compaction for .{1,200} preserved durable context, linked the active session state, and "
    r"|(?:In .{1,80} the (?:summary|transcript|compaction|file) of \d{4}-\d\d-\d\d"
    r"|The session of \d{4}-\d\d-\d\d left a \w{4,10}\.md that) "
    r"(?:(?:opens with|holds) \"|opens without heading|was saved without words)"
)


# Words that name nothing of a session.
_GENERIC = STOP_WORDS.union("app code follow-up follow-ups pre-existing project re-run repo session task test".split())
_LONG_WORD = late(r"[^\W_]{4,}")
_CJK_PAIR = late("(?=([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]{2}))")


def is_template(sentence: str) -> bool:
    """Returns whether a sentence is a form that states no outcome of its session."""
    said = js_trim(sentence)
    return not said or said in LOW_SIGNAL or _TEMPLATE.match(said) is not None


# Where the sentence of a session names what blocks it and what is left.
_REST = late(r"[;.,]\s+(?:blocked|open|next):\s")


def drop_rest(sentence: str) -> str:
    """Returns a session's sentence without what it left open: statements say that, as long as it is."""
    rest = _REST.search(sentence)
    return f"{sentence[: rest.start()]}." if rest else sentence


def signet_anchor(body: str, project: str | None) -> str:
    """Returns the text that Signet looks for first: project, else issue, path or file in the body, else `session`."""
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
    """Finds start and text of the first `name.ts`-like token of Signet, in linear time."""
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


def has_anchor(sentence: str, context: SentenceSubject) -> bool:
    """Returns whether the sentence names something of this session: project, path, issue, component in the body."""
    name = basename(context.project)
    if _is_distinctive(name) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", sentence):
        return True
    if _FILE.search(sentence) or _PATH.search(sentence) or _ISSUE.search(sentence):
        return True
    components = (match[0] for match in _COMPONENT.finditer(sentence))
    return any(name in context.body for name in components if name.casefold() not in _GENERIC)


def _is_distinctive(name: str) -> bool:
    """Returns whether a name distinguishes a project from words of any sentence."""
    return len(name) > int(name.isascii()) and name not in (".", "..") and name.casefold() not in _GENERIC


def passes_strict(sentence: str, *contexts: SentenceSubject) -> bool:
    """Checks what we write about a session: no form, a sound sentence for each of its texts, and two words of them."""
    if is_template(sentence) or not all(is_sound(sentence, context) for context in contexts):
        return False
    low, text = sentence.casefold(), "\n".join(context.body for context in contexts).casefold()
    names = _GENERIC.union(basename(context.project).casefold() for context in contexts)
    words_of_content = {*_LONG_WORD.findall(low), *_CJK_PAIR.findall(low)} - names
    # Another form of a word counts, too.
    return sum(word[:5] in text for word in words_of_content) > 1


def is_sound(sentence: str, context: SentenceSubject) -> bool:
    """Returns whether this is one sentence on one line, 12–48 words, with a terminal point and a concrete anchor."""
    if sentence != js_trim(sentence) or len(sentence) > 2000 or _CONTROL.search(sentence):
        return False
    if sentence in LOW_SIGNAL or not MIN_WORDS <= words(sentence) <= MAX_WORDS:
        return False
    if not sentence.endswith(_TERMINAL) or _SECOND_SENTENCE.search(sentence):
        return False
    return has_anchor(sentence, context)


def acceptable(sentence: str, context: SentenceSubject) -> bool:
    """Returns whether a stored sentence may be rendered: it is sound by our rule or passes Signet's."""
    return passes_signet(sentence, context.body, context.project) or is_sound(flatten(sentence), context)


def fallback(context: SentenceSubject) -> str:
    """Builds a true sentence about this session from its own words; `is_sound` and `is_template` for every input.

    It names the project (without one the file), the day, the first heading, request or line, and the size; it never
    invents.
    """
    kind = context.kind if context.kind in IMMUTABLE_KINDS else "file"
    place = usable_name(context.project)
    # A table or a fence opens nothing.
    lines = (line.strip() for line in context.body.split("\n", 400)[:400])
    lead = next((said for line in lines if not line.startswith(("```", "|", "---")) and (said := lead_of(line))), "")
    day = context.day
    subject = f"In {place} the {kind} of {day}" if place else f"The session of {day} left a {kind}.md that"
    size = words(context.body[:200_000])
    more = " or more" if len(context.body) > 200_000 else ""
    if not size:
        return f"{subject} was saved without words of its own, so only its name, times and links remain."
    beginning = f'opens with "{lead}"' if lead else "opens without heading or request"
    return (
        f"{subject} {beginning} and keeps {count_noun(context.body.count(chr(10)) + 1, 'line')} "
        f"and {size}{more} {'word' if size == 1 else 'words'} behind its link."
    )


def usable_name(project: str | None) -> str:
    """Returns the project's name if a sentence may use it as it is; else empty."""
    name = flatten(basename(project))
    usable = (
        name == basename(project)
        and _is_distinctive(name)
        and len(name) <= 60
        and words(name) <= 4
        and '"' not in name
        and not _SENTENCE_END.search(name)
        and any(c.isalnum() for c in name)
    )
    return name if usable else ""


_MARKUP = late(
    r"^(?:#{1,6}\s+|>\s*|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+|(?:User|Human|Assistant|Model|System)\s*:\s*)+"
)


LEAD_LENGTH = 120


def lead_of(line: str) -> str:
    """Returns a line as a sentence may quote it: its first sentence, without markup, at most twelve words."""
    # Emphasis is removed first: removed from a flattened text it could join two brackets.
    text = flatten(re.sub(r"[\"“”*~`]+|(?<!\w)_+|_+(?!\w)", "", _MARKUP.sub("", line[:400])))
    kept = " ".join(text.split()[:12])
    if len(kept) > LEAD_LENGTH:
        kept = kept[:LEAD_LENGTH].rpartition(" ")[0] or f"{kept[: LEAD_LENGTH - 1]}…"
    cut = len(kept) < len(text) and not kept.endswith("…")
    kept = _SENTENCE_END.sub(", ", kept.strip(" .,;:!?-|"))
    return (f"{kept} …" if cut else kept) if any(c.isalnum() for c in kept) else ""


def shorten(text: str, width: int) -> str:
    """Shortens a flattened text to at most `width` characters, between words if possible."""
    if len(text) <= width:
        return text
    kept = text[: width - 1]
    if " " in kept[width // 2 :] and text[width - 1] != " ":
        kept = kept.rpartition(" ")[0]
    return kept.rstrip(" .,;:!?-–—(\"'") + "…"


def flatten(text: str, limit: int = 1000) -> str:
    """Makes text fit for one line that can forge no row, link or marker; elsewhere than on a page it is as it was said.

    Control characters become spaces, what nobody sees is deleted, `[[ ]] <!-- -->` and what else would be a link, an
    image, a footnote, struck or hidden are split, backticks become quotes.
    """
    if not text.isprintable():
        text = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode("utf-8")
    text = drop_unseen(text, on_a_page=True)
    if "[" in text or "]" in text:
        text = re.sub(r"\[(?=\[)", "[ ", text)
        text = re.sub(r"\](?=[\](])|[!^](?=\[)", r"\g<0> ", text)
    text = text.replace("`", "'").replace("<!--", "<! --").replace("-->", "-- >")
    if "%%" in text or "~~" in text:
        text = re.sub(r"%(?=%)|(?<!~)~(?=~(?!~))", r"\g<0> ", text)
    if "$$" in text:
        text = re.sub(r"\$(?=\$)", "$ ", text)
    if "  " in text or text[:1] == " " or text[-1:] == " " or not text.isascii():
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip(" #$=~") + "…"


def flatten_cell(text: str, limit: int = 200) -> str:
    """Makes text fit for a column of a session log row: ` | ` would forge the next column."""
    return flatten(text, limit).replace(" | ", " ¦ ").replace(" |", " ¦").replace("| ", "¦ ")


def page_line(text: str, limit: int = 1000) -> str:
    """Flattens text for a page, on which a reader of Markdown must see it as it was said."""
    return escape(flatten(text, limit))


def page_cell(text: str, limit: int = 200) -> str:
    """Flattens text for a column of a page's row."""
    return escape(flatten_cell(text, limit))


def escape(line: str) -> str:
    """Escapes what Markdown or Obsidian would take for HTML or a tag; nothing a second time.

    Issues (`#12`) and web addresses stay.
    """
    if "<" in line:
        line = _HTML.sub(_add_backslash, line)
    if "#" in line:
        line = _SIGNS.sub(_escape_tag, line)
    return line


def unescape(markdown: str) -> str:
    """Returns a line of Markdown without the backslashes of `escape`."""
    return _ESCAPED.sub(r"\1", markdown) if "\\" in markdown else markdown


_ESCAPED = late(r"\\([<#])")
_BEFORE = r"(?P<before>(?<!\\)\\*+)"  # an odd number of backslashes escapes what follows
_HTML = late(rf"{_BEFORE}<(?=[A-Za-z/?]|![A-Za-z\[])")
# A tag of Obsidian contains something other than digits; nothing inside an address is one.
_SIGNS = late(
    r"https?://[\w-]++(?:\.[\w-]++)++[^\s<>]*+"
    rf"|{_BEFORE}(?P<behind>[0-9A-Za-z]?)(?P<signs>#++)"
    r"(?:(?=[0-9]*+[^\s0-9\u2000-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\])(?P<tag>))?"
)


def _add_backslash(found: re.Match[str]) -> str:
    before = found["before"]
    return found[0] if len(before) % 2 else f"{before}\\{found[0][len(before) :]}"


def _escape_tag(found: re.Match[str]) -> str:
    if found["tag"] is None:
        return found[0]
    escaped = found["behind"] or len(found["before"]) % 2  # after a letter no tag begins
    kept = "#" if escaped else ""
    return f"{found['before']}{found['behind']}{kept}" + r"\#" * (len(found["signs"]) - len(kept))
