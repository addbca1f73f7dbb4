"""`allaboard gangs`, `explain` and `top` against an HTTP server that answers as an extender does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from allaboard.cli import app
from allaboard.errors import UserError
from allaboard.status.tables import age, bar

LLM = {
    "namespace": "default",
    "label": "g-1",
    "name": "default/llm",
    "phase": "Waiting",
    "here": 5,
    "floor": 5,
    "size": 6,
    "bound": 0,
    "domain": "",
    "created": 0.0,
    "reason": "GangWaiting",
    "message": "Gang default/llm: 5 of 5 members are here; needs 5 free nodes. Closest: c1 has 4.",
}
OTHER = {**LLM, "namespace": "team", "name": "team/sim", "phase": "Aboard", "domain": "c0", "bound": 5}
DOMAINS = [{"domain": "c1", "have": 4, "need": 5, "blockers": [{"why": "cordoned", "nodes": 2}]}]
CLIQUES = [{"clique": "c0", "nodes": 18, "gpus": 72, "used": 36, "promised": 18}]
PAGES: dict[str, Any] = {
    "/debug/gangs": [LLM, OTHER],
    "/debug/gang/default/llm": {**LLM, "domains": DOMAINS, "members": [], "hints": []},
    "/debug/gang/team/sim": {**OTHER, "reason": "", "message": "", "domains": [], "members": [], "hints": []},
    "/debug/cliques": CLIQUES,
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"error": "no such gang"} if body is None else body).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(url: str, *line: str) -> Result:
    return CliRunner().invoke(app, [*line, "--extender", url])


def test_gangs_are_a_line_each_and_nothing_is_cut_when_piped(url: str) -> None:
    lines = run(url, "gangs", "-o", "wide").stdout.splitlines()
    assert lines[0].split() == [
        "NAMESPACE", "GANG", "PHASE", "MEMBERS", "BOUND", "DOMAIN", "AGE", "REASON", "MESSAGE",
    ]  # fmt: skip
    assert lines[1].split()[:7] == ["default", "llm", "Waiting", "5/5", "of", "6", "0"]
    assert lines[1].rstrip().endswith("Closest: c1 has 4.")
    assert len(lines) == 3


def test_one_namespace_is_not_repeated_on_each_line(url: str) -> None:
    lines = run(url, "gangs", "-n", "team").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["GANG", "sim"]


def test_a_namespace_without_gangs_says_so(url: str) -> None:
    assert run(url, "gangs", "-n", "empty").stdout == "no gangs\n"


@pytest.mark.parametrize(("form", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_scripts_get_what_the_extender_said(url: str, form: str, parse: Any) -> None:
    assert parse(run(url, "gangs", "-o", form).stdout) == [LLM, OTHER]


def test_a_waiting_gang_is_explained_domain_by_domain_with_exit_code_2(url: str) -> None:
    found = run(url, "explain", "llm")
    assert found.exit_code == 2
    assert found.stdout.splitlines()[:2] == ["Gang default/llm is Waiting", LLM["message"]]
    assert found.stdout.splitlines()[-1].split() == ["c1", "4", "5", "1", "2", "cordoned"]


def test_moves_that_would_help_the_head_of_a_queue_are_told_as_a_dry_run(url: str) -> None:
    moves = [
        {"gang": "team/a", "members": 2, "target": "c2"},
        {"gang": "team/b", "members": 1, "target": ""},
    ]
    told = {**PAGES["/debug/gang/default/llm"], "proposal": {"domain": "c1", "moves": moves}}
    PAGES["/debug/gang/default/moving"] = told
    assert run(url, "explain", "moving").stdout.splitlines()[-1] == (
        "It would fit c1 if others moved: team/a (2) to c2, team/b (1) to other nodes. Nobody is moved."
    )


def test_a_gang_aboard_is_explained_with_exit_code_0(url: str) -> None:
    found = run(url, "explain", "team/sim")
    assert (found.exit_code, found.stdout) == (0, "Gang team/sim is Aboard in c0\n")


def test_what_the_extender_does_not_know_is_an_error(url: str) -> None:
    assert str(run(url, "explain", "nobody").exception) == "no such gang"


def test_cliques_are_bars_that_need_no_colours(url: str) -> None:
    _, line = run(url, "top").stdout.splitlines()
    assert line.split() == ["c0", "18", "72", "36", "18", "18", "#" * 18 + "=" * 9 + "." * 9]


def test_piped_output_has_no_colours(url: str) -> None:
    assert "\x1b" not in run(url, "gangs").stdout + run(url, "top").stdout


def test_an_unknown_format_is_named_with_those_allowed(url: str) -> None:
    error = run(url, "gangs", "-o", "xml").exception
    assert isinstance(error, UserError)
    assert str(error) == '--output: "xml" is no format (allowed: table, wide, json, yaml)'


def test_nobody_there_is_one_sentence_that_says_what_to_do() -> None:
    error = run("http://127.0.0.1:1", "gangs").exception
    assert isinstance(error, UserError)
    assert "no extender answers on http://127.0.0.1:1" in str(error)
    assert "kubectl port-forward" in str(error)


def test_without_a_url_the_extender_of_this_kubeconfig_is_asked(url: str, tmp_path: Path) -> None:
    port = int(url.rsplit(":", 1)[1])
    (tmp_path / "ports.json").write_text(json.dumps({"extender": port}))
    found = CliRunner().invoke(app, ["gangs", "--state-dir", str(tmp_path), "-o", "json"])
    assert json.loads(found.stdout) == [LLM, OTHER]


def test_without_any_extender_the_folder_is_named_where_one_was_looked_for(tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["gangs", "--state-dir", str(tmp_path)]).exception
    assert isinstance(error, UserError)
    assert str(tmp_path) in str(error)


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0s"), (0, "0s"), (47, "47s"), (3599, "59m"), (3600, "1h"), (200_000, "2d")]
)
def test_ages_are_written_as_kubectl_writes_them(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(("gpus", "used", "promised"), [(0, 0, 0), (4, 9, 3), (72, 71, 1), (3, 1, 1)])
def test_a_bar_is_always_of_one_length(gpus: int, used: int, promised: int) -> None:
    assert len(bar({"gpus": gpus, "used": used, "promised": promised}).plain) == 36
