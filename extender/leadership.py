"""Who leads: the one extender that plans, grants and binds. Stand-bys keep warm caches and wait.

    none       this one, always: there is no other
    own        whoever holds our own Lease
    scheduler  whoever runs beside the kube-scheduler that holds its Lease (rule 18 of the design)

A term is one unbroken time of leading; its name is in every plan that is written in it. Leading, losing
and leading again are two terms, so the name counts the Lease's transitions.
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from extender.api import ApiError

SURE_SECONDS: Final = 10.0  # without a word from the API server for this long we step down by ourselves

log = structlog.get_logger(__name__)


class Elector(Protocol):
    """Looks once; pause: seconds until it should look again."""

    pause: float

    async def look(self) -> str:
        """The term in which we lead now, "" where we don't. Raises ApiError where that can't be found out."""

    async def resign(self) -> None:
        """Let others lead at once; called when we stop."""


class Alone:
    """Always leads."""

    pause = 3600.0

    def __init__(self) -> None:
        self._term = uuid.uuid4().hex

    async def look(self) -> str:
        """The same term from start to end."""
        return self._term

    async def resign(self) -> None:
        """Nobody waits for it."""


class Leadership:
    """Keeps looking. term: the one in which we lead now, "" on stand-by."""

    def __init__(self, elector: Elector, clock: Callable[[], float], changed: Callable[[], None]) -> None:
        self.term = ""
        self._elector = elector
        self._clock = clock
        self._changed = changed
        self._sure = clock()

    async def run(self) -> None:
        """Look until cancelled, then resign."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(self._elector.pause)
        finally:
            self._set("")
            await self._elector.resign()

    async def _look(self) -> None:
        start = self._clock()
        try:
            async with asyncio.timeout(SURE_SECONDS):
                term = await self._elector.look()
        except (ApiError, TimeoutError) as error:
            log.warning("can't find out who leads", error=str(error) or "no answer in time")
            if self._clock() - self._sure >= SURE_SECONDS:
                self._set("")  # by now somebody else may
            return
        self._sure = start
        self._set(term)

    def _set(self, term: str) -> None:
        if term == self.term:
            return
        log.info("leads" if term else "stands by", term=term or self.term)
        self.term = term
        self._changed()
