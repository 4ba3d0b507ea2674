"""What a session came to, read off its transcript by rules: outcome, decisions, bounds, blockers, next steps, status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from signet_sync.digest.blocks import Passage, passages
from signet_sync.digest.cues import Cues, cues
from signet_sync.digest.lines import EDITORS, READERS, SHELLS
from signet_sync.digest.sentences import IS_CJK, is_question, overlap, sentences, split, stems
from signet_sync.digest.turns import Call, Message, Note, Turn, turns

Kind = Literal["decision", "constraint", "blocker", "next", "preference"]
Status = Literal["done", "open", "blocked", "aborted", "question-only"]

ITEM_LENGTH, ITEMS = 200, 24
KEPT = 400  # files and commands
SENTENCE_LENGTH, SENTENCE_LENGTH_CJK = 215, 130
TRIVIAL_LENGTH = 79
# Reports are parsed, nothing else: the best one, those nearly as good, and what is said last.
REPORTS, REPORT_TEXT = 12, 200_000
_GOOD = 0.9


class Stated(NamedTuple):
    """A statement worth keeping: what it is, as said, and the transcript's line (from 1) where it stands.

    `order` is the turn, so that a later one may take its place; `source` is the rule that found it.
    """

    kind: Kind
    text: str
    line: int
    order: int
    source: str


class Outcome(NamedTuple):
    """What a session came to.

    `told` are the passages that say it best, in their order; empty where nothing came out. `asked` is the first request
    that says more than a greeting. `edited` are the files that were edited, with how often, `commands` what was run, with
    whether its last run failed.
    """

    told: tuple[str, ...] = ()
    items: tuple[Stated, ...] = ()
    status: Status = "question-only"
    asked: str = ""
    edited: Mapping[str, int] = {}
    commands: Mapping[str, bool] = {}


@dataclass
class _Session:
    """The turns with what is looked up in them again and again."""

    turns: list[Turn]
    cues: Cues
    messages: list[tuple[int, Message]] = field(default_factory=list)
    edits: list[int] = field(default_factory=list)
    commits: list[tuple[int, str]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for place, turn in enumerate(self.turns):
            if isinstance(turn, Message):
                self.messages.append((place, turn))
            elif isinstance(turn, Call):
                if turn.tool in EDITORS:
                    self.edits.append(place)
                elif turn.tool in SHELLS:
                    self.runs.append(place)
                    self.commits += [(place, subject) for subject in _subjects(turn)]

    @property
    def last_edit(self) -> int:
        """The place of the last edit or commit, -1 where there is none."""
        return max([*self.edits, *(place for place, _ in self.commits), -1])

    def said(self, speaker: str) -> list[tuple[int, Message]]:
        return [(place, one) for place, one in self.messages if one.speaker == speaker]

    def edited(self) -> dict[str, int]:
        """The files that were edited without failing, with how often; at most `KEPT`."""
        found: dict[str, int] = {}
        for place in self.edits:
            call = self.turns[place]
            if isinstance(call, Call) and not call.failed:
                for path in _PATH.findall(call.detail)[:20]:
                    if path in found or len(found) < KEPT:
                        found[path] = found.get(path, 0) + 1
        return found

    def commands(self) -> dict[str, bool]:
        """What was run, in order of the last run, with whether that failed; at most `KEPT`."""
        found: dict[str, bool] = {}
        for place in self.runs:
            call = self.turns[place]
            if isinstance(call, Call) and call.detail:
                found.pop(call.detail, None)
                found[call.detail] = call.failed
                if len(found) > KEPT:
                    del found[next(iter(found))]
        return found

    def before(self, place: int, speaker: str) -> Message | None:
        """The last message of a speaker before a turn."""
        found = [one for at, one in self.messages if at < place and one.speaker == speaker]
        return found[-1] if found else None


_PATH = re.compile(r"[^\s,'\"]*[/.][^\s,'\"]*|\w+")
_COMMIT = re.compile(r"""git\b[^|;&]{0,80}\bcommit\b[^|;&]{0,80}?-\w*m\s*(?:"([^"\n]{3,300})|'([^'\n]{3,300})|\$\(cat <<'?EOF'?\s*([^\n]{3,300}))""")
_PULL = re.compile(r"""\bgh pr create\b[^|;&]{0,200}?--title\s+(?:"([^"\n]{3,300})|'([^'\n]{3,300}))""")


def _subjects(call: Call) -> Iterator[str]:
    for pattern in (_COMMIT, _PULL):
        for found in pattern.finditer(call.detail):
            subject = next(filter(None, found.groups()), "").split("\\n")[0].strip()
            if subject:
                yield subject


def outcome(transcript: str) -> Outcome:
    """The outcome of a (sanitized) transcript. Total, deterministic, linear."""
    session = _Session(turns(transcript), cues())
    users, assistants = session.said("user"), session.said("assistant")
    asked = _request(users)
    if not assistants and not users:
        return Outcome(edited=session.edited(), commands=session.commands())
    reports = _reports(session)
    read = {place: passages(message.text, session.cues) for place, message in reports}
    stated = [*_of_sections(session, reports, read), *_of_person(session, reports), *_of_assistant(session, reports, read)]
    stated = _standing(session, stated, reports, read)
    if not any(item.kind == "next" for item in stated):
        stated += _of_prose(session, reports, read, "next", stated)
    if not any(item.kind == "blocker" for item in stated):
        stated += _of_prose(session, reports, read, "blocker", stated)[:1]
    stated = _distinct(stated)
    status = _status(session, stated, reports, read)
    stated = [item for item in stated if item.kind != "blocker" or status == "blocked"]
    told = _told(session, reports, read, stated, asked, status)
    return Outcome(told, tuple(stated[:ITEMS]), status, asked, session.edited(), session.commands())


def _request(users: Sequence[tuple[int, Message]]) -> str:
    """The first thing asked that says more than a greeting."""
    lines = (s for _, message in users[:4] for s, _ in sentences(message.text))
    return next((line for line in lines if len(stems(line)) >= 2), "")


# ── where the session reports ──


def _reports(session: _Session) -> list[tuple[int, Message]]:
    """The assistant's messages that tell what came out, in order; the last of all is among them."""
    found = session.said("assistant")
    if not found:
        return []
    best = [(_worth(session, place, message), place, message) for place, message in found]
    top = max(best)
    chosen = {place: message for score, place, message in best if place >= top[1] or score >= _GOOD}
    kept: dict[int, Message] = {}
    size = 0
    for place in sorted(chosen, reverse=True):
        size += len(chosen[place].text)
        if len(kept) >= REPORTS or size > REPORT_TEXT:
            break
        kept[place] = chosen[place]
    kept.setdefault(top[1], top[2])
    return sorted(kept.items())


