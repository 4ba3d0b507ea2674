"""Lists the threads of an agent: what each is called, how it stands, what comes next."""

from __future__ import annotations

from signet_sync.graph.store import neighbours
from signet_sync.sync.read_only import reading
from signet_sync.web.paging import portion
from signet_sync.web.request import View, ViewRequest, WebPage

THREADS = 50  # on a page


def threads(request: ViewRequest) -> WebPage:
    """Shows the threads whose names contain the words `q`, the one that was worked on last first."""
    words = request.query.get("q", "").strip()
    wanted = words.casefold().split()
    with reading(request.site.place) as database:
        labels = neighbours.thread_labels(database, request.agent)
        found = [one for one, label in labels.items() if all(word in label.casefold() for word in wanted)]
        chosen = portion(found, request.query.get("page"), THREADS)
        rows = list(neighbours.thread_states(database, request.agent, chosen.rows).values())
    return WebPage("threads", "Threads", {"rows": rows, "portion": chosen, "words": words})


VIEWS: list[tuple[str, str, View]] = [("/threads", "threads", threads)]
