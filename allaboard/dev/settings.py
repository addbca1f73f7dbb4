"""What the user asked for, with every gap filled: kubeconfig, profiles, ports, state folder.

Ports that are not given are free ones, remembered in the state folder, so that a part which runs alone
with the same state folder finds the others.
"""

import json
import os
import re
import socket
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import yaml

from allaboard.errors import UserError
from extender.leases import MODES, OUR_LEASE, Election, LeaseName
from extender.options import PROTECTIONS
from extender.preemption import KINDS, Rules
from gangs.contract import KAI_SCHEDULER_NAME, SCHEDULER_NAME

DEFAULT_PROFILES: Final = f"{SCHEDULER_NAME},{KAI_SCHEDULER_NAME}"
LOOPBACK: Final = "127.0.0.1"
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_HOST: Final = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*"
)
_PORTS_FILE: Final = "ports.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the parts need to know.

    kubeconfig: None where the Pod's service account is used.
    webhook_host: the address under which the API server reaches the webhook.
    scheduler_port: where our kube-scheduler says whether it is healthy.
    scale_up_after: seconds after which a gang that only more nodes can help is ungated, None for never.
    """

    kubeconfig: Path | None
    profiles: tuple[str, ...]
    webhook_host: str
    webhook_port: int
    extender_port: int
    scheduler_port: int
    state_dir: Path
    unprotected: frozenset[str] = frozenset()
    election: Election = field(default_factory=Election)
    scale_up_after: float | None = None
    rules: Rules = field(default_factory=Rules)

    @property
    def webhook_url(self) -> str:
        """Where the API server is to send admission reviews."""
        host = f"[{self.webhook_host}]" if ":" in self.webhook_host else self.webhook_host
        return f"https://{host}:{self.webhook_port}/mutate"

    @property
    def extender_url(self) -> str:
        """Where kube-scheduler finds the extender's verbs."""
        return f"http://{LOOPBACK}:{self.extender_port}"

    @property
    def scheduler_config(self) -> Path:
        """Where the generated KubeSchedulerConfiguration is kept."""
        return self.state_dir / "kube-scheduler.yaml"


def settle(
    kubeconfig: Path | None,
    profiles: str,
    webhook_host: str,
    webhook_port: int,
    extender_port: int,
    state_dir: Path | None,
    unprotected: str = "",
) -> Settings:
    """Fill the gaps and check the rest. Raises UserError."""
    config = find_kubeconfig(kubeconfig)
    folder = state_dir or _default_state_dir(config)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ports = _ports(folder, {"webhook": webhook_port, "extender": extender_port, "scheduler": 0})
    except OSError as error:
        raise UserError(f"--state-dir {folder}: {error.strerror or error}") from error
    return Settings(
        kubeconfig=config,
        profiles=scheduler_names(profiles),
        webhook_host=_host(webhook_host),
        webhook_port=ports["webhook"],
        extender_port=ports["extender"],
        scheduler_port=ports["scheduler"],
        state_dir=folder.resolve(),
        unprotected=_protections(unprotected),
    )


def extender_url(kubeconfig: Path | None, state_dir: Path | None) -> str:
    """Where the extender answers that was started for this kubeconfig. Raises UserError if there is none."""
    folder = state_dir or _default_state_dir(find_kubeconfig(kubeconfig))
    port = _remembered(folder / _PORTS_FILE).get("extender")
    if port is None:
        raise UserError(
            f"--extender: nothing in {folder} says where an extender runs (give its URL; in a cluster, "
            "kubectl port-forward to its Pod first)"
        )
    return f"http://{LOOPBACK}:{port}"


def election(mode: str, lease: str, identity: str) -> Election:
    """How it is decided who leads. Raises UserError."""
    if mode not in MODES:
        raise UserError(f'--leader-election: "{mode}" is no way to elect (there are: {", ".join(MODES)})')
    known = LeaseName(*namespaced("--lease", "Lease", lease)) if lease else OUR_LEASE
    return Election(mode, known, identity or socket.gethostname())