_LABEL_LINE = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-*+][ \t]+)?(?:\*\*|__)?([^\n*_:：|`]{2,60}?)(?:\*\*|__)?\s*[:：]?(?:\*\*|__)?[ \t]*(?=$|\s)", re.MULTILINE)


def _has_label(cues: Cues, text: str) -> bool:
    lines = (line for line in text.split("\n")[:200] if line.lstrip().startswith(("#", "**", "__")) or line.rstrip().endswith((":", "：", "**")))
    for line in lines:
        if cues.kind_of(line.strip(" #*_:：")) in ("next", "blocker", "decision", "constraint", "done", "state"):
            return True
    return False


def _best(session: _Session, reports: Sequence[tuple[int, Message]]) -> int:
    """The place of the report itself: the best of them."""
    if not reports:
        return -1
    return max((_worth(session, place, message), place) for place, message in reports)[1]


def _worth(session: _Session, place: int, message: Message) -> float:
    """How much a message looks like a report: long, with labels, behind the last edit and run, near the end."""
    text = message.text
    length = len(text) * (2.5 if IS_CJK.search(text[:400]) else 1)
    score = min(length, 600) / 600 + 0.5 * place / (len(session.turns) or 1)
    score += 0.6 if _has_label(session.cues, text) else 0.0
    score += 0.3 if place > session.last_edit else 0.0
    score += 0.3 if place > max([*session.runs, -1]) else 0.0
    score -= 0.2 if len(text) < 200 and is_question(text.strip().split("\n")[-1]) else 0.0
    return score


# ── what sections list ──

_OF_LABEL: dict[str, Kind] = {
    "next": "next", "blocker": "blocker", "decision": "decision", "constraint": "constraint", "preference": "preference",
}  # fmt: skip
_OF_MARK: dict[str, Kind] = {"open": "next", "blocked": "blocker"}


def _of_sections(
    session: _Session, reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]]
) -> list[Stated]:
    found: list[Stated] = []
    for place, message in reports:
        for passage in read[place]:
            if passage.form == "heading" or passage.struck or passage.mark == "done":
                continue
            kind = _OF_LABEL.get(session.cues.kind_of(passage.label))
            if session.cues.kind_of(passage.label) in ("state", "") and passage.mark in _OF_MARK:
                kind = _OF_MARK[passage.mark]
            if kind is None:
                continue
            texts = [passage.text] if passage.form != "paragraph" else split(passage.text)
            for text in texts[:4]:
                if is_question(text) or session.cues.has("offer", text) or _nothing(text):
                    continue
                found.append(Stated(kind, text, message.line + passage.line, place, "section"))
    return found


_NOTHING = re.compile(
    r"^\W*(?:none|nothing|n/?a|no (?:blockers?|open points?|next steps?)|keine?|nichts|aucun\w*|rien|ningun\w*|nada|nessun\w*|niente|нет|ничего|无|没有|なし|ありません|없음)\b.{0,40}$",
    re.IGNORECASE,
)


def _nothing(text: str) -> bool:
    return _NOTHING.match(text) is not None


# ── what the person says ──

_ACK = re.compile(
    r"^(?:\[[^\]]{1,40}\]|ok(?:ay)?|yes|yep|yeah|no|nope|nice|good|great|perfect|thanks?|thank you|thx|cool|right|sure|hm+|ah|oh|well|and|also|but|so|ja|nein|gut|danke|super|oui|non|merci|sí|si|vale|gracias|sim|não|да|нет|спасибо|好的?|嗯|不|はい|いえ|ありがとうございます|네|아니요?)(?!\w)[\s,.!;:–—-]*",
    re.IGNORECASE,
)
_PICK = re.compile(
    r"^(?:(?:let['’]?s (?:do|go with|take)|go with|use|take|i(?:'d| would) (?:go with|take)|option|variant|variante|opci[oó]n|opção|opzione|вариант|方案|オプション|choose|nimm)\s+)*"
    r"(?:the\s+)?(?:(?:option|variant|variante|opción|opção|opzione|вариант|方案|第)\s*)?\(?(?P<pick>\d|[a-e]|[一二三四]|first|second|third|former|latter|both|erste|zweite|première|seconde|primera|segunda)\)?(?:つ目|番|个)?(?:の方)?(?=で|$|[\s.,;:!)。，、])",
    re.IGNORECASE,
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "former": 1, "latter": 2, "erste": 1, "zweite": 2, "première": 1, "seconde": 2, "primera": 1, "segunda": 2, "一": 1, "二": 2, "三": 3, "四": 4}
_WISH = re.compile(r"^(?:can|could|would|will) you\b|^(?:pls|please)\b|^(?:kannst|könntest|würdest) du\b|^(?:peux|pourrais)-tu\b|^puedes\b|^pode\b|^puoi\b", re.IGNORECASE)
_IMPERATIVE_WORK = re.compile(
    r"^(?:(?:then|now|and|please|pls|also|just)\s+)*(?:commit|push|run|show|test|check|look|find|fix|open|print|explain|tell|try|start|continue|go on|proceed|rerun|deploy|merge|ship|write|create|add|do the|can you|have a|give|list|read|review|search|investigate|figure|debug|see)\b",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
    r"\bi(?:['’]d| would) (?:go|use|put|take|keep|turn|make|suggest|recommend|prefer|do|add|move|split|rather|start)\b|\bi (?:suggest|propose|recommend)\b|\bi can\b|\bmy (?:suggestion|recommendation|proposal)\b|\bich würde\b|\bich schlage\b|\bje propose\b|\bje (?:mettrais|ferais|prendrais)\b|\bpropongo\b|\byo (?:usaría|haría|pondría)\b|\bsugiero\b|\bsugiro\b|\beu (?:usaria|faria)\b|\bproporrei\b|\bя бы\b|\bпредлагаю\b|建议|我会用|提案|と思います|がよいと|추천|제안",
    re.IGNORECASE,
)


def _of_person(session: _Session, reports: Sequence[tuple[int, Message]]) -> list[Stated]:
    found: list[Stated] = []
    users = session.said("user")
    first = users[0][0] if users else -1
    report = _best(session, reports)
    for place, message in users:
        previous = session.before(place, "assistant")
        if message.text.lstrip().startswith(("#", "<")) and len(message.text) > 4000:
            continue
        found += _of_turn(session, place, message, previous, first=place == first, closing=place > report >= 0)
    return found


def _of_turn(
    session: _Session, place: int, message: Message, previous: Message | None, *, first: bool, closing: bool
) -> Iterator[Stated]:
    cues = session.cues
    asked = previous is not None and _asks(previous.text, cues)
    command = _last_command(session, place)
    taken = False
    for number, (sentence, at) in enumerate(sentences(message.text)):
        if number > 40:
            return
        bare = _ACK.sub("", _ACK.sub("", sentence)).strip()
        line = message.line + at
        text = bare or sentence
        question = is_question(sentence) and not _WISH.match(text)
        if question or _is_quote(sentence):
            continue
        if cues.has("habit", text) or (cues.has("medium", text) and (cues.has("bound", text) or _negated(text) or "keep" in text.lower())):
            yield Stated("preference", text, line, place, "habit")
            continue
        if number == 0 and not first and previous is not None and len(stems(sentence)) <= 14:
            picked = _picked(sentence, previous.text)
            if picked:
                yield Stated("decision", picked, line, place, "pick")
                taken = True
                continue
        if cues.has("bound", text) and not _replaces(text) and not (closing and cues.has("stop", text)):
            if command and _names_command(text, command):
                yield Stated("preference", text, line, place, "habit")
            else:
                yield Stated("constraint", text, line, place, "bound")
            continue
        if first:
            if re.search(r"\b(?:switch|drop|replace|move)\b.{1,80}\b(?:to|by|with|for)\b", text, re.IGNORECASE) and cues.has("correction", text):
                yield Stated("decision", text, line, place, "first")
            continue
        if closing and cues.has("later", text):
            yield Stated("next", text, line, place, "person")
            continue
        if closing and cues.has("blocked", text):
            yield Stated("blocker", text, line, place, "person")
            continue
        if closing and (cues.has("no", sentence) or cues.has("greeting", sentence)) and len(stems(text)) < 4:
            continue
        if number == 0 and cues.has("yes", sentence) and previous is not None and len(stems(bare)) <= 3:
            proposal = _proposal(previous.text)
            if proposal and not closing:
                whole = f"{proposal} ({bare})" if len(stems(bare)) >= 2 else proposal
                yield Stated("decision", whole, line, place, "yes")
                taken = True
                continue
        if cues.has("correction", text) and len(stems(bare)) >= 2 and not _IMPERATIVE_WORK.match(text):
            yield Stated("decision", text, line, place, "correction")
            taken = True
            continue
        if asked and not taken and number == 0 and len(stems(bare)) >= 2 and not _IMPERATIVE_WORK.match(text):
            yield Stated("decision", text, line, place, "reply")
            taken = True


def _asks(text: str, cues: Cues) -> bool:
    """Whether a message ends by asking for a choice."""
    end = text.rstrip()[-600:]
    last = split(" ".join(end.split()))[-3:]
    return any(is_question(one) for one in last) or any(_PROPOSES.search(one) for one in last)


def _last_command(session: _Session, place: int) -> str:
    for at in range(place - 1, max(-1, place - 8), -1):
        turn = session.turns[at]
        if isinstance(turn, Call) and turn.tool in SHELLS:
            return turn.detail
    return ""


_TOOLISH = re.compile(r"\b[a-z][a-z0-9_+-]{1,20}\b")


def _names_command(text: str, command: str) -> bool:
    """Whether the person tells of the very program that was just run: how to work, no bound of the project."""
    programs = {part.strip().split(" ")[0] for part in re.split(r"&&|\|\||;|\|", command)}
    return any(len(name) > 1 and re.search(rf"\b(?:use|run|call|with)\b[^.]*\b{re.escape(name)}\b", text, re.IGNORECASE) for name in programs)


_NEGATED = re.compile(r"\bno\b|\bnot\b|n['’]?t\b|\bwithout\b|\bkeine?\b|\bohne\b|\bnicht\b|\bsans\b|\bpas de\b|\bsin\b|\bsem\b|\bsenza\b|\bбез\b|\bне\b|不|别|ないで|なし|말고|마세요", re.IGNORECASE)


def _negated(text: str) -> bool:
    return _NEGATED.search(text) is not None


def _replaces(text: str) -> bool:
    """Whether a sentence says what to do and only in passing what not: "fix the hook, don't add a sleep"."""
    head, comma, tail = text.partition(",")
    return bool(comma) and not cues().has("bound", head) and len(stems(head)) >= 2 and bool(_IMPERATIVE.match(head)) and cues().has("bound", tail)


_IMPERATIVE = re.compile(r"^(?:please\s+)?(?:fix|use|take|make|keep|put|move|store|write|add|do|go|set|drop|remove|rename|split|change|return|let|leave|handle|log|cache|throw|raise|show|send|call|read|load)\b", re.IGNORECASE)


def _is_quote(sentence: str) -> bool:
    bare = sentence.strip()
    return bare.startswith(('"', "“", "„", "«", "「", ">")) and (bare.endswith(('"', "”", "“", "»", "」")) or "they say" in bare)


_OPTION = re.compile(
    r"^(\s*)(?:[-*+]\s+)?(?:\*\*)?(?:option\s+|variante?\s+|opci[oó]n\s+|opção\s+|opzione\s+|вариант\s+|方案\s*|案\s*)?"
    r"\(?([1-9a-eA-E一二三四])[.):、：](?:\*\*)?\s*(\S.*)$",
    re.IGNORECASE,
)
_INLINE_OPTION = re.compile(r"\(([1-4a-d])\)\s*([^()]{4,160}?)(?=[,;]?\s*(?:or\s+|oder\s+|and\s+|ou\s+|o\s+)?\([1-4a-d]\)|[.?]|$)")


def _options(text: str) -> list[tuple[str, str]]:
    """The options that a message lists last: by what they are called there, and what each says."""
    lists: dict[int, list[tuple[str, str]]] = {}
    latest = -1
    for line in text.split("\n"):
        option = _OPTION.match(line)
        if option is None:
            continue
        depth, name = len(option[1]), option[2].lower()
        if name in ("1", "a", "一") or depth not in lists:
            lists[depth] = []
            latest = depth
        lists[depth].append((name, option[3].strip()))
    if lists:
        return lists[latest]
    return [(name.lower(), said.strip(" ,;")) for name, said in _INLINE_OPTION.findall(text)]


def _picked(sentence: str, previous: str) -> str:
    """The option that a reply chooses, with what the reply adds to it; empty where it chooses none."""
    bare = _ACK.sub("", sentence).strip()
    pick = _PICK.match(bare)
    options = _options(previous)
    if pick is None or not options:
        return ""
    name = pick["pick"].lower()
    number = _ORDINALS.get(name)
    if number is None and name.isdigit():
        number = int(name)
    said = next((text for key, text in options if key == name or key == str(number)), "")
    if not said and number is not None and number <= len(options):
        said = options[number - 1][1]
    if not said:
        return ""
    said = re.sub(r"[*`]", "", said).strip().rstrip(".;:,")
    rest = bare[pick.end() :].strip(" .,;:!-–—")
    return f"{said} ({rest})" if len(stems(rest)) >= 2 else said


def _proposal(text: str) -> str:
    """The sentence in which a message proposed something, the last such one."""
    found = [s for s, _ in sentences(text) if _PROPOSES.search(s) and not is_question(s)]
    if found:
        return re.sub(r"[*`]", "", found[-1])
    asked = [s for s, _ in sentences(text) if is_question(s)]
    return ""  if not asked else ""


# ── what the assistant says ──


def _of_assistant(
    session: _Session, reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]]
) -> list[Stated]:
    found = []
    for place, message in session.said("assistant"):
        for sentence, at in sentences(message.text):
            if len(sentence) <= 300 and session.cues.has("choice", sentence) and not is_question(sentence):
                if re.search(r"\bif\b|\bwould\b|\bcould\b|\bwürde\b", sentence[:40], re.IGNORECASE):
                    continue
                found.append(Stated("decision", sentence, message.line + at, place, "choice"))
    return found


