"""What our roles allow, and what was asked of the API server: two sets that should be equal.

manifests ──► allowed()          audit log ──► asked(), refused()
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

_OURS: Final = "system:serviceaccount:allaboard-system:"
# Begins the User-Agent of kube-scheduler, whose rights are those that Kubernetes gives it.
_KUBE_SCHEDULER: Final = "kube-scheduler/"
_LEASES: Final = "coordination.k8s.io"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource. name: "" for any object of it."""

    account: str
    group: str
    resource: str
    verb: str
    name: str = ""

    def covers(self, other: "Right") -> bool:
        """Whether who has this may do the other."""
        mine = (self.account, self.group, self.resource, self.verb)
        theirs = (other.account, other.group, other.resource, other.verb)
        return mine == theirs and self.name in ("", other.name)


def allowed(objects: Iterable[Json]) -> set[Right]:
    """Every right that roles of ours give to a service account of ours."""
    objects = list(objects)
    rules = {(o["kind"], o["metadata"]["name"]): o["rules"] for o in objects if o["kind"].endswith("Role")}
    found = set()
    for binding in (o for o in objects if o["kind"].endswith("RoleBinding")):
        reference = binding["roleRef"]
        for rule in rules.get((reference["kind"], reference["name"]), ()):
            for subject in binding["subjects"]:
                found |= set(_rights(subject["name"], rule))
    return found


def _rights(account: str, rule: Json) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(account, group, resource, verb, name)


def events(log: Path) -> list[Json]:
    """What the API server wrote down of our accounts; lines that are still being written are left out."""
    lines = log.read_text().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return [row for row in rows if row["user"]["username"].startswith(_OURS) and "objectRef" in row]


def asked(rows: Iterable[Json]) -> set[Right]:
    """What we asked for. kube-scheduler counts only for our Lease."""
    return {
        _right(row)
        for row in rows
        if not by_kube_scheduler(row) or row["objectRef"].get("apiGroup") == _LEASES
    }


def by_kube_scheduler(row: Json) -> bool:
    """Whether kube-scheduler asked, which shares its account with the extender."""
    return str(row.get("userAgent", "")).startswith(_KUBE_SCHEDULER)


def refused(rows: Iterable[Json]) -> set[Right]:
    """What we asked for in vain, kube-scheduler too."""
    decision = "authorization.k8s.io/decision"
    return {_right(row) for row in rows if row.get("annotations", {}).get(decision) == "forbid"}


def unused(rights: Iterable[Right], wanted: Iterable[Right]) -> set[Right]:
    """Rights that nothing wanted was covered by."""
    wanted = list(wanted)
    return {right for right in rights if not any(right.covers(row) for row in wanted)}


def _right(row: Json) -> Right:
    where = row["objectRef"]
    part = f"/{where['subresource']}" if where.get("subresource") else ""
    account = row["user"]["username"].removeprefix(_OURS)
    resource = where["resource"] + part
    return Right(account, where.get("apiGroup", ""), resource, row["verb"], where.get("name", ""))
