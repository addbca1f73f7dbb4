"""How a command runs its work, and says what it has to say."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

Result = TypeVar("Result")


def ask(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work to its end in a new event loop; its result."""
    import uvloop

    return uvloop.run(work)


def say(line: str) -> None:
    """A line to people; stdout is for what other programs read."""
    typer.echo(line, err=True)