def _of_prose(
    session: _Session, reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]], kind: Kind, stated: Sequence[Stated]
) -> list[Stated]:
    """Next steps and blockers in running text of what was reported last."""
    cue = "later" if kind == "next" else "blocked"
    found = []
    best = _best(session, reports)
    for place, message in reports:
        if place < best:
            continue
        for passage in read[place]:
            if passage.form in ("heading", "row") or passage.mark == "done":
                continue
            label = session.cues.kind_of(passage.label)
            if label in ("plan", "decision"):
                continue
            for sentence in split(passage.text):
                if is_question(sentence) or session.cues.has("offer", sentence) or not session.cues.has(cue, sentence):
                    continue
                found.append(Stated(kind, sentence, message.line + passage.line, place, "prose"))
    return found


# ── what stands at the end ──


def _standing(
    session: _Session, stated: Sequence[Stated], reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]]
) -> list[Stated]:
    """Without what was taken back, replaced, done or declined later."""
    users = session.said("user")
    left = list(stated)
    for place, message in users:
        opening = next((s for s, _ in sentences(message.text)), "")
        if session.cues.has("retract", opening):
            # It takes back the decision before it.
            earlier = [item for item in left if item.kind == "decision" and item.order < place]
            last = max((item.order for item in earlier), default=-1)
            since = [at for at, _ in users if last < at < place]
            if earlier and len(since) <= 1:
                left = [item for item in left if not (item.kind == "decision" and item.order == last)]
    next_lists = sorted({item.order for item in left if item.kind in ("next", "blocker") and item.source == "section"})
    if len(next_lists) > 1:
        latest = next_lists[-1]
        left = [item for item in left if not (item.source == "section" and item.kind in ("next", "blocker") and item.order < latest and not _told_again(session, item))]
    kept = []
    for item in left:
        if item.kind in ("next", "blocker") and _was_done(session, item):
            continue
        if item.kind == "next" and _declined(session, item):
            continue
        if item.kind == "decision" and _replaced(item, left):
            continue
        kept.append(item)
    return kept


