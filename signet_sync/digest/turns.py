"""Groups a transcript by the person's messages: what was asked, what was done for it, and the report at its end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from signet_sync.digest.transcript import DigestTurn, HarnessNote, SpokenMessage, ToolCall, parse
from signet_sync.formats.lazy_pattern import late

_TURNS = 1_000  # from the beginning, and as many from the end
# What follows is announced: "I will." agrees.
_NARRATES = late(
    r"(?:\b(?:let me|i'?ll|i’ll|i will|now i|i'?m going to|i am going to|next,? i|going to|ich werde|jetzt|je vais"
    r"|maintenant|voy a|ahora|vou|agora|ora|adesso|сейчас|теперь)\b|まず|次に|これから|接下来|现在|我来|让我|이제|먼저)"
    r"(?=\W*\w)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Turn:
    """A message of the person (none before the first one) and the steps that followed; numbers count from 1.

    `report` are the agent's last words, `ended` is whether no call followed them; `interrupted`: the person stopped it.
    """

    number: int
    words: SpokenMessage | None = None
    steps: list[DigestTurn] = field(default_factory=list)
    report: SpokenMessage | None = None
    ended: bool = False
    interrupted: bool = False

    @property
    def worked(self) -> bool:
        return any(isinstance(step, ToolCall) for step in self.steps)


def turns_of(transcript: str) -> list[Turn]:
    """Returns the turns of a transcript; of very many the first and the last ones."""
    found: list[Turn] = []
    for step in parse(transcript):
        if isinstance(step, SpokenMessage) and step.speaker == "user":
            found.append(Turn(len(found) + 1, step))
            continue
        if not found:
            found.append(Turn(1))
        turn = found[-1]
        turn.steps.append(step)
        if isinstance(step, SpokenMessage) and step.speaker == "assistant":
            turn.report, turn.ended, turn.interrupted = step, True, False
        elif isinstance(step, ToolCall):
            turn.ended = turn.interrupted = False
        elif isinstance(step, HarnessNote) and step.kind == "interrupted":
            turn.interrupted = not turn.ended or turn.report is None or not is_report(turn.report.text)
    return found if len(found) <= 2 * _TURNS else found[:_TURNS] + found[-_TURNS:]


def is_report(text: str) -> bool:
    """Returns whether words of the agent say a result, and do not only announce a step."""
    said = text.strip()
    if not said or (said.endswith((":", "：", "…")) and len(said) < 300):
        return False
    last = said.rsplit("\n", 1)[-1]
    return len(said) >= 300 or _NARRATES.search(last[-200:]) is None or last.endswith(("?", "？"))
