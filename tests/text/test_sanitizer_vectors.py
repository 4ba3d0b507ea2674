"""The table against its own examples, recall over made-up secrets in every dress, and hits on what is none."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from invented_secrets import ALNUM

from benchmarks.sanitizer import sampled
from signet_sync.text.secrets import providers
from signet_sync.text.secrets.engine import redact
from signet_sync.text.secrets.providers import TokenForm

TABLE = Path(providers.__file__).with_name("providers.txt")


# ── the table ──


def written_out(example: str, dice: Random) -> str:
    """An example of the table, with characters drawn for each of its pieces."""

    def drawn(piece: re.Match[str]) -> str:
        letters = [c for c in ALNUM + "-_+/." if re.match(f"[{providers.CLASSES[piece[1]]}]", c)]
        # What base64 is broken by belongs to longer runs than a test needs.
        some = "".join(dice.choices([c for c in letters if c not in "+/."], k=int(piece[2])))
        # One of thirty would have no digit, and could be a word, or end in a mark.
        return some[:1] + "7" + some[2:-1] + "4" if len(some) > 3 else some

    return providers.PIECE.sub(drawn, example)


@pytest.mark.parametrize("form", providers.forms(), ids=lambda form: f"{form.rule} {form.form}")
def test_a_form_finds_its_example_whole_and_leaves_its_look_alike(form: TokenForm) -> None:
    dice = Random(form.form)
    for text in (written_out(form.found, dice) for _ in range(4)):
        found = [redact(frame.replace("{}", text))[0] for frame in ("see {} there", "k='{}'", "\n+{}\n")]
        for clean in found:
            assert re.fullmatch(r"(see |k='|\n[+])\[REDACTED:[a-z0-9-]+\]=?( there|'|\n)", clean), (text, clean)
    assert redact(form.left) == (form.left, {})


def test_the_rules_of_the_table_are_named_as_marks_may_be() -> None:
    for form in providers.forms():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", form.rule)
        assert not form.rule.endswith(("token", "key", "password", "secret"))
    assert len({form.form for form in providers.forms()}) == len(providers.forms())


def test_no_example_is_a_leak_to_a_scanner() -> None:
    """The examples are drawn by tests: as it is, the table holds no secret."""
    assert not redact(TABLE.read_text(encoding="utf-8"))[1]


# ── recall and false hits ──


def test_recall_and_false_hits_are_what_they_were() -> None:
    """Made-up secrets by what providers publish, in every dress, never by the table: see `benchmarks.sanitizer`."""
    found = sampled(1)
    kinds = {name: tally.found / tally.count for name, tally in found.kinds.items()}
    assert sum(tally.found for tally in found.kinds.values()) >= 11_700
    assert {name: part for name, part in kinds.items() if part < 0.93} == {"form: pass, pwd": 40 / 45}
    assert found.negatives > 700 and found.false == []