def _told_again(session: _Session, item: Stated) -> bool:
    return False


def _was_done(session: _Session, item: Stated) -> bool:
    """Whether a later report or commit says that it was done."""
    for place, message in session.said("assistant"):
        if place <= item.order:
            continue
        for sentence, _ in sentences(message.text):
            if session.cues.has("outcome", sentence) and not session.cues.has("later", sentence) and overlap(item.text, sentence) >= 0.6 and len(stems(item.text) & stems(sentence)) >= 2:
                return True
    if item.kind == "blocker":
        for place, message in session.said("user"):
            if place > item.order and session.cues.has("solved", message.text[:400]):
                return True
    return any(place > item.order and overlap(item.text, subject) >= 0.7 and len(stems(item.text) & stems(subject)) >= 2 for place, subject in session.commits)


def _declined(session: _Session, item: Stated) -> bool:
    for place, message in session.said("user"):
        if place > item.order:
            for sentence, _ in sentences(message.text):
                if session.cues.has("no", sentence) and len(stems(sentence) & stems(item.text)) >= 2:
                    return True
    return False


def _replaced(item: Stated, others: Sequence[Stated]) -> bool:
    """Whether a later decision says the same about another value."""
    for other in others:
        if other.kind == "decision" and other.order > item.order and overlap(item.text, other.text) >= 0.35:
            if re.search(r"\binstead\b|\brather\b|\bnot\b|\bactually\b|\bno longer\b|statt|au lieu|en vez|em vez|invece|вместо|而不是|改|ではなく|대신", other.text, re.IGNORECASE):
                return True
    return False


