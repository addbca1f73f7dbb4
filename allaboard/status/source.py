"""Asks a running extender; every failure is one sentence that says what to try."""

from typing import Any, Final

import aiohttp

from allaboard.errors import UserError

_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, connect=3)


async def fetch(url: str, path: str) -> Any:
    """The JSON of /debug/{path}. Raises UserError, for 404 with what the extender says."""
    where = f"{url.rstrip('/')}/debug/{path}"
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session, session.get(where) as answer:
            body = await answer.json(content_type=None)
            if answer.status == 200:
                return body
    except (TimeoutError, aiohttp.ClientError, ValueError, OSError) as error:
        raise UserError(
            f"no extender answers on {url} ({' '.join(str(error).split()) or type(error).__name__}): is it "
            "running? Give --extender URL; in a cluster, kubectl port-forward to its Pod first"
        ) from error
    said = body.get("error") if isinstance(body, dict) else None
    raise UserError(str(said or f"{where}: HTTP status {answer.status}"))
