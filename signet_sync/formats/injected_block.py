"""Defines the marks around what we inject into a session; readers of transcripts and pages remove it again."""

# MEMORY.md must never feed on itself.
OPENING, CLOSING = "<signet-memory>", "</signet-memory>"
# How the line below the opening begins, of what hooks inject and of what the MCP server answers.
BACKGROUND = "Background from earlier sessions, kept by signet-sync"
STORED = "Stored text of earlier sessions, kept by signet-sync."


def neutral(text: str) -> str:
    """Makes our marks in a text harmless, in as many characters, so that it cannot end the injected block."""
    for mark in (OPENING, CLOSING):
        text = text.replace(mark, f"‹{mark[1:-1]}›")
    return text
