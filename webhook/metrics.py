"""What Prometheus is told on /metrics of the admission server; gangs/figures.py describes every metric."""

import time
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gangs import figures

ANSWER: Final = web.ResponseKey("answer", str)
"""How a review was answered, one of figures.ANSWERS; set by the handler."""

_HEADERS: Final = {"Content-Type": CONTENT_TYPE_LATEST}


class Meters:
    """Counts answers; reads the certificate when asked. certificate: None where TLS is ended elsewhere."""

    def __init__(self, certificate: Path | None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._certificate = certificate
        self._registry = CollectorRegistry()
        figure = figures.ADMISSION
        self._admission = Histogram(
            figure.name, figure.text, [figure.label], registry=self._registry, buckets=figure.buckets
        )
        for answer in figure.values:
            self._admission.labels(answer)
        build = Gauge(figures.BUILD.name, figures.BUILD.text, [figures.BUILD.label], registry=self._registry)
        build.labels(_version()).set(1)
        self._expiry = Gauge(figures.CERTIFICATE.name, figures.CERTIFICATE.text, registry=self._registry)

    @web.middleware
    async def timed(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]
    ) -> web.StreamResponse:
        """How long an answer takes."""
        began = time.perf_counter()
        answer: web.StreamResponse = await handler(request)
        if ANSWER in answer:
            self._admission.labels(answer[ANSWER]).observe(time.perf_counter() - began)
        return answer

    async def scrape(self, _: web.Request) -> web.StreamResponse:
        """GET /metrics."""
        self._expiry.set(self._expires())
        return web.Response(body=generate_latest(self._registry), headers=_HEADERS)

    def _expires(self) -> float:
        """Epoch seconds, 0 where no certificate can be read."""
        try:
            pem = self._certificate.read_bytes() if self._certificate else b""
            return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
        except (OSError, ValueError):
            return 0.0


def _version() -> str:
    try:
        return version("allaboard")
    except PackageNotFoundError:
        return "unknown"
