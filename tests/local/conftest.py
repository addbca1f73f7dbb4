"""A state folder of its own for each test that starts clusters, so that it disturbs nobody's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.local.cluster import down


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds the clusters of this test; those named one and two are stopped afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path / "allaboard" / "local"
    down("one")
    down("two")
