"""Building: one by one, resumable, shared between clones; run here with a go that only pretends."""

import stat
import threading
from pathlib import Path

import pytest

from allaboard.local import build as building
from allaboard.local.build import build, cached
from allaboard.local.errors import LocalError
from allaboard.local.tools import TOOLS

ETCD, KUBECTL, KWOK = TOOLS["etcd"], TOOLS["kubectl"], TOOLS["kwok"]

# Answers `go version`; else notes its arguments, and makes the file named by -o (or by GOBIN) unless it is
# the one that shall fail.
FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi
echo "$*" >> {folder}/calls
[ "$1" = install ] && out=$GOBIN/kwok
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
sleep {seconds}
case "$out" in
*/{fails}) echo "go: downloading example.com/m v1.0.0" >&2; echo "undefined: frobnicate" >&2; exit 1;;
esac
printf '#!/bin/sh\\n' > "$out"; chmod +x "$out"
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def fake_go(path: Path, folder: Path, fails: str = "-", version: str = "1.26.0", seconds: float = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FAKE_GO.format(folder=folder, fails=fails, version=version, seconds=seconds))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_each_binary_is_built_stripped_and_from_pinned_modules(bench: Path) -> None:
    fake_go(bench / "go", bench)
    build([KUBECTL, KWOK], lambda _: None)
    kubectl, kwok = calls(bench)
    assert kubectl.startswith(
        "build -trimpath -ldflags -s -w -X k8s.io/component-base/version.gitVersion=v1.36.3"
    )
    assert kubectl.endswith("k8s.io/kubernetes/cmd/kubectl")
    assert kwok == "install -trimpath -ldflags -s -w sigs.k8s.io/kwok/cmd/kwok@v0.8.0"
    assert cached(KUBECTL).exists()
    assert cached(KWOK).exists()


def test_a_failed_build_names_the_tool_and_shows_the_end_of_what_go_said(bench: Path) -> None:
    fake_go(bench / "go", bench, fails="etcd")
    with pytest.raises(LocalError) as failure:
        build([ETCD], lambda _: None)
    text = str(failure.value)
    assert text.startswith("building etcd v3.6.5 failed (go exit code 1)")
    assert text.endswith("\nundefined: frobnicate")
    assert "downloading" not in text


def test_a_build_goes_on_where_it_stopped(bench: Path) -> None:
    fake_go(bench / "go", bench, fails="etcd")
    with pytest.raises(LocalError):
        build([KUBECTL, ETCD, KWOK], lambda _: None)
    assert cached(KUBECTL).exists()
    fake_go(bench / "go", bench)
    (bench / "calls").unlink()
    build([KUBECTL, ETCD, KWOK], lambda _: None)
    assert [line.split()[-1] for line in calls(bench)] == [ETCD.package, f"{KWOK.package}@{KWOK.version}"]


def test_a_failed_build_leaves_nothing_half_done_in_the_cache(bench: Path) -> None:
    fake_go(bench / "go", bench, fails="etcd")
    with pytest.raises(LocalError):
        build([ETCD], lambda _: None)
    assert list(cached(ETCD).parent.iterdir()) == []


def test_two_builds_at_once_share_their_work(bench: Path) -> None:
    fake_go(bench / "go", bench, seconds=0.3)
    said: list[str] = []
    threads = [threading.Thread(target=build, args=([ETCD], said.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls(bench)) == 1
    assert "another build is running: waiting for it (it shares its results)" in said


def test_progress_says_at_once_how_long_it_takes_and_after_each_tool_what_is_left(bench: Path) -> None:
    fake_go(bench / "go", bench)
    said: list[str] = []
    build([ETCD, KWOK], said.append)
    assert said[0].startswith("building once, about 4 min on 2 cores: etcd v3.6.5, kwok v0.8.0\n")
    assert [line.split(" in ")[0] for line in said[1:]] == [
        "[1/2] etcd v3.6.5: building",
        "[1/2] etcd v3.6.5: done",
        "left: kwok (about 3 min)",
        "[2/2] kwok v0.8.0: building",
        "[2/2] kwok v0.8.0: done",
        "all binaries are built",
    ]


def test_a_long_build_goes_on_saying_that_it_is_alive(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_HEARTBEAT", 0.2)
    fake_go(bench / "go", bench, seconds=1)
    said: list[str] = []
    build([ETCD], said.append)
    assert any(line.startswith("[1/1] etcd v3.6.5: ") and line.endswith(" s") for line in said[2:-2])


def test_a_go_that_is_too_old_is_left_alone_and_the_one_in_the_cache_is_taken(bench: Path) -> None:
    fake_go(bench / "go", bench / "old", version="1.21.5")
    fake_go(bench / "cache/allaboard/go/1.26.6/go/bin/go", bench)
    build([ETCD], lambda _: None)
    assert len(calls(bench)) == 1
    assert not (bench / "old").exists()
