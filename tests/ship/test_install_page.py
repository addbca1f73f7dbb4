"""docs/install.md: what it tells people to run is there, and its overlay renders."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from allaboard.local.binaries import find
from tests.ship.conftest import MANIFESTS

ROOT = MANIFESTS.parent
PAGE = (ROOT / "docs" / "install.md").read_text()
COMMANDS = [
    line.partition(" #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


def test_every_command_on_the_page_is_one_that_these_tests_know() -> None:
    known = ("kubectl apply -k ", "helm install ", "helm test ", "make ")
    assert len(COMMANDS) > 6
    assert [command for command in COMMANDS if not command.startswith(known)] == []


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("kubectl apply -k ")])
def test_what_is_applied_renders(command: str) -> None:
    assert rendered(ROOT / command.removeprefix("kubectl apply -k "))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make ")])
def test_what_is_made_is_a_target_with_these_variables(command: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for variable in command.split()[2:]:
        assert f"{variable.partition('=')[0]} ?=" in (ROOT / "Makefile").read_text()


def test_the_chart_is_where_the_page_says() -> None:
    paths = {word for c in COMMANDS if c.startswith("helm install") for word in c.split() if "/" in word}
    assert paths == {"manifests/chart"}
    assert (ROOT / "manifests/chart/Chart.yaml").is_file()


def test_the_overlay_on_the_page_names_the_images(tmp_path: Path) -> None:
    [overlay] = [b for b in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if b.startswith("resources")]
    subprocess.run(["cp", "-r", MANIFESTS, tmp_path / "manifests"], check=True)
    folder = tmp_path / "manifests" / "overlays" / "page"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(overlay)
    images = set(re.findall(r"image: (\S+)", rendered(folder)))
    assert images == {"registry.example.com/allaboard:0.1.0", "registry.k8s.io/kube-scheduler:v1.36.3"}


def test_every_component_is_on_the_page() -> None:
    components = {path.name for path in (MANIFESTS / "components").iterdir()}
    assert components == set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))


def test_what_git_ops_tools_are_told_to_ignore_is_what_the_webhook_writes() -> None:
    [told] = [b for b in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if b.startswith("ignore")]
    names = {row["kind"]: row["name"] for row in yaml.safe_load(told)["ignoreDifferences"]}
    base = rendered(MANIFESTS / "base")
    shipped = {o["kind"]: o["metadata"]["name"] for o in yaml.safe_load_all(base) if o["kind"] in names}
    assert names == shipped


def rendered(folder: Path) -> str:
    done = subprocess.run([find("kubectl"), "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
