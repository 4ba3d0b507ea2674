"""Links to files that got another name, in every form that Obsidian writes; what is no such link stays."""

import pytest

from signet_sync.formats.moved_links import relinked

FOLDER = "entities/parts/jo--p-abcdefghijkl"
MOVES = {f"{FOLDER}/profile": f"{FOLDER}/Jo Ann", f"{FOLDER}/notes": f"{FOLDER}/Jo Ann notes"}
CASES = [
    (f"[[{FOLDER}/profile.md|Jo]]", f"[[{FOLDER}/Jo Ann.md|Jo]]"),
    (f"![[/{FOLDER}/profile#Role]]", f"![[/{FOLDER}/Jo Ann#Role]]"),
    (f"[[{FOLDER}/notes]] [[{FOLDER}/profile]]", f"[[{FOLDER}/Jo Ann notes]] [[{FOLDER}/Jo Ann]]"),
    ("[[jo--p-abcdefghijkl/profile|x]]", "[[jo--p-abcdefghijkl/Jo Ann|x]]"),
    (f"[x]({FOLDER}/profile.md)", f"[x]({FOLDER}/Jo%20Ann.md)"),
    (f"[x](<../{FOLDER}/profile.md>)", f"[x](<../{FOLDER}/Jo Ann.md>)"),
    (f'[x](../{FOLDER}/profile.md#Role "t")', f'[x](../{FOLDER}/Jo%20Ann.md#Role "t")'),
    ("[[profile]] [[other/profile.md]] profile.md [x](profile.md) [[]]", None),
    (f"[[{FOLDER}/profile.mdx]] [x](https://x.org/{FOLDER}/profile.md)", None),
]


@pytest.mark.parametrize(("text", "after"), CASES)
def test_links_follow_and_lead_back(text: str, after: str | None) -> None:
    after = text if after is None else after
    assert relinked(f"\r\n{text} ¶\n", "mine/note.md", MOVES) == f"\r\n{after} ¶\n"
    back = {new: old for old, new in MOVES.items()}
    assert relinked(after, "mine/note.md", back) == text
