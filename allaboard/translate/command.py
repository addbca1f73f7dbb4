"""The whole of `allaboard translate` behind its options: files in, YAML and problems out."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from allaboard.dev.install import shipped
from allaboard.dev.settings import scheduler_names
from allaboard.manifests import Manifest, ManifestError, load
from allaboard.translate.report import translate

_DEFAULTS_FROM: Final = "Allaboard's default objects"


def run(files: Sequence[Path], profiles: str) -> tuple[str, tuple[str, ...]]:
    """YAML, a document a workload, and a line for all that can't be understood."""
    names = scheduler_names(profiles)
    try:
        defaults = [Manifest(_DEFAULTS_FROM, body) for body in shipped("defaults")]
        report = asyncio.run(translate(load(files), defaults, names))
    except ManifestError as error:
        return "", (str(error),)
    return yaml.safe_dump_all(report.entries, sort_keys=False, width=120), report.problems
