"""`make chaos`: python -m e2e.chaos --help."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from e2e.chaos.faults import NAMES
from e2e.chaos.run import Outcome, Plan, Say, run
from e2e.stage import StageError


def main(
    faults: Annotated[int, typer.Option(min=1, help="How many faults in all.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed does the same harm in the same order.")] = 1,
    gangs: Annotated[int, typer.Option(min=1, help="How many gangs are in the cluster at once.")] = 10,
    only: Annotated[
        str, typer.Option(help=f"Kinds of faults, comma-separated. All: {', '.join(NAMES)}.")
    ] = "",
    unprotected: Annotated[
        str, typer.Option(help="Negative control: protections switched off (barrier, guard, preconditions).")
    ] = "",
    logs: Annotated[Path | None, typer.Option(help="Keep our parts' logs in this folder.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only progress and the closing line.")] = False,
) -> None:
    """Do harm to Allaboard on a local control plane of its own while gangs come and go.

    The checker reads only the API. Exit code 1 on any violation and on any gang that never boards.
    """
    plan = Plan(faults, seed, gangs, _words(only), _words(unprotected), logs)
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
    unknown = sorted(set(plan.only) - set(NAMES))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} (there are: {', '.join(NAMES)})", param_hint="--only")

    def say(line: str) -> None:
        if not (quiet and line.startswith("  ")):
            typer.echo(line)

    try:
        outcome = asyncio.run(_stoppable(plan, say))
    except (KeyboardInterrupt, asyncio.CancelledError):
        typer.echo("stopped; nothing is left running", err=True)
        sys.exit(1)
    except StageError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    for violation in outcome.violations:
        typer.echo(f"VIOLATION {violation.promise}: {violation.subject}: {violation.detail}")
    for name in outcome.left:
        typer.echo(f"LEFT BEHIND {name}")
    typer.echo(f"seed {seed}; the checker looked {outcome.looks} times")
    typer.echo(outcome.line())
    sys.exit(0 if outcome.kept else 1)


async def _stoppable(plan: Plan, say: Say) -> Outcome:
    """SIGTERM ends the run in order, as Ctrl-C does."""
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await run(plan, say)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


if __name__ == "__main__":
    typer.run(main)
