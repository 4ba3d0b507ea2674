"""Selects the passages that best describe the outcome of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import Dialogue, OutcomeItem, Status
from signet_sync.text.digest.distinct import item_text
from signet_sync.text.digest.reports import ResultsReport, has_label
from signet_sync.text.digest.sentences import IS_CJK, is_question, overlap, split, stems
from signet_sync.text.digest.turns import ToolCall

SENTENCE_LENGTH, SENTENCE_LENGTH_CJK = 215, 130
_PASSAGES = 4
_TITLE = 3.5  # score of a report's title
_FIGURE = late(r"\d")
# The closing line of a test runner, with the number of passed tests.
_CHECKS = late(
    r"\b(\d[\d,]* (?:passed|passing|pass|examples|tests? (?:passed|completed|ok)))\b"
    r"|Tests:? .{0,40}?(\d[\d,]* passed)|^OK \((\d+ tests?)|Ran (\d+ tests?)",
    re.IGNORECASE,
)
_RED = late(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAIL(?:ED)?\b", re.IGNORECASE)


class _Candidate(NamedTuple):
    score: float
    order: tuple[int, int, int]
    text: str


def select_results(
    dialogue: Dialogue, found: Sequence[ResultsReport], stated: Sequence[OutcomeItem], request: str, status: Status
) -> tuple[str, ...]:
    """Returns the passages that best describe the outcome, in order; else the work itself, if no passage does."""
    candidates = sorted(_candidates(dialogue, found, stated, request), reverse=True)
    worked = _worked(dialogue)
    if worked and dialogue.last_word < min([*dialogue.edits[:1], *dialogue.runs[:1]]):
        return worked
    if not candidates:
        return worked
    if status == "aborted":
        whole = [one.text for one in candidates if _WHOLE.search(one.text) and not _PLANNED.search(one.text)]
        return (*whole[:1], *_afterwards(dialogue))
    best = candidates[0]
    room = SENTENCE_LENGTH_CJK if IS_CJK.search(best.text) else SENTENCE_LENGTH
    chosen = [best]
    used = set(stems(best.text))
    size = len(best.text)
    for candidate in candidates[1:]:
        if len(chosen) >= _PASSAGES or candidate.score < 0.5 * best.score:
            break
        fresh = stems(candidate.text) - used
        if size + len(candidate.text) + 2 > room or len(fresh) < 2 or len(fresh) < 0.4 * len(stems(candidate.text)):
            continue
        chosen.append(candidate)
        used |= stems(candidate.text)
        size += len(candidate.text) + 2
    return tuple(candidate.text for candidate in sorted(chosen, key=lambda one: one.order))


def _candidates(
    dialogue: Dialogue, found: Sequence[ResultsReport], stated: Sequence[OutcomeItem], request: str
) -> Iterator[_Candidate]:
    cues = dialogue.cues
    best = next((one.place for one in found if one.late), -1)
    kept = {item_text(item.text).casefold() for item in stated if item.kind in ("next", "blocker")}
    why = _WHY.search(request) is not None
    committed = dialogue.commits[-1][0] if dialogue.commits else -1
    committed_words = stems(" ".join(subject for _, subject in dialogue.commits[-5:]))
    went_on = sum(place > best for place, _ in dialogue.commits) > 2
    led: set[str] = set()
    for report in found:
        if not report.late or (report.place > best > max(dialogue.last_edit, dialogue.last_run)):
            continue
        position = 0
        for number, passage in enumerate(report.read[:80]):
            label = cues.kind_of(passage.label)
            if not number and passage.form == "heading" and _names(passage.text, request):
                yield _Candidate(_TITLE, (report.place, number, 0), _EMOJI.sub("", passage.text).strip())
            if passage.form == "heading" or label in ("next", "plan", "preference") or passage.struck:
                continue
            lead = "" if label or passage.label == passage.heading or passage.label in led else _lead(passage.label)
            for part, sentence in enumerate(split(passage.text)[:6]):
                text = item_text(sentence) if len(sentence) > 400 else _NUMBER.sub("", sentence.strip())
                text = _EMOJI.sub("", text).strip()
                if lead and not part:
                    led.add(passage.label)
                    text = f"{lead}: {text}"
                if is_question(text) or cues.has("offer", text) or cues.has("meta", text) or len(stems(text)) < 2:
                    continue
                if text.endswith((":", "：")) or item_text(text).casefold() in kept:
                    continue
                if committed > report.place and _UNCOMMITTED.search(text):
                    continue
                shared = len(stems(text) & stems(request))
                score = 3 / (1 + 0.35 * position) + 2 * overlap(text, request) * min(1.0, shared / 2)
                score += 0.6 if cues.has("outcome", text) else 0.0
                score += 0.4 if _FIGURE.search(text) else 0.0
                score += 0.5 if label == "done" else 0.0
                score -= 2.0 if _BEFORE.match(passage.label or passage.heading) else 0.0
                score -= 1.0 if passage.form == "row" and label != "done" else 0.0
                score += 1.0 if why and _CAUSE.search(text) else 0.0
                score -= 0.8 if _ASIDE.search(text) or _GREEN.match(text) else 0.0
                score -= 0.5 if report.place > best else 0.0
                score -= 1.2 if cues.has("left", text) and not cues.has("outcome", text) else 0.0
                score -= 1.5 if _QUOTED.search(text) else 0.0
                score += 0.8 * min(1.0, len(stems(text) & committed_words) / 2)
                # A salutation, "for the record": few words, none of them requested or committed.
                thin = len(stems(text)) < 6 and not shared and not (stems(text) & committed_words)
                if thin and not _FIGURE.search(text) and not cues.has("outcome", text):
                    score -= 1.5
                else:
                    position += 1
                yield _Candidate(score / 2 if went_on else score, (report.place, number, part), text)
    # If the assistant says little at the end, its commits say more.
    report_text = next((one.message.text for one in found if one.place == best), "")
    worth = 0.5 if len(report_text) >= 160 or has_label(cues, report_text) or IS_CJK.search(report_text) else 1.5
    # If the work went on after the best report, only the commits say what came out.
    worth = 4.0 if went_on else worth
    for place, subject in dialogue.commits[-3:]:
        yield _Candidate(worth, (place, 0, 0), subject)


def _names(title: str, request: str) -> bool:
    """Returns whether a report's title says what it is about in the words of the request, and more than that."""
    return 2 <= len(stems(title)) <= 14 and bool(stems(title) & stems(request)) and ":" in title


