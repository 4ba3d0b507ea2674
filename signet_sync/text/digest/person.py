"""Extracts what the person stated: decisions, constraints, preferences, postponed steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import Dialogue, Kind, OutcomeItem
from signet_sync.text.digest.replies import asks, asks_for_fact, chosen_option, completed, proposal
from signet_sync.text.digest.sentences import is_question, stems
from signet_sync.text.digest.statements import (
    POINTS_BACK,
    SentenceContext,
    bare,
    is_ack,
    is_errand,
    kind_by_rules,
    on_topic,
)

_SENTENCES = 40  # per turn; a longer one is not conversation
_CLEAR = 6  # stems; a choice with so many says what it is about
_SHORT = 4  # stems; a reference with fewer cannot be understood alone
_HINGE = late(
    r"^(?:but|however|only|just|aber|nur|allerdings|mais|pero|mas|però|ma|но|только|不过|但|只是|ただ|でも|하지만|다만"
    r"|단)(?!\w)[\s,，]*|^(?:不过|但是?|ただし?)",
    re.IGNORECASE,
)

_CHOOSES = late(
    r"\b(?:use|make|go with|take|keep|instead|rather|nimm|lieber|usa|mejor|plutôt|meglio|melhor)\b|лучше|改|用|にし",
    re.IGNORECASE,
)
# "The binary must stay below 4 MB, can you check that?": a statement, then a question.
_THEN_ASKS = late(
    r"(.{20,300}?),\s+(?:(?:can|could|would|will|did|do|is|are) (?:you|we|that|this|it)|right|ok|kannst du|peux-tu|puedes)\b[^,]*\?$",
    re.IGNORECASE,
)
_AND_ALSO = late(
    r",? (?:and|und|et|y|e|и) (?=(?:we|it|they|the|no|never|nothing|don['’]?t|it['’]?s|wir|kein\w*|nicht|on|pas|no|no se|não|non|мы|нельзя)\b)",
    re.IGNORECASE,
)
# "Put it on the list", "take the simple one": only the turn before names the object.
_WHICH_ONE = late(
    r"(?:(?:ok|yes|then|just|so|and|please|no),? )*(?:do|put|make|take|keep|leave|drop|use|move|give|try|mark|set|write|add)"
    r" (?:it|that|this|them|both|those|these|the \w+ one)\b",
    re.IGNORECASE,
)
# "it takes one build", "that must hold for both": only the turn before names the subject.
_NO_SUBJECT = late(
    r"(?:(?:it|they|this|that|these|those) (?:\w+ly )?(?:is|are|was|has|have|had|must|may|might|can|cannot|should|will|would"
    r"|needs?|takes?|holds?|stays?|goes|does|do|ought)\b|(?:that|it)['’]?s (?!(?:the|a|an|our) )|(?:es|das|dies) (?:muss|darf|soll|ist|bleibt)\b"
    r"|(?:cela|ça) (?:doit|est|ne)\b|(?:eso|esto) (?:tiene|debe|es|no)\b|(?:isso|isto) (?:tem|deve|é|não)\b|(?:questo|ciò) (?:deve|è|non)\b)",
    re.IGNORECASE,
)
# "Go on with it, a copy is fine": it allows what the assistant is about to do.
_GOES_ON = late(
    r"(?:(?:ok|okay|yes|then|just|so|please|and),? )*(?:go (?:on|ahead)|carry on|proceed|mach weiter|weiter so|sigue|adelante)\b"
    r"(?: (?:with|and do) (?:it|that|this))?",
    re.IGNORECASE,
)
# "Ben owns the schema, so send him the summary": what follows from it is for this session.
_SO = late(
    r"(.{20,}?\S),\s+so\s+(?:please\s+)?(?:write|tell|send|make|do|don['’]?t|keep|add|ask|put|give|let|he|she|they)\b.*",
    re.IGNORECASE,
)
_NAMELESS = late(
    r"^\W*(?:(?:delete|remove|drop|keep|skip|leave|add|fix|merge|revert|rename|change|update)(?: (?:it|them"
    r"|that|this))?"
    r"|both|either|neither|any|all|that|this|it|same|do (?:it|that|both)|beides?|alles?|les deux"
    r"|ambos|ambas|os dois|as duas"
    r"|entramb[ei]|оба|обе|都|两个都|両方|どちらも|둘 다)\W*$",
    re.IGNORECASE,
)


def statements_of_person(dialogue: Dialogue, report: int) -> Iterator[OutcomeItem]:
    """Yields the statements of each of the person's turns; `report` is where the assistant reported."""
    first = dialogue.users[0][0] if dialogue.users else -1
    # A prompt that is given again and again, as agents in a loop get it, is classified once.
    kinds: dict[SentenceContext, Kind | None] = {}
    for place, message in dialogue.some_users:
        if len(message.text) > 4000 and message.text.lstrip().startswith(("#", "<")):
            continue
        yield from _PersonTurn(
            dialogue, place, first=place == first and dialogue.before(place) is None, closing=place > report >= 0,
            kinds=kinds,
        ).stated()  # fmt: skip


