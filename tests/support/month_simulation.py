"""A simulated stretch of days: agents with memories, recalls drawn from a model of use, a sweep every night.

Every memory has a role, which says how it is asked for and so what has to become of it; the words by which one is asked
for stand in no other. What was answered is written down beside the index, so that the ledger can be counted again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.memories import promotion
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import OWN_WORD, Memory
from signet_sync.privacy import forget as privacy_forget
from signet_sync.recall import operations as recall_operations
from signet_sync.sync.publishing import publish_pages
from signet_sync.sync.workspace import Workspace
from signet_sync.text import tags
from signet_sync.text.memory import memory_id

START = parse_instant("2026-03-01T00:00:00Z") or 0
HOUR = 3600 * SECOND
NIGHT = 3 * HOUR

_ONE = (
    "bra", "cor", "del", "fen", "gar", "hol", "jun", "kel", "lor", "mav", "nor", "pel", "quin", "ros", "sar", "tam",
    "ulv", "vor", "wex", "zor",
)  # fmt: skip
_TWO = ("adin", "ember", "illon", "oster", "undra", "ystal", "achen", "elmin", "ovar", "upet")
_SAID = (
    ("{a} signs off what ships, and {b} is asked first", ("who signs off, {a}?", "{b} asked first", "{a} and {b}",
     "is {b} the one to ask", "what does {a} sign")),
    ("the {a} table is rebuilt by {b} every Monday", ("{a} table", "{b} Monday", "what rebuilds {a}",
     "when does {b} run", "is {a} rebuilt by {b}")),
    ("never restart {a} while {b} is draining", ("restart {a}", "{b} draining", "may I restart {a} now",
     "{a} while {b}", "why is {b} draining")),
    ("{a} prefers short answers about {b}", ("what does {a} prefer", "{b} answers", "{a} on {b}", "short {b}",
     "how to answer {a}")),
)  # fmt: skip
# How many of a hundred memories have which role.
ROLES = {"staple": 8, "season": 4, "late": 4, "obsession": 4, "glimpse": 10}
_NOBODY = ("deadline of the wintergarden", "colour of the third lamp", "who hid the umbrella", "fog on the pier")


@dataclass
class Answered:
    """One recall as it was answered: the memories in the order of the answer, with their ranks."""

    agent_id: str
    query: str
    at_us: int
    hits: list[tuple[str, int]]


@dataclass
class Simulation:
    """All that happened: role and text of every memory, every recall, every sweep, what was forgotten and when."""

    roles: dict[tuple[str, str], str] = field(default_factory=dict)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: list[Answered] = field(default_factory=list)
    sweeps: dict[str, list[tuple[int, promotion.SweepResult]]] = field(default_factory=dict)
    forgotten: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass
class _Asked:
    """A memory and the questions by which one asks for it."""

    memory_id: str
    role: str
    questions: tuple[str, ...]


def simulate(workspace: Workspace, *, agents: int, days: int, recalls: int, seed: int = 7) -> Simulation:
    """`agents` with a hundred memories each, `recalls` in all, a sweep of each agent every night but the first."""
    simulated = Simulation()
    luck = random.Random(seed)
    names = ["default", "scout", "clerk"][:agents]
    asked = {name: _remember(workspace, name, simulated, luck) for name in names}
    for day in range(days):
        for name in names:
            if day:
                night = START + day * DAY + NIGHT
                simulated.sweeps.setdefault(name, []).append((night, promotion.dream(workspace, name, night)))
            if day == days // 2:
                _forget_one(workspace, name, simulated, START + day * DAY + NIGHT + HOUR)
            # Nobody asks for what turned out to be wrong.
            known = [one for one in asked[name] if (name, one.memory_id) not in simulated.forgotten]
            plan = sorted(_day(known, day, days, -(-recalls // (agents * days)), luck))
            for at_us, query in plan:
                _recall(workspace, name, query, at_us, simulated)
    last = START + days * DAY + NIGHT
    for name in names:
        simulated.sweeps[name].append((last, promotion.dream(workspace, name, last)))
    publish_pages(workspace, agents=None, now_us=last)
    return simulated


def _remember(workspace: Workspace, agent_id: str, simulated: Simulation, luck: random.Random) -> list[_Asked]:
    words = [one + two for one in _ONE for two in _TWO]
    luck.shuffle(words)
    roles = [role for role, number in ROLES.items() for _ in range(number)]
    roles += ["rest"] * (100 - len(roles))
    asked = []
    with workspace.database.transaction():
        for place, role in enumerate(roles):
            template, questions = _SAID[place % len(_SAID)]
            a, b = words[2 * place].capitalize(), words[2 * place + 1].capitalize()
            text = template.format(a=a, b=b)
            text = text[0].upper() + text[1:] + "."
            known_as = memory_id(agent_id, "note", text)
            memory = Memory(agent_id, known_as, "note", text, (), False, iso(START + place * SECOND))
            memories.store(workspace.database, memory._replace(concepts=tags.derive(text)), OWN_WORD)
            simulated.roles[agent_id, known_as], simulated.texts[agent_id, known_as] = role, text
            asked.append(_Asked(known_as, role, tuple(question.format(a=a, b=b) for question in questions)))
    return asked


def _day(asked: list[_Asked], day: int, days: int, most: int, luck: random.Random) -> Iterator[tuple[int, str]]:
    """When and what is asked on a day."""
    made = 0

    def at() -> int:
        return START + day * DAY + luck.randrange(6 * HOUR, 23 * HOUR)

    for one in asked:
        hits = {
            "staple": luck.choice((0, 1, 2, 2)),
            "season": luck.choice((1, 2)) if 2 <= day < 6 else 0,
            "late": luck.choice((1, 2)) if day >= days - 4 else 0,
        }.get(one.role, 0)
        for _ in range(hits):
            yield at(), luck.choice(one.questions)
            made += 1
        if one.role == "obsession" and day == hash_of(one.memory_id) % days:
            for _ in range(15):
                yield at(), one.questions[0]
                made += 1
        if one.role == "glimpse" and day in (1, days - 2):
            yield at(), one.questions[day == 1]
            made += 1
    for _ in range(max(0, most - made)):
        yield at(), luck.choice(_NOBODY)


def hash_of(memory_id: str) -> int:
    """The same number for the same id in every process."""
    return int.from_bytes(memory_id.encode(), "big")


def _recall(workspace: Workspace, agent_id: str, query: str, at_us: int, simulated: Simulation) -> None:
    hits = recall_operations.recall(workspace.database, query, agent_id=agent_id)
    recall_operations.record(workspace.database, agent_id, query, hits, at_us)
    least = 0.75 * max((hit.score for hit in hits), default=0.0)  # weaker ones say nothing of what is remembered well
    found = [(hit.id, rank) for rank, hit in enumerate(hits, 1) if hit.tier == "memory" and hit.score >= least]
    simulated.answers.append(Answered(agent_id, query, at_us, found))


def _forget_one(workspace: Workspace, agent_id: str, simulated: Simulation, at_us: int) -> None:
    """The first staple that has risen was wrong after all."""
    for _, swept in simulated.sweeps[agent_id]:
        for one in swept.promoted:
            if simulated.roles[agent_id, one.memory_id] == "staple":
                privacy_forget.forget(workspace, agent_id, one.memory_id, at_us)
                simulated.forgotten[agent_id, one.memory_id] = at_us
                return