# A request to find out why needs the cause; side work comes last.
_WHY = late(
    r"\b(?:why|cause|find out|figure out|investigate|debug|look into|flaky|warum|ursache|woran|pourquoi"
    r"|cause|por qué|causa|perché|motivo)\b"
    r"|почему|причин|为什么|原因|查一下|なぜ|原因|왜|원인",
    re.IGNORECASE,
)
_CAUSE = late(
    r"\b(?:because|cause[ds]?|came from|comes from|due to|turned out|root|reason|race|leak|ursache"
    r"|liegt an|kommt von|weil|parce que|vient d"
    r"|porque|se debe|por causa|causa|perché|dovuto)\b|потому|причина|из-за|因为|原因|由于|ため|때문",
    re.IGNORECASE,
)
_ASIDE = late(
    r"\b(?:also|side (?:note|finding)|by the way|while (?:testing|there)|nebenbei|au passage|de paso"
    r"|di passaggio)\b|попутно|顺便|ついでに",
    re.IGNORECASE,
)
# Passing checks show that it is done, not what.
_GREEN = late(
    r"(?:all |the |alle |tous les |todos? l[oa]s |tutti i )?(?:\d[\d.,]* )?(?:unit |e2e )?"
    r"(?:tests?|specs?|checks?|ci|build|pruebas|testes?|тесты)\b.{0,40}(?:green|pass\w*|grün|verts?|verde\w*|ok|passam|laufen|проход\w*)\b",
    re.IGNORECASE,
)
# A quoted text is an example, not what was done.
_QUOTED = late(r"^(?:[\w ]{1,20}: ?)?[\"“„«]|[\"”»]$")
# The earlier state and the cause are not the outcome.
_BEFORE = late(
    r"\W*(?:context|background|problem|symptoms?|situation|before|request|task|goal|kontext|hintergrund|ausgangslage"
    r"|contexte?|contexto|contesto|situación|problema|контекст|было|背景|现象|问题|状況|배경)\W*$",
    re.IGNORECASE,
)
_EMOJI = late("[ ]?[\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]+")
# What was not committed when the report was written may have been since.
_UNCOMMITTED = late(
    r"\b(?:not|nothing|n['’]t|nicht|nichts|pas|no|não|non|не)\b.{0,30}\bcommit|not yet commit", re.IGNORECASE
)
_NUMBER = late(r"^\(?\d{1,2}[.)]\s+")


