"""What parsers share: summaries without their wrapping, results cut without harm, and time that stays linear."""

import pytest
from transcripts import jsonl

from signet_sync.capture.harnesses.pi import transcript as pi
from signet_sync.capture.harnesses.texts import RESULT_LIMIT, compaction_text, cut_middle
from signet_sync.formats.managed_block import CLOSING, OPENING

AFTERWORD = (
    "\n\nIf you need specific details from before compaction (like exact code), read the full transcript at: /x\n"
    "Continue the conversation from where it left off without asking the user any further questions."
)
PREAMBLE = (
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation.\n\n<system-reminder>\nx\n</system-reminder>\nSummary:\n"
)


RAN_OUT = "This session is being continued from a previous conversation that ran out of context."
HANDED = "Another language model started to solve this problem and produced a summary of it. Here it is"


@pytest.mark.parametrize(("raw", "text"), [
    ("", ""), ("plain words", "plain words"),
    ("Another language model started to solve this problem and produced a summary of it. Here it is:\nLit.", "Lit."),
    (f"Summary:\n{OPENING}old{CLOSING}new", "new"), (f"{CLOSING}kept{OPENING}old{CLOSING}", f"{CLOSING}kept"),
    (f"{RAN_OUT} Summary: Lit the lantern.\n2. Next.", "Lit the lantern.\n2. Next."),
    (f"{RAN_OUT} Summary: Lit.\n\nSummary:\nof the rest", "Lit.\n\nSummary:\nof the rest"),
    (f"{RAN_OUT} We lit the lantern.", "We lit the lantern."),
    (f"{RAN_OUT}\n\n1. Lit.\n\n2. Next.\n", "1. Lit.\n\n2. Next."),
    (f"{RAN_OUT} The conversation is summarized below: Lit.", "Lit."),
    (f"{PREAMBLE}Lit.{AFTERWORD}", "Lit."),
    (f"{HANDED}: Lit.\nNext:\n- it", "Lit.\nNext:\n- it"),
    (f"{HANDED}\nLit:\n- it", f"{HANDED}\nLit:\n- it"),
    ("Summary: Lit.", "Lit."),
])  # fmt: skip
def test_summaries_of_all_kinds(raw, text):
    assert compaction_text(raw) == text


def test_of_a_long_result_the_middle_is_left_out_and_no_key_is_cut_in_half():
    long = "head\n" + "x." * 500_000 + "\ntail"
    kept, omitted = cut_middle(long)
    assert kept.startswith("head") and kept.endswith("tail")
    assert len(kept) <= RESULT_LIMIT + 1 and len(kept) - 1 + omitted == len(long)
    lines = "\n".join(["A1b2" * 16] * 5_000)
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"
    kept, omitted = cut_middle("x\n" * 1500 + key)
    assert "A1b2" not in kept and omitted == 0


def test_a_long_chain_of_records_is_read_soon():
    shared = {"type": "message", "message": {"role": "user", "content": "word"}}
    chain = [shared | {"id": str(n), "parentId": str(n - 1) if n else None} for n in range(10_000)]
    assert len(pi.read(jsonl(*chain)).entries) == len(chain)
