"""Files in manifests/ that are made, not written: which are behind, and writing them anew."""

from collections.abc import Iterator
from pathlib import Path

from allaboard.ship.chart import templates
from allaboard.ship.derived import derived


def made(manifests: Path) -> dict[str, str]:
    """Content by file, relative to the folder of the manifests."""
    return {**derived(), **templates(manifests)}


def stale(manifests: Path) -> Iterator[str]:
    """Files that are not what they should be."""
    for name, text in made(manifests).items():
        path = manifests / name
        if not path.is_file() or path.read_text() != text:
            yield name


def write(manifests: Path) -> None:
    """Write them all."""
    for name, text in made(manifests).items():
        (manifests / name).write_text(text)
