"""Ten thousand memories in eight languages, the questions that are put to them, and the hits that these had.

All made up, the same for the same seed. Few words stand in thousands of memories, most in a handful, numbers in one: as
in any language, how often a word stands somewhere falls with its rank.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

KINDS = ("note", "decision", "preference", "constraint", "person", "blocker")
_ENGLISH = 0.6

_SENTENCES = {
    "en": (
        "{name} wants the {thing} of the {thing} to be {how} before the {event}.",
        "The {thing} keeps its {thing} {how}; {name} measured {number} ms after the {event}.",
        "We decided that every {thing} is {how} unless the {thing} says otherwise.",
        "Never touch {file} while the {thing} runs: it lost a {thing} in the {event}.",
        "The {thing} in {file} must stay {how}, see #{number}.",
        "{name} owns the {thing} and answers for the {thing} on call.",
        "Deploys of the {thing} wait for the {event}, and the test of the {thing} is {how}.",
        "Use {how} {thing}s for the {thing}; the old ones broke in #{number}.",
    ),
    "de": (
        "{name} möchte, dass {thing} und {thing} vor {event} {how} sind.",
        "Die Prüfung von {thing} bleibt {how}, auch wenn {thing} wächst (#{number}).",
        "Wir haben beschlossen, {file} nach dem {event} nicht mehr zu ändern.",
    ),
    "fr": (
        "{name} préfère que le {thing} reste {how} pendant le {event}.",
        "La vérification du {thing} a échoué {number} fois à cause du {thing}.",
        "On a décidé de garder {file} tel quel jusqu'au {event}.",
    ),
    "es": (
        "{name} quiere que el {thing} sea {how} antes del {event}.",
        "La migración del {thing} duró {number} minutos por culpa del {thing}.",
    ),
    "zh": (
        "{name}决定在{event}之前检查{thing}的缓存和备份。",
        "{thing}的台账窗口保持{number}分钟，不要修改{file}。",
        "数据库迁移完成以后再部署{thing}，测试必须通过。",
    ),
    "ja": (
        "{name}は{event}の前に{thing}のバックアップを確認したい。",
        "{thing}の設定は{file}にあり、{number}秒でタイムアウトする。",
        "データベースの移行が終わるまで{thing}をデプロイしない。",
    ),
    "ko": (
        "{name}은 {event} 전에 {thing} 백업을 확인하고 싶어 한다.",
        "{thing} 설정은 {file}에 있고 {number}초 뒤에 만료된다.",
    ),
    "ru": (
        "{name} просит проверить {thing} до {event} и записать результат.",
        "Журнал {thing} хранится {number} дней, файл {file} не менять.",
    ),
}


def _listed(block: str) -> list[str]:
    return block.split()


_EVENTS = _listed(
    """
    release migration audit deploy rollout standup freeze outage review demo handover retro spike backup
    restore
    """
)
_HOWS = _listed(
    """
    strict small fast idempotent readable bounded lazy immutable quiet versioned atomic cached sorted offline
    portable typed signed sparse warm durable
    """
)
_NAMES = _listed(
    """
    Ada Grace Linus Priya Chiara Tomasz Yara Nobuko Mateus Ingrid Farouk Sanne Oisin Elif Vikram Wanjiru
    Quentin Rosalind Benedikt Hanneke 佐藤 田中 李明 王芳 김민준 이서연 Ольга Дмитрий Zoë Łukasz
    """
)
# The first stand nearly everywhere.
_THINGS = _listed(
    """
    cache test queue database index server token build session config worker schema lease retry cursor ledger
    shard snapshot gateway scheduler parser renderer planner probe watcher budget tombstone manifest socket
    debounce router backup cluster migration window digest journal batch replica region quota voucher webhook
    mailbox
    """
)
_PARTS = _listed(
    """
    alpine amber atlas birch cedar cobalt comet copper coral delta ember falcon fjord flint garnet glacier
    harbor heron indigo iris jade juniper kestrel lagoon lantern lotus maple marble meadow merlin nimbus oak
    onyx opal orchard osprey pebble pine quartz raven reef saffron sable sequoia slate sparrow spruce summit
    thistle tidal topaz tundra umber violet walnut willow zephyr zinc
    """
)
_ENDS = ("core", "sync", "board", "mesh", "vault", "lens", "forge", "relay", "scope", "works", "gate", "stream")


class Said(NamedTuple):
    """A memory as it is told: of which type, and its words."""

    kind: str
    content: str


class Question(NamedTuple):
    """A query, and of what sort it is."""

    sort: str
    text: str


class Hits(NamedTuple):
    """One recall event: the number of its memory, the query, its score, microseconds since 1970 UTC."""

    memory: int
    query: str
    score: float
    at_us: int


class _Pool:
    """Words of which the first are drawn most often."""

    def __init__(self, words: Sequence[str], steepness: float) -> None:
        self.words = words
        self._sums = list(accumulate((rank + 2) ** -steepness for rank in range(len(words))))

    def draw(self, chance: random.Random) -> str:
        return chance.choices(self.words, cum_weights=self._sums)[0]


def _pools() -> dict[str, _Pool]:
    made = [f"{part}-{end}" for end in _ENDS for part in _PARTS]
    files = [f"{thing}_{part}.{end}" for part in _PARTS[:20] for thing in _THINGS[:15] for end in ("py", "ts")]
    return {
        "thing": _Pool([*_THINGS, *made], 0.9),
        "event": _Pool(_EVENTS, 0.6),
        "how": _Pool(_HOWS, 0.5),
        "name": _Pool(_NAMES, 0.5),
        "file": _Pool(files, 0.4),
    }


def memories(count: int, seed: int = 5) -> list[Said]:
    """So many different memories, of one to three sentences; most are in English."""
    chance, pools = random.Random(seed), _pools()
    found: dict[str, Said] = {}
    while len(found) < count:
        content = _told(chance, pools)
        found.setdefault(content, Said(chance.choice(KINDS), content))
    return list(found.values())


def _told(chance: random.Random, pools: dict[str, _Pool]) -> str:
    language = "en" if chance.random() < _ENGLISH else chance.choice(list(_SENTENCES))

    def fill(match: re.Match[str]) -> str:
        return str(chance.randrange(20_000)) if match[1] == "number" else pools[match[1]].draw(chance)

    sentences = chance.sample(_SENTENCES[language], min(chance.choice((1, 1, 1, 2, 3)), len(_SENTENCES[language])))
    return " ".join(re.sub(r"\{(\w+)\}", fill, sentence) for sentence in sentences)


def questions(said: Sequence[Said], count: int, seed: int = 6) -> list[Question]:
    """So many queries of eight sorts in turn, about what the memories say."""
    chance = random.Random(seed)
    sorts = (_common, _rare, _two, _three, _name, _cjk, _sentence, _nothing)
    return [sorts[number % len(sorts)](said, chance) for number in range(count)]


def _words(said: Sequence[Said], chance: random.Random, least: int) -> list[str]:
    while True:
        words = list(dict.fromkeys(re.findall(r"[^\W\d_]{4,}", chance.choice(said).content)))
        if len(words) >= least:
            return words


def _common(_: Sequence[Said], chance: random.Random) -> Question:
    return Question("a common word", chance.choice([*_THINGS[:6], *_EVENTS[:4], "decided", "strict"]))


def _rare(said: Sequence[Said], chance: random.Random) -> Question:
    while not (number := re.search(r"\d{3,}", chance.choice(said).content)):
        pass
    return Question("a number", f"#{number[0]}")


def _two(said: Sequence[Said], chance: random.Random) -> Question:
    return Question("two words", " ".join(chance.sample(_words(said, chance, 2), 2)))


def _three(said: Sequence[Said], chance: random.Random) -> Question:
    return Question("three words", " ".join(chance.sample(_words(said, chance, 3), 3)))


def _name(_: Sequence[Said], chance: random.Random) -> Question:
    part, end, thing = chance.choice(_PARTS), chance.choice(_ENDS), chance.choice(_THINGS)
    return Question("a name", chance.choice([f"{part}-{end}", f"{thing}_{part}.py", chance.choice(_NAMES)]))


def _cjk(_: Sequence[Said], chance: random.Random) -> Question:
    asked = (
        "台账窗口",
        "数据库迁移",
        "缓存和备份",
        "バックアップを確認",
        "データベースの移行",
        "백업을 확인",
        "佐藤の設定",
    )
    return Question("Chinese, Japanese, Korean", chance.choice(asked))


def _sentence(said: Sequence[Said], chance: random.Random) -> Question:
    words = chance.sample(words := _words(said, chance, 4), min(5, len(words)))
    return Question("a question of five words", f"What did we decide about {' '.join(words)}?")


def _nothing(_: Sequence[Said], chance: random.Random) -> Question:
    letters = "bcdfghjklmnpqrstvwxz"
    return Question("nothing found", "".join(chance.choices(letters, k=9)))


def hits(memories: int, count: int, now_us: int, days: int, seed: int = 7) -> Iterator[Hits]:
    """So many events of the last days, oldest first: few memories are found often, a third of them never."""
    chance = random.Random(seed)
    asked = [question.text for question in questions([*map(_said, range(500))], 4_000, seed)]
    order = chance.sample(range(memories), memories * 2 // 3)
    sums = list(accumulate((rank + 20) ** -0.7 for rank in range(len(order))))
    span = days * 86_400_000_000
    times = sorted(now_us - chance.randrange(span) for _ in range(count))
    for at_us, memory in zip(times, chance.choices(order, cum_weights=sums, k=count), strict=True):
        yield Hits(memory, asked[(memory * 31 + chance.randrange(12)) % len(asked)], 1 / chance.randint(1, 10), at_us)


def _said(number: int) -> Said:
    return Said("note", f"{_THINGS[number % len(_THINGS)]} {_PARTS[number % len(_PARTS)]} {number + 1000} strict audit")


class RecallEvent(NamedTuple):
    """One hit of `recall` on a memory: the query as stored, its score (0 to 1), microseconds since 1970 UTC."""

    query: str
    score: float
    at_us: int
