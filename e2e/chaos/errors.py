"""Errors that the proxy answers in the API server's place, for a while."""

import random
from typing import Final

from e2e.proxy import Call, Fault

STATUSES: Final = (409, 429, 500)
_SHARE: Final = 0.5  # of writes, so that some of a gang's pass and some don't


class Errors(Fault):
    """status: what is answered now, 0 to let everything pass."""

    def __init__(self, rng: random.Random) -> None:
        self.status = 0
        self._rng = rng

    async def before(self, call: Call) -> int:
        """Reads pass: what goes wrong with them is another fault, the watch that drops."""
        hit = self.status and call.writes and self._rng.random() < _SHARE
        return self.status if hit and "/leases" not in call.path else 0
