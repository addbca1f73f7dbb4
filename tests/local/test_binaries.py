"""Which binary is taken: a folder that the user names before the cache, and never a guess."""

from pathlib import Path

import pytest

from allaboard.local import binaries
from allaboard.local.build import cached
from allaboard.local.errors import LocalError
from allaboard.local.tools import TOOLS


@pytest.fixture(autouse=True)
def nothing_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALLABOARD_BIN_DIR", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_given_folder_wins_over_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(cached(TOOLS["etcd"]))
    given = executable(tmp_path / "given" / "etcd")
    monkeypatch.setenv("ALLABOARD_BIN_DIR", str(tmp_path / "given"))
    assert binaries.find("etcd") == given


def test_a_given_folder_is_used_for_what_it_holds_and_the_rest_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = executable(cached(TOOLS["kwok"]))
    given = executable(tmp_path / "assets" / "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert binaries.provide(["etcd", "kwok"], pytest.fail) == {"etcd": given, "kwok": kept}


def test_a_file_that_can_not_be_executed_is_no_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "given" / "etcd").chmod(0o644)
    monkeypatch.setenv("ALLABOARD_BIN_DIR", str(tmp_path / "given"))
    with pytest.raises(LocalError, match=r"etcd v3\.6\.5 is not built yet: run `allaboard local build`"):
        binaries.find("etcd")


def test_a_given_folder_that_is_not_there_is_an_error_and_not_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLABOARD_BIN_DIR", str(tmp_path / "typo"))
    with pytest.raises(LocalError, match=r'ALLABOARD_BIN_DIR: ".*typo" is no folder'):
        binaries.find("etcd")


def test_an_unknown_tool_is_named_together_with_the_known_ones() -> None:
    with pytest.raises(LocalError, match=r'"kubelet" is no tool of the local cluster .*kube-apiserver'):
        binaries.find("kubelet")


def test_a_new_version_of_one_source_leaves_the_binaries_of_the_others_in_the_cache() -> None:
    folders = {tool.source: cached(tool).parent.name for tool in TOOLS.values()}
    assert folders == {"kubernetes": "kubernetes-v1.36.3", "etcd": "etcd-v3.6.5", "kwok": "kwok-v0.8.0"}


def test_versions_are_those_that_the_module_files_pin() -> None:
    for tool in TOOLS.values():
        if tool.module is not None:
            module = tool.package.split("/cmd/")[0]
            assert f"{module} {tool.version}" in (tool.module / "go.mod").read_text()


def test_a_tool_that_no_cluster_needs_is_built_by_name() -> None:
    said = r"helm v3\.22\.0 is not built yet: run `allaboard local build helm`"
    with pytest.raises(LocalError, match=said):
        binaries.find("helm")