# Labels that fit anything say nothing about what is below them.
_ANY_LABEL = late(
    r"(?:key |main )?(?:points?|takeaways?|highlights?|notes?|details?|overview|recap|tl;?dr|info|files?"
    r"|in short|in brief|report)$"
    r"|(?:wichtigste\w*|überblick|hinweise?|details|kurz(?:fassung)?|dateien|points? clés?|aperçu|en bref"
    r"|détails|fichiers"
    r"|puntos clave|en resumen|detalles|archivos|pontos principais|em resumo|detalhes|arquivos|punti chiave"
    r"|in breve|dettagli"
    r"|кратко|детали|файлы|要点|概要|概览|说明|文件|ポイント|詳細|ファイル|요점|개요|파일)$",
    re.IGNORECASE,
)


def _lead(label: str) -> str:
    """Returns a label that names the subject of its passages; empty for a sentence."""
    bare = _NUMBER.sub("", label).rstrip(" .:：。")
    if _ANY_LABEL.match(bare):
        return ""
    return bare if bare and len(bare) <= 40 and not re.search(r"[.!?。！？]", bare) else ""


def _worked(dialogue: Dialogue) -> tuple[str, ...]:
    """Returns the work done if the assistant does not report it: commits, else edits, and how the last run ended."""
    done = [subject for _, subject in dialogue.commits[-2:]]
    if not done:
        names = list(dict.fromkeys(path.rpartition("/")[2] for path in dialogue.edited()))
        if not names:
            return ()
        shown = [*names[:3], f"{len(names) - 3} more files"] if len(names) > 4 else names
        done = [f"edited {', '.join(shown[:-1])}{' and ' if len(shown) > 1 else ''}{shown[-1]}"]
    checks = last_checks(dialogue)
    return (*done, checks) if checks else tuple(done)


# In a stopped session, a sentence that is cut off or says what comes next does not describe the state.
_WHOLE = late(r"[.!。！]['\")”»]*$")
_PLANNED = late(
    r"\b(?:i['’]?ll|i will|i['’]?m going to|let me|next|nächste[rsn]? schritt|prochaine étape|(?:próximo"
    r"|siguiente|prossimo) pas\w+"
    r"|ich werde|jetzt (?:mache|kommt)|je vais|ora "
    r"|ahora (?:voy|toca)|agora vou|сейчас|дальше)\b|接下来|下一步|次に|これから|다음",
    re.IGNORECASE,
)


def _afterwards(dialogue: Dialogue) -> tuple[str, ...]:
    """Returns what was run after the person's last word: the clean-up."""
    if len(dialogue.users) < 2:
        return ()
    last = dialogue.users[-1][0]
    runs = [dialogue.turns[place] for place in dialogue.runs[-3:] if place > last]
    ran = [run.detail.split("&&")[0].strip() for run in runs if isinstance(run, ToolCall)]
    return tuple(f"then {one}" for one in ran[:1] if 0 < len(one) <= 80 and "\n" not in one)


def last_checks(dialogue: Dialogue) -> str:
    """Returns the last result of a test run, such as "37 passed"; empty if it failed or none ran."""
    for place in reversed(dialogue.runs[-20:]):
        call = dialogue.turns[place]
        if not isinstance(call, ToolCall):
            continue
        for line in reversed(call.output[-12:]):
            if _RED.search(line[:300]):
                return ""
            found = _CHECKS.search(line[:300])
            if found:
                return next(filter(None, found.groups()), "")
    return ""
