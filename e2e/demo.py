"""`make demo`: the main job on a real control plane, in six scenes.

Every scene is played under the eyes of the checker. The last line counts scenes; the exit code is 1 when
one of them failed.
"""

import asyncio
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from e2e.kube import KubectlError
from e2e.observer import LostSightError, observed
from e2e.pods import GPUS
from e2e.scene import Play, Scene
from e2e.scenes.crash import extender_killed_at_the_barrier
from e2e.scenes.kai import kai_statefulset_unmodified
from e2e.scenes.nvcf import nvcf_legacy_unmodified
from e2e.scenes.rivals import two_gangs_one_clique
from e2e.scenes.shortage import too_big_says_what_is_missing
from e2e.scenes.trap import whole_gang_in_the_free_clique
from e2e.stage import CLIQUE_NODES, StageError, set_up

SCENES: Final[tuple[Scene, ...]] = (
    kai_statefulset_unmodified,
    whole_gang_in_the_free_clique,
    too_big_says_what_is_missing,
    two_gangs_one_clique,
    nvcf_legacy_unmodified,
    extender_killed_at_the_barrier,
)
_CLIQUES: Final = 3

console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scene went. failure: "" or what was not so."""

    title: str
    seconds: float
    failure: str


async def play_all() -> list[Outcome]:
    """Set the stage, play every scene, clear away; on SIGTERM as on Ctrl-C."""
    playing = asyncio.current_task()
    assert playing is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    console.print(
        f"Starting a control plane with {_CLIQUES} cliques of {CLIQUE_NODES} nodes with {GPUS} GPUs, "
        "and Allaboard beside it …"
    )
    async with set_up(f"demo-{os.getpid()}", _CLIQUES) as stage, observed(stage.kube.kubeconfig) as observer:
        await stage.kube.namespace("others")
        play = Play(stage, observer, lambda line: console.print(f"  {line}", soft_wrap=True))
        outcomes = [await played(number, scene, play) for number, scene in enumerate(SCENES, 1)]
        console.print(f"\nThe checker looked {observer.checker.looks} times.")
        return outcomes


async def played(number: int, scene: Scene, play: Play) -> Outcome:
    """Play one scene and tell how it went; a failed one is cleared away."""
    title = (scene.__doc__ or scene.__name__).strip()
    console.print(f"\n[bold]Scene {number}[/bold] {title}", soft_wrap=True)
    started, failure = time.monotonic(), ""
    try:
        await scene(play)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        console.print(f"  [red]failed[/red] {failure}", soft_wrap=True)
        await _clear_stage(play)
    return Outcome(title, time.monotonic() - started, failure)


async def _clear_stage(play: Play) -> None:
    """A failed scene must not spoil the next."""
    names = [n["metadata"]["name"] for n in await play.stage.kube.items("namespaces")]
    await play.stage.kube.clear(*(n for n in names if n.startswith("scene-") or n == "others"))


def report(outcomes: list[Outcome]) -> int:
    """Print the table and the count; the exit code."""
    table = Table(title="Allaboard on kube-scheduler", title_justify="left")
    for column in ("", "scene", "seconds", "verdict"):
        table.add_column(column)
    for number, outcome in enumerate(outcomes, 1):
        verdict = f"[red]{outcome.failure}[/red]" if outcome.failure else "[green]as promised[/green]"
        table.add_row(str(number), outcome.title, f"{outcome.seconds:.1f}", verdict)
    console.print(table)
    passed = sum(not outcome.failure for outcome in outcomes)
    console.print(f"{passed} of {len(outcomes)} scenes passed")
    return 0 if passed == len(outcomes) else 1


def main() -> int:
    """Play and report."""
    try:
        return report(asyncio.run(play_all()))
    except (StageError, KubectlError, LostSightError) as error:
        console.print(f"[red]error[/red] {error}", soft_wrap=True)
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("stopped; nothing is left running")
    return 1


if __name__ == "__main__":
    sys.exit(main())
