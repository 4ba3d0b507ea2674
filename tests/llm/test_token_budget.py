"""The tokens of a day: never passed, by however many processes, whatever dies, and whatever the clock does."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from loguru import logger
from test_llm import answer as answering
from test_llm import ask, completion, provider, server, shell  # noqa: F401

from signet_sync.errors import ProviderError
from signet_sync.formats.ids import MODEL_MARK
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.llm import token_budget
from signet_sync.llm.provider_choice import provider_for
from signet_sync.llm.providers import CommandProvider
from signet_sync.llm.token_budget import RECORD, BudgetSpent, TokenBudget, prompt_tokens, read_spent
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir

NOON = parse_instant("2026-03-28T12:00:00.000Z")
PROMPT = ("system", "prompt-that-nobody-may-see")


class Clock:
    """The time that a test sets."""

    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log():
    lines = []
    sink = logger.add(lambda message: lines.append(message.record["message"]), level="DEBUG")
    yield lines
    logger.remove(sink)


@pytest.fixture
def budget(tmp_path, monkeypatch, clock):
    monkeypatch.setattr(token_budget, "now_us", clock)
    return TokenBudget(str(tmp_path / "state"), 1000)


def days_of(budget):
    return json.loads(Path(budget.path).read_text())["days"]


def left(budget):
    """What a day has left, by the first call that does not fit."""
    with pytest.raises(BudgetSpent) as raised:
        budget.reserve(10**9)
    return int(raised.value.message.partition("fit in the ")[2].split()[0].replace(",", ""))


# --- one process ----------------------------------------------------------------------------------------------------


def test_what_fits_is_set_aside_and_corrected(budget, log):
    first = budget.reserve(600)
    for _ in range(2):
        assert left(budget) == 400 and days_of(budget) == {"2026-03-28": 600}, "a refusal spends nothing"
    assert "rules are used instead" in log[0]
    budget.settle(first, 250)
    assert days_of(budget) == {"2026-03-28": 250}
    budget.settle(budget.reserve(750), 900)
    assert days_of(budget) == {"2026-03-28": 1150} and left(budget) == 0, "what was reported counts, if it is more, too"
    assert os.stat(budget.path).st_mode & 0o777 == 0o600


def test_a_new_day_has_a_new_budget_and_a_clock_that_is_set_back_has_none(budget, clock):
    late = budget.reserve(1000)
    clock.now += DAY
    budget.reserve(700)
    budget.settle(late, 100)
    assert days_of(budget) == {"2026-03-28": 100, "2026-03-29": 700}, "a call counts for the day on which it began"
    clock.now = NOON - 40 * DAY
    assert left(budget) == 200


_V1 = b'{"v": 1, "days": %s, "logged": ""}'
DAMAGE = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"9" * 70_000, b"[" * 60_000, b'{"v": 1}',
    (_V1 % b"{}").replace(b"1", b"2"), *(_V1 % days for days in (b"[]", b'{"2026-03-28": -5}', b'{"2026-03-28": 1e3}')),
    *(_V1 % days for days in (b'{"2026-03-28": true}', b'{"x": 1}')),
]  # fmt: skip


def test_a_record_that_is_damaged_or_no_file_refuses_until_it_is_gone(budget, tmp_path):
    place = Path(budget.path)

    def is_refused():
        with pytest.raises(BudgetSpent) as raised:
            budget.reserve(1)
        assert "cannot be used" in raised.value.message
        assert "cannot be read" in read_spent(os.path.dirname(budget.path), NOON).trouble

    reserved = budget.reserve(10)
    for raw in DAMAGE:
        place.write_bytes(raw)
        is_refused()
        budget.settle(reserved, 5)
        assert place.read_bytes() == raw, "what a person may want to look at stays"
    place.unlink()
    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink(tmp_path / "elsewhere", path)):
        make(budget.path)
        with pytest.raises(BudgetSpent):
            budget.reserve(1)
        (os.rmdir if place.is_dir() else os.unlink)(budget.path)
    assert not (tmp_path / "elsewhere").exists()
    budget.reserve(1000)


# --- many processes -------------------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from signet_sync.llm.token_budget import BudgetSpent, TokenBudget
budget = TokenBudget(sys.argv[1], 2000)
print("ready", flush=True); sys.stdin.readline()
granted = 0
while True:
    try:
        reserved = budget.reserve(30)
    except BudgetSpent:
        break
    granted += 1
    if sys.argv[2] == "die" and granted == 3:
        print(granted, flush=True); os.kill(os.getpid(), signal.SIGKILL)
    budget.settle(reserved, 20)
print(granted)
"""


