"""Keeps the webhook's certificates: one Secret for all replicas, rotated by whoever is first.

    registration ─► Secret ─► certs.advance ─► Secret ─► caBundle ─► file, from which the webhook serves
       (read)        (read)       (pure)       (if new)   (if new)     (if new)

In this order, because a certificate may be served only when API servers trust its authority, and what
they trust may only be told by somebody who has read the Secret after the registration (certs/trust.py).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from allaboard.errors import UserError
from certs import issue, replace_file, secret, trust
from certs.rotation import Keys, Lives, advance
from extender.api import JSON_PATCH, ApiError, Json

LOOK_SECONDS: Final = 10.0
_ATTEMPTS: Final = 50
_CHANGED: Final = (409, 422)  # stored, or told, by another replica since we looked

log = structlog.get_logger(__name__)


class CertificatesError(UserError):
    """The certificates can't be kept; the text names the object and what to do."""


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """GET, None for 404."""

    async def replace(self, path: str, body: Json) -> Json:
        """PUT; 409 where the object's version is not the one given."""

    async def patch(
        self, path: str, body: Any, kind: str = JSON_PATCH, params: Mapping[str, str] | None = None
    ) -> Json:
        """PATCH."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where things are kept. secret, registration: API paths. hosts: names that the API server calls us by.

    file: gets certificate and key in one, so that no reader ever sees halves of two.
    """

    secret: str
    registration: str
    hosts: tuple[str, ...]
    file: Path


@dataclass(slots=True)
class Certificates:
    """One replica's part in it."""

    api: Api
    place: Place
    now: Callable[[], datetime]
    lives: Lives = field(default_factory=Lives)

    async def settle(self) -> None:
        """Return when the file holds a certificate that API servers trust.

        Raises CertificatesError, ApiError.
        """
        for _ in range(_ATTEMPTS):
            if await self.turn():
                return
            await asyncio.sleep(0.1)
        raise CertificatesError(
            f"{self.place.secret} or {self.place.registration} changes faster than we can follow: who writes?"
        )

    async def keep(self, pause: float = LOOK_SECONDS) -> None:
        """Take a turn now and then, until cancelled; what goes wrong is logged and tried again."""
        while True:
            await asyncio.sleep(pause)
            try:
                await self.settle()
            except (CertificatesError, ApiError) as error:
                log.error("certificates can't be kept, the ones at hand are served", reason=str(error))

    async def turn(self) -> bool:
        """Do what is due; False where another replica was quicker. Raises CertificatesError, ApiError."""
        registration = await self._read(self.place.registration)
        found = await self._read(self.place.secret)
        try:
            before = secret.decode(found)
        except secret.ForeignSecretError as error:
            raise CertificatesError(str(error)) from error
        keys = advance(before, self.place.hosts, trust.told(registration), self.now(), self.lives)
        if keys != before and not await self._stored(found, keys, before):
            return False
        if not await self._told(registration, keys):
            return False
        self._serve(keys)
        return True

    async def _read(self, path: str) -> Json:
        found = await self.api.get(path)
        if found is None:
            raise CertificatesError(f"{path} is missing: apply the manifests again")
        return found

    async def _stored(self, found: Json, keys: Keys, before: Keys | None) -> bool:
        if before is None and found.get("data"):
            log.warning("the Secret was damaged and is made anew", secret=self.place.secret)
        return await _unless_changed(self.api.replace(self.place.secret, secret.encode(found, keys)))

    async def _told(self, registration: Json, keys: Keys) -> bool:
        operations = trust.operations(registration, keys.bundle)
        if not operations:
            return True
        done = await _unless_changed(self.api.patch(self.place.registration, operations, JSON_PATCH))
        if done:
            log.info("API servers are told what to trust", authorities=len(issue.split(keys.bundle)))
        return done

    def _serve(self, keys: Keys) -> None:
        content = keys.serving.certificate + keys.serving.key
        if not self.place.file.exists() or self.place.file.read_bytes() != content:
            replace_file(self.place.file, content)


async def _unless_changed(write: Any) -> bool:
    try:
        await write
    except ApiError as error:
        if error.status in _CHANGED:
            return False
        raise
    return True
