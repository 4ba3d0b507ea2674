"""Shows every setting: its value, where that is from, what it may be, and the command that changes it."""

from signet_sync.settings import model
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.web.request import View, ViewRequest, WebPage


def settings(request: ViewRequest) -> WebPage:
    """Shows the settings of the workspace, those that somebody changed first."""
    known, remarks = model.known_settings(request.site.place.root)
    rows = [
        {
            "name": one.field.key,
            "value": _shown(one.value),
            "default": _shown(one.field.default),
            "origin": one.origin,
            "meaning": one.field.doc.replace("`", ""),
        }
        for one in sorted(known, key=lambda one: one.origin == "default")
    ]
    change = request.command("settings", "NAME", "VALUE", own_agent=False)
    return WebPage("settings", "Settings", {"settings": rows, "remarks": [*map(str, remarks)], "change": change})


def _shown(value: object) -> str:
    """Returns a value without secrets: somebody may have put a key on the wrong line."""
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return sanitize_line(text.lower() if isinstance(value, bool) else text)


VIEWS: list[tuple[str, str, View]] = [("/settings", "settings", settings)]
