"""`make manifests`: writes what follows from code."""

from pathlib import Path

from allaboard.ship.files import write

write(Path("manifests"))
