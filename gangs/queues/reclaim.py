"""Whether a queue may take back from others what is its own.

Below the queue that both have in common: whoever takes stays within its quota, and whoever loses keeps
its own. So what was reclaimed can't be reclaimed in return.
"""

from collections.abc import Mapping

from gangs.queues.amounts import NOTHING, Amounts
from gangs.queues.ledger import Ledger


def may_reclaim(ledger: Ledger, taker: str, need: Amounts, losses: Mapping[str, Amounts]) -> bool:
    """Whether the taker may have what it needs from queues that lose so much. All are leaves."""
    lost = _along_paths(ledger, losses)
    for loser in losses:
        ours, theirs = _apart(ledger, taker, loser)
        if not all(_within(ledger, queue, need) for queue in ours):
            return False
        if not all(_keeps_quota(ledger, queue, lost[queue]) for queue in theirs):
            return False
    return True


def _along_paths(ledger: Ledger, losses: Mapping[str, Amounts]) -> dict[str, Amounts]:
    lost: dict[str, Amounts] = {}
    for loser, amounts in losses.items():
        for queue in ledger.tree.paths.get(loser, ()):
            lost[queue] = lost.get(queue, NOTHING) + amounts
    return lost


def _apart(ledger: Ledger, one: str, other: str) -> tuple[list[str], list[str]]:
    """The two paths as far as they have nothing in common."""
    paths = ledger.tree.paths
    ours, theirs = paths.get(one, ()), paths.get(other, ())
    return [q for q in ours if q not in theirs], [q for q in theirs if q not in ours]


def _within(ledger: Ledger, queue: str, need: Amounts) -> bool:
    rows = zip(ledger.held(queue).values, need.values, ledger.tree.queues[queue].quota.values, strict=True)
    return all(more == 0 or held + more <= quota for held, more, quota in rows)


def _keeps_quota(ledger: Ledger, queue: str, lost: Amounts) -> bool:
    rows = zip(ledger.held(queue).values, lost.values, ledger.tree.queues[queue].quota.values, strict=True)
    return all(less == 0 or held - less >= quota for held, less, quota in rows)
