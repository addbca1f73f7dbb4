"""Which binaries a local cluster needs, from which Go modules, and how long each takes to build."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

KUBERNETES_VERSION: Final = "v1.36.3"
ETCD_VERSION: Final = "v3.6.5"
KWOK_VERSION: Final = "v0.8.0"

MODULES: Final = Path(__file__).parent / "modules"


@dataclass(frozen=True, slots=True)
class Tool:
    """One binary.

    package: its Go package; built in the module folder modules/<source>, or where there is none
        installed straight from the module proxy at this version.
    minutes: on 2 cores, with the downloads that it is the first to need.
    """

    name: str
    source: str
    version: str
    package: str
    minutes: float

    @property
    def key(self) -> str:
        """The cache folder's name: tools of one source and version lie together."""
        return f"{self.source}-{self.version}"

    @property
    def module(self) -> Path | None:
        """The folder with go.mod and go.sum that pin every dependency, if the source has one."""
        folder = MODULES / self.source
        return folder if folder.is_dir() else None

    @property
    def ldflags(self) -> str:
        """Linker flags: stripped, and Kubernetes told its version (else kubectl says v0.0.0-master)."""
        return "-s -w" + (_kubernetes_version_flags() if self.source == "kubernetes" else "")


def _kubernetes_version_flags() -> str:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {
        "gitVersion": KUBERNETES_VERSION,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return "".join(f" -X {package}.{key}={value}" for package in packages for key, value in values.items())


def _kubernetes(name: str, minutes: float) -> Tool:
    return Tool(name, "kubernetes", KUBERNETES_VERSION, f"k8s.io/kubernetes/cmd/{name}", minutes)


# For who ships us; a local cluster needs none of it.
EXTRA_TOOLS: Final = {
    tool.name: tool for tool in (Tool("helm", "helm", "v3.22.0", "helm.sh/helm/v3/cmd/helm", 1.5),)
}

# The first of a source pays for downloading and compiling what its sisters share.
TOOLS: Final = {
    tool.name: tool
    for tool in (
        _kubernetes("kube-apiserver", 5),
        _kubernetes("kube-scheduler", 0.5),
        _kubernetes("kube-controller-manager", 1),
        _kubernetes("kubectl", 0.5),
        Tool("etcd", "etcd", ETCD_VERSION, "go.etcd.io/etcd/server/v3", 0.5),
        Tool("kwok", "kwok", KWOK_VERSION, "sigs.k8s.io/kwok/cmd/kwok", 3),
    )
}