def namespaced(option: str, kind: str, text: str) -> tuple[str, str]:
    """Namespace and name of an object that an option names. Raises UserError."""
    namespace, slash, name = text.partition("/")
    if not (slash and _NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
        raise UserError(f'{option}: "{text}" names no {kind} (allowed: NAMESPACE/NAME)')
    return namespace, name


def rules(evict: str, min_runtime: float) -> Rules:
    """Who may be evicted for others. Raises UserError."""
    kinds = frozenset(name.strip() for name in evict.split(",") if name.strip())
    if unknown := kinds - KINDS:
        allowed = ", ".join(sorted(KINDS))
        raise UserError(f"--evict: no such reason: {', '.join(sorted(unknown))} (there are: {allowed})")
    return Rules(kinds, min_runtime)


def find_kubeconfig(given: Path | None) -> Path | None:
    """The file given, else $KUBECONFIG, else None in a Pod with a service account, else ~/.kube/config.

    Raises UserError where there is none.
    """
    named = os.environ.get("KUBECONFIG", "")
    if not given and not named and _in_pod():
        return None
    candidates = [given] if given else [Path(p) for p in named.split(os.pathsep) if p]
    path = next(iter(candidates or [Path.home() / ".kube" / "config"]))
    if not path.is_file():
        source = "--kubeconfig" if given else "KUBECONFIG" if named else "no --kubeconfig, no KUBECONFIG"
        raise UserError(
            f"{source}: no file {path} (give --kubeconfig FILE; for a cluster to try: allaboard local up)"
        )
    _check_kubeconfig(path)
    return path.resolve()


def _in_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and SERVICE_ACCOUNT.is_file()


def _check_kubeconfig(path: Path) -> None:
    """Raises UserError for what is no kubeconfig at all; what it leads to is seen when we connect."""
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"kubeconfig {path} can't be read: {why}") from error
    for key in ("clusters", "contexts", "users"):
        if not isinstance(content, dict) or not isinstance(content.get(key), list):
            raise UserError(f"kubeconfig {path} has no list of {key} (allowed: a file as kubectl takes it)")


def _host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        if _HOST.fullmatch(text):
            return text
    raise UserError(
        f'--webhook-host: "{text}" is no host (allowed: an IP address or a DNS name, without scheme or port)'
    )


def scheduler_names(text: str) -> tuple[str, ...]:
    """The scheduler names in a comma-separated list; raises UserError."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UserError(f"--profiles: name at least one scheduler (default: {DEFAULT_PROFILES})")
    for name in names:
        if not _NAME.fullmatch(name):
            raise UserError(f'--profiles: "{name}" is no scheduler name (allowed: a-z, 0-9, "-" and ".")')
    return names


def _protections(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if unknown := names - PROTECTIONS:
        allowed = ", ".join(sorted(PROTECTIONS))
        raise UserError(
            f"--unprotected: no such protection: {', '.join(sorted(unknown))} (there are: {allowed})"
        )
    return names


def _default_state_dir(kubeconfig: Path | None) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "allaboard" / "dev" / sha256(str(kubeconfig).encode()).hexdigest()[:12]


def _ports(folder: Path, asked: dict[str, int]) -> dict[str, int]:
    """Each port as asked; else as remembered; else a free one. What was found is remembered."""
    file = folder / _PORTS_FILE
    known = _remembered(file)
    found = {part: port or known.get(part) or _free_port() for part, port in asked.items()}
    if found != known:
        file.write_text(json.dumps(found))
    return found


def _remembered(file: Path) -> dict[str, int]:
    """What the file says, {} where it is missing, cut off or nonsense."""
    try:
        found = json.loads(file.read_text())
        return {part: port for part, port in found.items() if isinstance(port, int) and 0 < port < 65536}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