def _distinct(stated: Sequence[Stated]) -> list[Stated]:
    """Each thing once, as short as an item may be: the later and the more structured one stays."""
    ranked = sorted(stated, key=lambda item: (item.source != "section", -item.order))
    kept: list[Stated] = []
    for item in ranked:
        text = item_text(item.text)
        if not text or len(stems(text)) < 1:
            continue
        if any(_same(text, other.text) for other in kept):
            continue
        kept.append(item._replace(text=text))
    return sorted(kept, key=lambda item: (item.order, item.line))


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold() or (overlap(one, other) >= 0.75 and len(stems(one) & stems(other)) >= 2)


_TRIM = re.compile(r"^[\s\-–—•·*:,.;]+|[\s*:,;]+$")


def item_text(text: str) -> str:
    """A statement as an item shows it: one line without Markdown, at most `ITEM_LENGTH` characters, whole clauses."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = _TRIM.sub("", re.sub(r"\*\*|__|`", "", " ".join(text.split())))
    if len(text) <= ITEM_LENGTH:
        return text
    cut = max(text.rfind(mark, 60, ITEM_LENGTH) for mark in (". ", "; ", ", ", ": ", "。", "，", "、", " - ", " – "))
    cut = cut if cut > 0 else text.rfind(" ", 60, ITEM_LENGTH)
    return text[: cut if cut > 0 else ITEM_LENGTH].rstrip(" ,;:-–")


# ── status ──


def _status(
    session: _Session, stated: Sequence[Stated], reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]]
) -> Status:
    cues = session.cues
    users = session.said("user")
    worked = bool(session.edits or session.commits)
    last_user = users[-1] if users else None
    if not worked and _only_asked(session, users):
        return "question-only"
    last_edit = session.last_edit
    interrupted = [place for place, turn in enumerate(session.turns) if isinstance(turn, Note) and turn.kind == "interrupted"]
    if interrupted and interrupted[-1] > max([place for place, _ in session.said("assistant")] or [-1]) - 1 and interrupted[-1] > last_edit:
        return "aborted"
    if last_user is not None and last_user[0] > last_edit and any(cues.has("stop", s) for s, _ in sentences(last_user[1].text)):
        reported = any(last_edit < place < last_user[0] for place, message in reports if _has_label(cues, message.text))
        if not reported and not any(item.kind == "blocker" for item in stated):
            return "aborted"
    if any(item.kind == "blocker" for item in stated):
        return "blocked"
    best = _best(session, reports)
    for place, _ in reports:
        if place < best:
            continue
        for passage in read[place]:
            if passage.mark == "open":
                return "open"
            if cues.kind_of(passage.label) in ("next", "plan"):
                continue
            if any(cues.has("unfinished", s) for s in split(passage.text) if not is_question(s)):
                return "open"
    if any(item.kind == "next" and _MUST_FOLLOW.search(item.text) for item in stated):
        return "open"
    return "done"


_MUST_FOLLOW = re.compile(r"\bdeploy\b|\bthe (?:other|remaining|rest)\b|\bfinish\b|\bcomplete\b|\bmerge\b|\breviewed?\b|\brest(?:liche|lichen)?\b|\bübrigen\b|\bles autres\b|\blos demás\b|остальн|其余|剩下的|残りの|나머지", re.IGNORECASE)
_ASKING = re.compile(r"^(?:what|why|how|when|where|who|which|is|are|does|do|did|can|could|should|would|was|were|explain|tell me|whats|hows|wie|was|warum|wann|wo|wer|welche\w*|ist|sind|kann|comment|pourquoi|quel\w*|qu['’]|est-ce|cómo|por qué|qué|cuál\w*|cuándo|como|por que|o que|qual|come|perché|cosa|quale|как|почему|что|зачем|когда|где|какой|怎么|为什么|什么|如何|是不是|どう|なぜ|何|어떻게|왜|무엇)", re.IGNORECASE)


def _only_asked(session: _Session, users: Sequence[tuple[int, Message]]) -> bool:
    """Whether nothing was to be done: greetings, questions, and what is said between them."""
    if len(session.runs) > 3:
        return False
    if not any(isinstance(turn, Call) for turn in session.turns) and sum(len(stems(m.text)) for _, m in users) <= 8:
        return True
    questions = 0
    for _, message in users:
        for sentence, _ in sentences(message.text):
            bare = _ACK.sub("", sentence).strip()
            if is_question(sentence) or _ASKING.match(bare):
                questions += 1
            elif _IMPERATIVE_WORK.match(bare) or _IMPERATIVE.match(bare):
                return False
    return questions > 0


# ── the sentence ──


class _Candidate(NamedTuple):
    score: float
    order: tuple[int, int, int]
    text: str


_FIGURE = re.compile(r"\d")


def _told(
    session: _Session, reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]], stated: Sequence[Stated], asked: str, status: Status
) -> tuple[str, ...]:
    """The passages that say what came out, best ones chosen, in their order."""
    candidates = list(_candidates(session, reports, read, stated, asked))
    if not candidates:
        return ()
    cjk = bool(IS_CJK.search(candidates[0].text))
    room = SENTENCE_LENGTH_CJK if cjk else SENTENCE_LENGTH
    best = max(candidates)
    chosen = [best]
    used = set(stems(best.text))
    size = len(best.text)
    for candidate in sorted(candidates, reverse=True)[1:]:
        if len(chosen) >= 3 or size + len(candidate.text) + 2 > room:
            continue
        if candidate.score < 0.5 * best.score or len(stems(candidate.text) - used) < 2:
            continue
        chosen.append(candidate)
        used |= stems(candidate.text)
        size += len(candidate.text) + 2
    return tuple(candidate.text for candidate in sorted(chosen, key=lambda one: one.order))


def _candidates(
    session: _Session, reports: Sequence[tuple[int, Message]], read: dict[int, list[Passage]], stated: Sequence[Stated], asked: str
) -> Iterator[_Candidate]:
    best = _best(session, reports)
    led: set[str] = set()
    kept = {item_text(item.text).casefold() for item in stated if item.kind in ("next", "blocker")}
    for place, _ in reports:
        if place < best:
            continue
        position = 0
        for number, passage in enumerate(read[place]):
            label = session.cues.kind_of(passage.label)
            if passage.form == "heading" or label in ("next", "plan", "preference") or passage.struck:
                continue
            lead = passage.label if passage.label and not label and passage.label not in led and passage.label != passage.heading else ""
            for part, sentence in enumerate(split(passage.text)[:6]):
                text = sentence.strip()
                if lead and not part:
                    led.add(lead)
                    text = f"{lead}: {text}"
                if is_question(text) or session.cues.has("offer", text) or session.cues.has("meta", text) or len(stems(text)) < 2:
                    continue
                if text.endswith((":", "：")) or item_text(text).casefold() in kept:
                    continue
                score = 3 / (1 + 0.35 * position) + 2 * overlap(text, asked) * min(1.0, len(stems(text) & stems(asked)) / 2)
                score += 0.6 if session.cues.has("outcome", text) else 0.0
                score += 0.4 if _FIGURE.search(text) else 0.0
                score += 0.5 if label in ("done",) else 0.0
                score -= 1.0 if passage.form == "row" else 0.0
                score -= 0.5 if place > best else 0.0
                score -= 1.2 if session.cues.has("later", text) else 0.0
                position += 1
                yield _Candidate(score, (place, number, part), text)
    for place, subject in session.commits[-3:]:
        yield _Candidate(0.5, (place, 0, 0), subject)
