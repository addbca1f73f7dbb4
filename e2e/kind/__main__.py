"""Plays the scenes; the exit code is 1 when one failed."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from e2e.demo import SCENES, Outcome, console, played, report
from e2e.kind.ground import KindError, Options, ground, install
from e2e.kind.scenes import replaced_while_gangs_wait_and_board, verbs_reached_by_nobody
from e2e.kind.stage import stage
from e2e.kube import KubectlError
from e2e.observer import LostSightError, observed
from e2e.scene import Play, Scene
from e2e.scenes.nvcf import nvcf_legacy_unmodified
from e2e.stage import StageError

# Scenes that need larger cliques than four nodes.
_TOO_LARGE: Final[dict[Scene, str]] = {nvcf_legacy_unmodified: "needs 9 free nodes in one clique"}


async def play_all(options: Options, folder: Path) -> list[Outcome]:
    """Make the ground, install, play, clear away; on SIGTERM as on Ctrl-C."""
    playing = asyncio.current_task()
    assert playing is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    console.print(f"Creating the kind cluster {options.name} with 1 + 8 nodes …")
    async with ground(options, folder) as kube:
        console.print("Installing manifests/overlays/kind …")
        await install(kube)
        async with observed(kube.kubeconfig) as observer:
            await kube.namespace("others")
            play = Play(await stage(kube), observer, lambda line: console.print(f"  {line}", soft_wrap=True))
            outcomes = [await played(number, scene, play) for number, scene in enumerate(_scenes(options), 1)]
            console.print(f"\nThe checker looked {observer.checker.looks} times.")
            return outcomes


def _scenes(options: Options) -> list[Scene]:
    for scene, why in _TOO_LARGE.items():
        console.print(f"Not played here: {scene.__name__} ({why})")
    usual = [scene for scene in SCENES if scene not in _TOO_LARGE]
    return [*usual, replaced_while_gangs_wait_and_board, verbs_reached_by_nobody(options)]


def main() -> int:
    """Play and report."""
    try:
        with tempfile.TemporaryDirectory(prefix="allaboard-kind-") as folder:
            return report(asyncio.run(play_all(Options.of_environment(), Path(folder))))
    except (KindError, StageError, KubectlError, LostSightError, AssertionError) as error:
        console.print(f"[red]error[/red] {error}", soft_wrap=True)
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("stopped; nothing is left running")
    return 1


if __name__ == "__main__":
    sys.exit(main())
