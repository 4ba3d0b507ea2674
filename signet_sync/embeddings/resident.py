"""Keeps the model in the agent: makes vectors while nothing else is to be done, and tells what is near to a question.

Without the agent nothing is near to anything, and `recall` orders by words. Loads numpy and the model only if the
settings name one.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from glob import glob
from typing import TYPE_CHECKING

from loguru import logger

from signet_sync.embeddings import store
from signet_sync.embeddings.store import let_tell
from signet_sync.errors import SignetSyncError, sentence_of
from signet_sync.settings.model_choice import MeaningChoice, resolve_meaning
from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.embeddings.models import Model
    from signet_sync.embeddings.vectors import Held, Nearness, Vectors
    from signet_sync.settings.model import Settings

# Seconds until the first look, and between two; after a failure; that no question is asked after one.
FIRST, LOOK, RETRY, REST = 1.0, 5.0, 60.0, 300.0
_BATCH = 8  # rows that a model gets at once
_SECONDS, _PATIENCE = 60.0, 1.0  # that a server has for them, and for a question
_SLOWER = 20.0  # on battery, the pause after a text, in times of what it took of a processor
_LONGEST_QUESTION = 1_000  # characters


class Resident(threading.Thread):
    """Works until `stop`, beside the agent's other threads and after everything else on this machine."""

    def __init__(self, database: str, settings: Callable[[], Settings]) -> None:
        super().__init__(name="meaning", daemon=True)
        self._database, self._settings = database, settings
        self._ends = threading.Event()
        self._choice: MeaningChoice | None = None
        self._model: Model | None = None
        self._held: Held | None = None  # once it has made all
        self._rests_until, self._trouble = 0.0, ""
        let_tell(self.measure_nearness)

    def stop(self) -> None:
        """Ends the thread, and what the model does."""
        let_tell(None)
        self._ends.set()
        if self._model is not None:
            self._model.stop()
        # A process that ends within a model's library is aborted; a server's answer need not be waited for.
        if self.is_alive() and (self._choice is None or self._choice.folder):
            self.join(10.0)

    def run(self) -> None:
        """Looks for texts without vectors; no trouble ends it."""
        if sys.platform == "linux":  # where it is of this thread alone
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        pause = FIRST
        while not self._ends.wait(pause):
            try:
                with closing(Database(self._database, create=False)) as database:
                    pause = self.work(database)
            except FileNotFoundError:
                pause = LOOK  # nothing is indexed yet
            except Exception as error:  # noqa: BLE001 - a disk, a database, a server, a library
                why = sentence_of(error) if isinstance(error, SignetSyncError) else str(error)
                if why != self._trouble and not self._ends.is_set():
                    logger.warning("texts get their vectors later: {}", why)
                self._choice, self._trouble, pause = None, why, RETRY  # it is loaded again

    def work(self, database: Database) -> float:
        """Makes the vectors of some texts; returns the seconds to rest. Raises `SignetSyncError`."""
        choice = resolve_meaning(self._settings())
        if choice is None:
            self._choice, self._model, self._held = None, None, None
            if self._settings().recall_meaning == "off" and store.state(database)[0]:
                store.use_model(database, "")
            return LOOK
        from signet_sync.embeddings import models, vectors  # only where a model is named

        if choice != self._choice or self._model is None:
            self._choice, self._model, self._held = choice, None, None
            self._model, self._rests_until = models.load(choice), 0.0
            store.use_model(database, self._model.key)
        model = self._model
        for number in store.list_unembedded(database, _BATCH):
            if self._ends.is_set():
                return 0.0
            began = time.thread_time()
            said = store.read_rows(database, number)
            store.put(database, number, model.key, said, self._rows(model, said))
            self._ends.wait((time.thread_time() - began) * (_SLOWER if _is_on_battery() else 1.0))
        give_back()
        if store.list_unembedded(database, 1):
            return 0.0
        if self._held is None:
            self._held = vectors.Held(model)
            logger.info("recall by meaning answers")
        self._held.read(database)
        return LOOK

    def _rows(self, model: Model, said: Sequence[tuple[int, str]]) -> bytes:
        """Returns the vectors of what a text says; none if the model refuses it. Raises `ProviderError`."""
        import numpy as np

        from signet_sync.embeddings.vectors import pack
        from signet_sync.llm.providers import TextRefused

        found: list[Vectors] = []
        try:
            for at in range(0, len(said), _BATCH):
                found.append(model.embed([text for _, text in said[at : at + _BATCH]], _SECONDS))
        except TextRefused:
            return b""
        return pack([row for row, _ in said], np.concatenate(found)) if found else b""

    def measure_nearness(
        self, database: Database, ranges: Sequence[tuple[int, int]], question: str, at_once: bool
    ) -> Nearness | None:
        """Returns how near texts are to a question; None if no model answers. Raises nothing of a model."""
        from signet_sync.text.sanitizer import sanitize_beginning

        held = self._held
        text = sanitize_beginning(question, 4 * _LONGEST_QUESTION)[:_LONGEST_QUESTION].strip()
        if held is None or not text or time.monotonic() < self._rests_until or (at_once and not held.model.here):
            return None
        try:
            found = held.model.embed([text], _PATIENCE, question=True)[0]
        except Exception as error:  # noqa: BLE001 - a model's libraries raise what they like, and words answer
            self._rests_until = time.monotonic() + REST
            logger.warning("questions are answered by words: {}", getattr(error, "message", type(error).__name__))
            return None
        return held.measure(database, ranges, found)


def give_back() -> None:
    """Returns free memory to the system, which the C library keeps: half of what a model needed."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _is_on_battery() -> bool:
    for place in glob("/sys/class/power_supply/*/status"):
        with suppress(OSError), open(place) as file:
            if file.read().strip() == "Discharging":
                return True
    return False
