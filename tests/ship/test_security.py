"""SECURITY.md names tests, and each is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_security_md_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_every_role_of_ours_is_spoken_of() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for account in ("allaboard-scheduler", "allaboard-webhook", "system:kube-scheduler"):
        assert account in text
