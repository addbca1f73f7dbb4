"""What the proxy answers in the API server's place: errors for a while, one Binding that never succeeds."""

import json
import random
import re
from collections.abc import Callable
from typing import Final

from e2e.proxy import Call, Fault

STATUSES: Final = (409, 429, 500)
_SHARE: Final = 0.5  # of writes, so that some of a gang's pass and some don't
_BINDING: Final = re.compile(r"/pods/([^/]+)/binding$")
_CONFLICT: Final = 409


class Errors(Fault):
    """status: what is answered now, 0 to let everything pass.

    refuses: asked about each Binding (names of Pod and node); None to let all pass.
    """

    def __init__(self, rng: random.Random) -> None:
        self.status = 0
        self.refuses: Callable[[str, str], bool] | None = None
        self._rng = rng

    async def before(self, call: Call) -> int:
        """Reads pass: what goes wrong with them is another fault, the watch that drops."""
        if self._refused(call):
            return _CONFLICT
        hit = self.status and call.writes and self._rng.random() < _SHARE
        return self.status if hit and "/leases" not in call.path else 0

    def _refused(self, call: Call) -> bool:
        found = _BINDING.search(call.path)
        if not found or self.refuses is None:
            return False
        return self.refuses(found[1], json.loads(call.body)["target"]["name"])
