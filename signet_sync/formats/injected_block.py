"""The marks around what we inject into a session; it is taken out again where a transcript or a page is read."""

# MEMORY.md must never feed on itself.
OPENING, CLOSING = "<signet-memory>", "</signet-memory>"


def neutral(text: str) -> str:
    """The text with our marks made harmless, in as many characters: what lies between ours cannot end it."""
    for mark in (OPENING, CLOSING):
        text = text.replace(mark, f"‹{mark[1:-1]}›")
    return text
