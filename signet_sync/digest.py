"""Placeholder until the real one lands."""


def digest(transcript: str, *, project: str | None, harness: str | None) -> str:
    """Placeholder."""
    return "# Digest\n\n" + transcript[:200]
