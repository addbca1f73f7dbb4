"""Waiting for what a real control plane does in its own time."""

import asyncio
from collections.abc import Awaitable, Callable

_LOOK_EVERY = 0.05  # seconds


async def eventually(look: Callable[[], Awaitable[bool]], within: float = 20) -> None:
    """Return once look says yes; raises TimeoutError if it doesn't within so many seconds."""
    async with asyncio.timeout(within):
        while True:
            if await look():
                return
            await asyncio.sleep(_LOOK_EVERY)