class _PersonTurn:
    """One turn of the person, read sentence by sentence."""

    def __init__(
        self,
        dialogue: Dialogue,
        place: int,
        *,
        first: bool,
        closing: bool,
        kinds: dict[SentenceContext, Kind | None],
    ) -> None:
        self._talk, self._place, self._kinds = dialogue, place, kinds
        before = None if first else dialogue.before(place)
        after = dialogue.after(place)
        self._previous = before[1].text if before else ""
        # A message after a call does not confirm what was said before it.
        self._following = after[1].text if after and after[0] == place + 1 else ""
        reply = before is not None and asks(self._previous)
        facts, whether = asks_for_fact(self._previous) if reply else (False, False)
        self._context = SentenceContext(
            "", first=first, closing=closing, reply=reply, previous=self._previous,
            facts=facts, whether=whether, command=dialogue.command_before(place),
        )  # fmt: skip
        self._said = dialogue.sentences_of(place)[:_SENTENCES]

    def stated(self) -> list[OutcomeItem]:
        at = 0
        stated: list[OutcomeItem] = []
        if self._previous and self._said:
            stated += self._opening()
            at = self._taken
        while at < len(self._said):
            sentence, line = self._said[at]
            if is_question(sentence) and (split := _THEN_ASKS.match(sentence)):
                sentence = split[1]
            kind = self._kind(sentence, opens=at == 0)
            if kind:
                text = bare(sentence) or sentence
                halves = _AND_ALSO.split(text, maxsplit=1) if kind == "constraint" else []
                if len(halves) > 1 and all(self._kind(one) == kind for one in halves):
                    stated += [OutcomeItem(kind, one, line, self._place, "bound") for one in halves]
                    at += 1
                    continue
                if kind == "preference" and at and len(stems(text)) <= 2 and not is_question(self._said[at - 1][0]):
                    # "Conventional commits, no scope. I always want it like that."
                    before = self._said[at - 1][0]
                    stated = [one for one in stated if one.text != bare(before)]
                    text = f"{before} {text}"
                if kind == "constraint" and (subject := self._subject(at, text)):
                    text = f"{subject} {text}"
                    stated = [one for one in stated if one.text != bare(subject)]
                elif kind == "decision" and at == 0 and self._reason():
                    text = ""
                elif kind == "decision" and at == 0:
                    text = self._whole(text)
                    at = max(at, self._taken - 1)
                if kind in ("constraint", "next") and _NO_SUBJECT.match(text):
                    text = text if self._context.first and len(stems(text)) >= _SHORT else ""
                if kind == "decision" and len(stems(text)) < _CLEAR and _WHICH_ONE.match(text):
                    text = ""
                if kind == "decision" and (goes_on := _GOES_ON.match(text)):
                    text = text[goes_on.end() :].lstrip(" ,:;-–—") if len(stems(text)) >= _CLEAR else ""
                if kind in ("constraint", "preference") and (so := _SO.fullmatch(text)):
                    text = so[1]
                if text:
                    source = "bound" if kind == "constraint" else "person"
                    stated.append(OutcomeItem(kind, text, line, self._place, source))
            at += 1
        return stated

    def _kind(self, sentence: str, *, opens: bool = False) -> Kind | None:
        said = self._context._replace(sentence=sentence, opens=opens)
        if said not in self._kinds:
            self._kinds[said] = kind_by_rules(said, self._talk.cues)
        return self._kinds[said]

    _taken = 0

    def _opening(self) -> Iterator[OutcomeItem]:
        """Yields the option of a list or the proposal that the first sentence chooses."""
        sentence, line = self._said[0]
        if len(stems(sentence)) > 14 or is_question(sentence):
            return
        option, added = chosen_option(sentence, self._previous)
        if option:
            self._taken = 1
            kind = self._kind(added) if len(stems(added)) >= 2 else None
            if kind in ("constraint", "preference"):
                yield OutcomeItem(kind, bare(added), line, self._place, "bound")
            elif len(stems(added)) >= 2:
                option = f"{option} ({added})"
            if (
                len(self._said) > 1
                and _HINGE.match(self._said[1][0])
                and self._kind(self._said[1][0]) in (None, "decision")
            ):
                option, self._taken = f"{option}; {self._said[1][0]}", 2
            yield OutcomeItem("decision", option, line, self._place, "pick")
            return
        added = bare(sentence)
        if self._context.closing or not self._talk.cues.has("yes", sentence) or len(stems(added)) > 3:
            return
        if self._kind(added) in ("constraint", "preference"):
            return
        offered = proposal(self._previous)
        self._taken = 0 if offered is None else 1
        if offered:
            more = len(stems(added)) >= 2 and not self._talk.cues.has("yes", added) and not is_ack(added)
            yield OutcomeItem("decision", f"{offered} ({added})" if more else offered, line, self._place, "yes")

    def _subject(self, at: int, text: str) -> str:
        """Returns the sentence before that names a constraint's subject: "San Marino has its own code. that is the law"."""
        before = self._said[at - 1][0] if at and POINTS_BACK.match(text) else ""
        if len(stems(before)) < 2 or is_question(before):
            return ""
        return before if self._kind(before) in (None, "decision") else ""

    def _reason(self) -> bool:
        """Returns whether a "no wait, they want it after all" only gives the reason for the choice after it."""
        return (
            len(self._said) > 1
            and self._talk.cues.has("retract", self._said[0][0])
            and not _CHOOSES.search(self._said[0][0])
            and self._kind(self._said[1][0]) == "decision"
        )

    def _whole(self, text: str) -> str:
        """Completes the first sentence: from the assistant's confirmation, the next sentence, or the question."""
        if len(stems(text)) >= 3 or on_topic(text, self._previous):
            return text
        confirmed = completed(text, self._previous, self._following)
        if confirmed != text:
            return confirmed
        if len(self._said) > 1:
            then = self._said[1][0]
            if not is_question(then) and not is_errand(bare(then)) and self._kind(then) is None:
                self._taken = 2
                return f"{text.rstrip('.')}. {then}" if not text.endswith(("。", "！")) else text + then
        return "" if _NAMELESS.match(text) else text
