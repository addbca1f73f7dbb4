# The image of Allaboard. Nothing is downloaded while it is built: `make image` puts the wheels that uv.lock pins
# by hash into dist/image first, for the Python of the base image.
#
#   make image                                                      from python:3.13-slim-bookworm
#   make image BASE_IMAGE=debian-py:bookworm PYTHON_VERSION=3.11    from what is at hand (e2e/kind builds this one)
ARG BASE_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE_IMAGE} AS build
COPY dist/image/wheels /wheels
# Unpacking is all that installing takes, as long as no wheel has files for elsewhere (*.data).
RUN for wheel in /wheels/*.whl; do python3 -m zipfile -e "$wheel" /app || exit 1; done \
    && ! ls -d /app/*.data 2>/dev/null \
    && python3 -m compileall -q -j 0 /app \
    && PYTHONPATH=/app python3 -c "import extender.app, webhook.app, allaboard.cli, certs.issue, uvloop"

FROM ${BASE_IMAGE}
COPY --from=build /app /app
COPY dist/image/sbom.cdx.json /usr/share/sbom/allaboard.cdx.json
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp
USER 65532:65532
ENTRYPOINT ["python3", "-m", "allaboard"]
LABEL org.opencontainers.image.title="Allaboard" \
      org.opencontainers.image.description="Gang scheduling for multi-node GPU work on the stock kube-scheduler"
