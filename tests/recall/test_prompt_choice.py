"""What is worth injecting at a prompt: above a floor, one hit of each session, statements before transcripts."""

import pytest

from signet_sync.recall.prompt_choice import ASKED_FLOOR, FLOOR, OWN_FLOOR, choose
from signet_sync.recall.query import read
from signet_sync.recall.rank import RecallCandidate

QUERY = read("pelican heron walrus grebe")
WEIGHTS = [4.0, 4.0, 4.0, 4.0]
ALL = dict.fromkeys(range(4), 1.0)


def hit(tier, number, score, terms=ALL, session="s"):
    return RecallCandidate(tier, f"f-{number}", "text", f"memory/{session}.md", number, score, terms, "a decision")


def chosen(anywhere=(), own=(), *, asks=False, query=QUERY):
    return [
        one.id
        for one in choose(
            query, WEIGHTS, 4.0, anywhere, own, lambda one: one.path or one.id, asks_about_earlier_work=asks
        )
    ]


def test_a_hit_needs_enough_of_the_prompt_and_more_than_one_rare_word():
    assert chosen([hit("fact", 1, FLOOR)]) == ["f-1"]
    assert chosen([hit("fact", 1, FLOOR - 0.01)]) == []
    assert chosen([hit("fact", 1, 0.9, {0: 1.0})]) == [], "one rare word alone"
    assert chosen([hit("fact", 1, 0.9)], query=read("the and of")) == []


def test_a_question_about_earlier_work_needs_less_and_least_in_the_project_at_hand():
    weak = [hit("fact", 1, ASKED_FLOOR)]
    assert chosen(weak) == [] and chosen(weak, asks=True) == ["f-1"]
    own = [hit("fact", 2, OWN_FLOOR, {0: 1.0})]
    assert chosen(own=own) == [] and chosen(own=own, asks=True) == ["f-2"]
    assert chosen([hit("fact", 1, 0.9)], [hit("fact", 2, OWN_FLOOR, session="t")], asks=True) == ["f-1"]


def test_a_question_without_an_answer_is_never_chosen():
    echo = hit("transcript", 1, 1.0, session="x")._replace(unanswered=True)
    assert chosen([echo, hit("memory", 2, FLOOR)]) == ["f-2"], "however well it matches"
    assert chosen([echo], [echo], asks=True) == []


@pytest.mark.parametrize("tier", ["memory", "fact", "curated", "thread", "node"])
def test_of_one_session_a_statement_is_preferred_to_its_transcript(tier):
    assert chosen([hit("transcript", 1, 0.8), hit(tier, 2, 0.75)]) == ["f-2"]
    assert chosen([hit("transcript", 1, 0.95), hit("fact", 2, 0.58)]) == ["f-1"], "unless it says much less"


def test_the_best_of_each_session_come_in_order():
    some = [hit("fact", n, 0.6 + n / 20, session=f"s{n // 2}") for n in range(4)]
    assert chosen(some) == ["f-3", "f-1"]
    assert chosen([*some, hit("fact", 9, 1.0, session="x")])[0] == "f-9"
    assert chosen([hit("fact", 1, 1.0, session="a"), hit("fact", 2, 0.55, session="b")]) == ["f-1"], "far behind"
