"""What became of each workload: gang, notes and patch, and what could not be understood."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from allaboard.manifests import Json, Manifest, ManifestError
from allaboard.translate import dynamo, grove
from allaboard.translate.objects import Objects
from allaboard.translate.workloads import owner_of, pod_of
from gangs import contract
from gangs.notes import Note, decode
from gangs.subgroups import decode as subgroups
from webhook import wire
from webhook.arrival import arrives
from webhook.lookup import Lookups
from webhook.mutate import Mutator
from webhook.patch import Operation, pointer
from webhook.pod import Pod


@dataclass(frozen=True, slots=True)
class Report:
    """entries: one a workload, ready to print. problems: lines on what can't be understood."""

    entries: tuple[Json, ...]
    problems: tuple[str, ...]


async def translate(
    manifests: Sequence[Manifest], defaults: Iterable[Manifest], profiles: Sequence[str]
) -> Report:
    """Send a Pod of every workload through the webhook. raises ManifestError for a bad Topology."""
    entries: list[Json] = []
    problems: list[str] = []
    owners = [owner_of(manifest) for manifest in _made(manifests, problems)]
    lookups = Lookups(Objects(owners, defaults), time.monotonic)
    for manifest in owners:
        try:
            pod = _shown(manifest)
        except ManifestError as error:
            problems.append(str(error))
            continue
        if pod is None:
            continue
        operations = await _judge(pod, lookups, profiles)
        notes = (
            decode(_value(pod, operations, "annotations", contract.ANNOTATION_NOTES)) if operations else ()
        )
        entries.append(_entry(manifest, pod, operations, notes))
        problems += [f"{manifest.place()}: {note.message}" for note in notes if note.blocking]
    return Report(tuple(_shared(entries)), tuple(problems))


def _made(manifests: Sequence[Manifest], problems: list[str]) -> Iterator[Manifest]:
    """The manifests, and in the place of what operators take apart what they make of it."""
    bindings = [manifest for manifest in manifests if manifest.kind == grove.BINDING]
    for manifest in manifests:
        try:
            asked = dynamo.podcliqueset_of(manifest) if manifest.kind == dynamo.KIND else manifest
        except ManifestError as error:
            problems.append(str(error))
            continue
        try:
            yield from grove.made_of(asked, bindings) if asked.kind == grove.KIND else (manifest,)
        except ManifestError as error:
            # Its author has never seen the PodCliqueSet that Dynamo makes of it.
            made = f"{manifest.title}: as {asked.title}" if asked is not manifest else asked.title
            problems.append(str(error).replace(asked.title, made, 1))


def _shown(manifest: Manifest) -> Pod | None:
    body = pod_of(manifest)
    if body is None:
        return None
    try:
        return wire.parse(orjson.dumps(wire.review(body), default=str)).pod
    except wire.MalformedReviewError as error:
        field, _, problem = str(error).removeprefix("AdmissionReview: ").partition(": ")
        within = "" if manifest.kind == "Pod" else "spec.template."
        raise manifest.wrong(within + field, problem) from error


async def _judge(pod: Pod, lookups: Lookups, profiles: Sequence[str]) -> list[Operation]:
    around = await lookups.gather(pod, lambda _pod, _owner: False)
    if not arrives(pod, around.namespace_labels, profiles):
        return []
    return await Mutator(lookups, profiles).operations(pod)


def _entry(manifest: Manifest, pod: Pod, operations: Sequence[Operation], notes: Sequence[Note]) -> Json:
    entry: Json = {"file": manifest.file, "object": manifest.title}
    entry["gang"] = _gang(pod, operations) or "none: each Pod is placed by itself"
    if notes:
        entry["notes"] = [note.message for note in notes]
    entry["patch"] = [dict(operation) for operation in operations] or "none: left as it is"
    return entry


def _gang(pod: Pod, operations: Sequence[Operation]) -> Json:
    def read(key: str) -> str:
        return _value(pod, operations, "annotations", key)

    label = _value(pod, operations, "labels", contract.LABEL_GANG)
    if not operations or not label:
        return {}
    facts = {
        "namespace": pod.namespace,
        "label": label,
        "minMember": int(read(contract.ANNOTATION_MIN_MEMBER) or 1),
        "size": int(read(contract.ANNOTATION_SIZE) or 1),
        "sizeFrom": read(contract.ANNOTATION_SIZE_FROM),
        "required": read(contract.ANNOTATION_TOPOLOGY_REQUIRED),
        "preferred": read(contract.ANNOTATION_TOPOLOGY_PREFERRED),
    }
    path = read(contract.ANNOTATION_SUBGROUPS)
    told = {
        **facts,
        "subgroups": orjson.loads(path) if subgroups(path) else [],
        "minSubGroup": int(read(contract.ANNOTATION_MIN_SUBGROUP) or 0),
        "after": read(contract.ANNOTATION_AFTER),
    }
    return {key: value for key, value in told.items() if value}


def _value(pod: Pod, operations: Sequence[Operation], field: str, key: str) -> str:
    """The value that a label or annotation has after the patch, "" where there is none."""
    for operation in operations:
        if operation["path"] == pointer("metadata", field, key):
            return str(operation.get("value", ""))
        if operation["path"] == pointer("metadata", field):
            return str(operation["value"].get(key, ""))
    return (pod.labels if field == "labels" else pod.annotations).get(key, "")


def _shared(entries: Sequence[Json]) -> list[Json]:
    """NVCF: all owners of a partition are one gang, and all of their Pods must board at once."""
    sums: dict[tuple[str, str], int] = {}
    for gang in map(_partition, entries):
        if gang:
            key = (gang["namespace"], gang["label"])
            sums[key] = sums.get(key, 0) + gang["size"]
    return [_summed(entry, sums) for entry in entries]


def _partition(entry: Json) -> Json:
    gang = entry["gang"]
    return gang if isinstance(gang, dict) and gang.get("sizeFrom") == contract.SIZE_FROM_PARTITION else {}


def _summed(entry: Json, sums: dict[tuple[str, str], int]) -> Json:
    gang = _partition(entry)
    if not gang:
        return entry
    size = sums[gang["namespace"], gang["label"]]
    return {**entry, "gang": {**gang, "minMember": size, "size": size}}
