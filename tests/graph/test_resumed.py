"""A session that was resumed: one line says what all its segments came to."""

from __future__ import annotations

import pytest
from test_nodes import HOUR, T, source

from signet_sync.graph.nodes import best_of
from signet_sync.graph.nodes_stage import derive_session

LONG = "## User\n\n" + "Please let the importer skip empty files, and tell me which ones. " * 9
THANKS = "## User\n\nthanks a lot!\n\n## Assistant\n\nYou are welcome."
GO_ON = "## User\n\nplease go on\n\n## Assistant\n\nI will go on then."
RESULT = (
    "## User\n\nPlease fix src/tsv.py.\n\n## Assistant\n\nI fixed src/tsv.py: it skips empty files. All 12 tests pass."
)
DONE = "In lantern the importer of src/importer.py skips empty files now, and a test of it passes on all machines."
KIND = "The user of lantern said thanks, and the assistant answered that nothing else was left to do there today."
ITEMS = "# Importer\n\n## Decisions\n\n- Skip empty files\n"


def resumed(*segments):
    """The row of a session in its thread; segments are sentence, words, and the summary's text."""
    sources = []
    for number, (sentence, words, *summary) in enumerate(segments):
        at = T + number * HOUR
        content = summary[0] if summary else "# Importer"
        sources += [source(at=at, sentence=sentence, content=content), source("transcript", at=at, content=words)]
    session = sources[0].agent_id, sources[0].session_token, sources[0].session_id
    found = derive_session(session, sources)
    assert derive_session(session, sources[::-1]).place == found.place
    assert found.place.source_ref == best_of(sources).source_path, "its link leads to the newest"
    return found.place


@pytest.mark.parametrize("slight", [THANKS, GO_ON])
def test_small_talk_after_work_says_nothing(slight):
    assert resumed((DONE, LONG), (KIND, slight)).sentence == DONE
    assert resumed((DONE, LONG), (KIND, slight), (KIND, slight), (KIND, slight)).sentence == DONE
    assert resumed((DONE, "## User\n\nskip", ITEMS), (KIND, slight)).sentence == DONE


def test_the_newest_segment_with_results_speaks():
    assert resumed((KIND, LONG), (DONE, RESULT)).sentence == DONE
    assert resumed((KIND, LONG), (DONE, LONG)).sentence == DONE
    assert resumed((KIND, LONG), (DONE, GO_ON, ITEMS)).sentence == DONE
    assert resumed((KIND, LONG), (DONE, RESULT), (KIND, THANKS)).sentence == DONE
    assert resumed((KIND, THANKS), (DONE, GO_ON)).sentence == DONE, "none has results: the newest"


def test_small_talk_decides_no_status():
    worked = "# Importer\n\n*A digest made by rules from the transcript, without a model. Status: blocked.*\n"
    talked = worked.replace("blocked", "question-only")
    assert resumed((DONE, LONG, worked), (KIND, THANKS, f"{talked}\n## Outcome\n\n- Thanks\n")).status == "blocked"