def test_processes_share_one_budget_and_a_killed_one_has_spent_its_reservation(tmp_path):
    def started(way):
        words = [sys.executable, "-c", CHILD, str(tmp_path), way]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    dying = started("die")
    granted = [int(dying.communicate("\n", timeout=300)[0].split()[-1])]
    assert dying.returncode == -signal.SIGKILL and granted == [3]
    children = [started("live") for _ in range(3)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    granted += [int(child.communicate(timeout=300)[0]) for child in children]
    # Twenty for each call but the one that died with thirty reserved.
    (recorded,) = days_of(TokenBudget(str(tmp_path), 2000)).values()
    assert recorded == 20 * sum(granted) + 10
    assert 2000 - 30 < recorded <= 2000


# --- providers ------------------------------------------------------------------------------------------------------


# What a server and a program are asked: our mark stands before what they keep as a prompt.
ASKED = (PROMPT[0], f"{MODEL_MARK}\n{PROMPT[1]}")
READ = (f"{MODEL_MARK}\n{PROMPT[0]}", PROMPT[1])


def usage(**given):
    return json.dumps({**json.loads(completion()), "usage": given}).encode()


def metered(found, budget, daily=1000):
    budget.daily = daily
    return replace(found, budget=budget)


def test_a_server_that_reports_is_believed_else_it_is_estimated(server, budget):  # noqa: F811
    odd = [{}, {"total_tokens": -5}, {"total_tokens": True}, {"total_tokens": "9"}, {"total_tokens": 10**12}]
    estimated = range(prompt_tokens(ASKED) + 3, prompt_tokens(ASKED) + 60)
    for reported, told in (
        ({"total_tokens": 70}, [70]), ({"prompt_tokens": 30, "completion_tokens": 9}, [39]),
        *((one, estimated) for one in odd),
    ):  # fmt: skip
        server.acts = [answering(200, usage(**reported))]
        before = left(budget)
        ask(metered(provider(server), budget))
        assert before - left(budget) in told, reported


def test_beyond_the_budget_nothing_is_sent(server, budget):  # noqa: F811
    found = metered(provider(server), budget, prompt_tokens(ASKED) + 50)
    ask(found)
    assert len(server.seen) == 1
    with pytest.raises(BudgetSpent):
        ask(found)
    assert len(server.seen) == 1


def test_what_a_server_refuses_and_what_was_never_sent_costs_nothing(server, budget):  # noqa: F811
    for status in (301, 400, 401, 429):
        server.acts = [answering(status)]
        with pytest.raises(ProviderError):
            ask(metered(provider(server), budget))
    with pytest.raises(ProviderError):
        ask(metered(provider(server, endpoint="http://127.0.0.1:9/v1"), budget))
    with pytest.raises(ProviderError):
        ask(metered(CommandProvider(command=("/no/such/program",), timeout=1.0), budget))
    assert left(budget) == 1000


def test_what_may_have_been_worked_on_stays_spent(server, budget):  # noqa: F811
    server.acts = [lambda handler: handler.server.stopped.wait(600)]
    for found, asked in (
        (provider(server, timeout=0.2), ASKED),
        (shell("exit 3"), READ),
        (shell("sleep 600", 0.2), READ),
    ):
        before = left(budget)
        with pytest.raises(ProviderError):
            ask(metered(found, budget))
        assert before - left(budget) == prompt_tokens(asked) + 50


def test_every_provider_has_the_budget_of_the_user():
    for one in ({"llm_provider": "command", "llm_command": ("echo",)}, {"llm_provider": "vllm", "llm_model": "m"}):
        found = provider_for(Settings(**one, llm_daily_tokens=77), {})
        assert found.budget.daily == 77 and found.budget.path == os.path.join(state_dir.base(), RECORD)
