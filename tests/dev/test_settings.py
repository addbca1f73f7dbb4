"""What is filled in where the user said nothing, and what is refused where he said something impossible."""

import socket
from pathlib import Path

import pytest

from allaboard.dev.settings import Settings, election, rules, settle
from allaboard.errors import UserError
from extender.leases import Election, LeaseName
from extender.preemption import Rules
from tests.dev.running import once

AWAY = """
{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}],
 contexts: [{name: c, context: {cluster: c, user: u}}]}
"""
COMMANDS = ("dev", "webhook", "extender", "scheduler-config")


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A file; that a cluster answers is another matter."""
    path = tmp_path / "kubeconfig"
    path.write_text(AWAY)
    return path


def settled(
    kubeconfig: Path | None,
    profiles: str = "allaboard",
    host: str = "127.0.0.1",
    ports: tuple[int, int] = (0, 0),
    state: Path | None = None,
    unprotected: str = "",
) -> Settings:
    return settle(kubeconfig, profiles, host, *ports, state, unprotected)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kubeconfig and no state of the user's."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_the_kubeconfig_given_wins_over_the_variable_and_the_variable_over_the_home_folder(
    tmp_path: Path, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / ".kube" / "config"
    home.parent.mkdir(parents=True)
    home.write_text(AWAY)
    assert settled(None).kubeconfig == home
    named = tmp_path / "named"
    named.write_text(AWAY)
    monkeypatch.setenv("KUBECONFIG", f"{named}:{tmp_path / 'another'}")
    assert settled(None).kubeconfig == named
    assert settled(kubeconfig).kubeconfig == kubeconfig


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_kubeconfig_every_command_says_in_one_line_what_to_give(
    command: str, tmp_path: Path
) -> None:
    ended = once(command)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"error: no --kubeconfig, no KUBECONFIG: no file {tmp_path}/home/.kube/config "
        "(give --kubeconfig FILE; for a cluster to try: allaboard local up)\n"
    )


def test_a_kubeconfig_that_is_missing_is_named_with_who_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=f"--kubeconfig: no file {tmp_path}/absent "):
        settled(tmp_path / "absent")
    monkeypatch.setenv("KUBECONFIG", "/absent")
    with pytest.raises(UserError, match="KUBECONFIG: no file /absent "):
        settled(None)


def test_free_ports_are_found_once_and_remembered_in_the_state_folder(
    tmp_path: Path, kubeconfig: Path
) -> None:
    first = settled(kubeconfig, state=tmp_path / "one")
    ports = first.webhook_port, first.extender_port, first.scheduler_port
    assert len(set(ports)) == 3
    assert settled(kubeconfig, state=tmp_path / "one") == first
    assert settled(kubeconfig, state=tmp_path / "two").webhook_port != first.webhook_port


def test_a_port_that_is_given_is_taken_and_remembered_and_the_others_stay(
    tmp_path: Path, kubeconfig: Path
) -> None:
    first = settled(kubeconfig, state=tmp_path / "one")
    second = settled(kubeconfig, ports=(0, 20_001), state=tmp_path / "one")
    assert (second.webhook_port, second.extender_port) == (first.webhook_port, 20_001)
    assert settled(kubeconfig, state=tmp_path / "one").extender_port == 20_001


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"webhook": "x"}', '{"webhook": -1}'])
def test_remembered_ports_that_are_cut_off_or_nonsense_are_found_anew(
    tmp_path: Path, kubeconfig: Path, broken: str
) -> None:
    (tmp_path / "ports.json").write_text(broken)
    ports = settled(kubeconfig, state=tmp_path)
    assert 0 < ports.webhook_port < 65536


def test_each_kubeconfig_has_a_state_folder_of_its_own(tmp_path: Path, kubeconfig: Path) -> None:
    other = tmp_path / "other"
    other.write_text(AWAY)
    one, two = settled(kubeconfig).state_dir, settled(other).state_dir
    assert one != two
    assert one.parent == two.parent == tmp_path / "state" / "allaboard" / "dev"
    assert one.stat().st_mode & 0o077 == 0  # keys lie there


def test_a_state_folder_that_can_not_be_made_is_named(kubeconfig: Path) -> None:
    with pytest.raises(UserError, match=r"--state-dir /dev/null/here: Not a directory"):
        settled(kubeconfig, state=Path("/dev/null/here"))


def test_profiles_are_taken_in_order_and_each_once(kubeconfig: Path) -> None:
    settings = settled(kubeconfig, "allaboard, default-scheduler,allaboard,")
    assert settings.profiles == ("allaboard", "default-scheduler")


@pytest.mark.parametrize(
    ("profiles", "complaint"),
    [
        ("", "--profiles: name at least one scheduler"),
        (" , ", "--profiles: name at least one scheduler"),
        ("allaboard,No Name", '--profiles: "No Name" is no scheduler name'),
        ("-x", '--profiles: "-x" is no scheduler name'),
    ],
)
def test_profiles_that_name_nobody_are_refused(kubeconfig: Path, profiles: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        settled(kubeconfig, profiles)


def test_only_reasons_that_exist_let_queues_evict_gangs() -> None:
    assert rules("preempt, reclaim", 60) == Rules(frozenset({"preempt", "reclaim"}), 60)
    assert rules("", 0) == Rules()
    with pytest.raises(UserError, match=r"--evict: no such reason: all \(there are: preempt, reclaim\)"):
        rules("all", 0)


def test_only_protections_that_exist_can_be_switched_off(kubeconfig: Path) -> None:
    assert settled(kubeconfig, unprotected="guard,barrier").unprotected == {"barrier", "guard"}
    with pytest.raises(
        UserError,
        match=r"no such protection: gate \(there are: barrier, domain, guard, limits, order, preconditions\)",
    ):
        settled(kubeconfig, unprotected="gate,guard")


def test_the_webhook_is_named_to_the_api_server_by_the_host_that_was_given(kubeconfig: Path) -> None:
    assert settled(kubeconfig, host="10.0.0.7", ports=(9443, 0)).webhook_url == "https://10.0.0.7:9443/mutate"
    assert settled(kubeconfig, host="fd00::7", ports=(9443, 0)).webhook_url == "https://[fd00::7]:9443/mutate"


def test_a_port_out_of_range_is_a_usage_error(kubeconfig: Path) -> None:
    ended = once("dev", "--kubeconfig", kubeconfig, "--webhook-port", "65536")
    assert ended.returncode == 2
    assert "65535" in ended.stderr


@pytest.mark.parametrize("host", ["", "http://host", "host:9443", "two words", "ü.example", "-x", "a..b"])
def test_a_host_that_is_none_is_refused_with_what_is_allowed(kubeconfig: Path, host: str) -> None:
    with pytest.raises(UserError, match=rf'--webhook-host: "{host}" is no host \(allowed: an IP address or'):
        settled(kubeconfig, host=host)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("garbage: [", "can't be read: while parsing"),
        ("\0", "can't be read: unacceptable character"),
        ("", "has no list of clusters"),
        ("- a list", "has no list of clusters"),
        ("{clusters: [], contexts: {}}", "has no list of contexts"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_one_line_and_no_trace(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(UserError, match=f"^kubeconfig {path} {complaint}") as refused:
        settled(path)
    assert "\n" not in str(refused.value)


def test_an_api_server_that_is_away_is_one_line_and_no_trace(kubeconfig: Path) -> None:
    ended = once("dev", "--kubeconfig", kubeconfig)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("error: GET /apis/apps/v1/namespaces/kai-scheduler/deployments: 0 Unreach")


def test_who_leads_is_decided_by_our_own_lease_unless_another_is_named() -> None:
    assert election("own", "", "me") == Election(
        "own", LeaseName("allaboard-system", "allaboard-scheduler"), "me"
    )
    assert election("scheduler", "kube-system/mine", "me").lease == LeaseName("kube-system", "mine")
    assert election("none", "", "").identity == socket.gethostname()


@pytest.mark.parametrize(
    ("mode", "lease", "complaint"),
    [
        ("raft", "", r'--leader-election: "raft" is no way to elect \(there are: none, own, scheduler\)'),
        ("own", "mine", r'--lease: "mine" names no Lease \(allowed: NAMESPACE/NAME\)'),
        ("own", "a/b/c", "names no Lease"),
        ("own", "/x", "names no Lease"),
    ],
)
def test_an_election_that_can_not_be_is_refused(mode: str, lease: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        election(mode, lease, "me")
