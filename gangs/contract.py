"""Every name that others see or write: labels, annotations, gates, scheduler names.

One module owns these strings (docs/design vocabulary); no other file spells them out.
"""

from typing import Final

SCHEDULER_NAME: Final = "allaboard"
KAI_SCHEDULER_NAME: Final = "kai-scheduler"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

GATE: Final = "allaboard.dev/boarding"

LABEL_GANG: Final = "allaboard.dev/gang"
LABEL_SUBGROUP: Final = "allaboard.dev/subgroup"
LABEL_QUEUE: Final = "kai.scheduler/queue"
DEFAULT_QUEUE: Final = "default-queue"
DEFAULT_PARENT_QUEUE: Final = "default-parent-queue"

# Opt-out on Pod or namespace, opt-in for every workload of a namespace.
LABEL_WEBHOOK: Final = "allaboard.dev/webhook"
WEBHOOK_IGNORE: Final = "ignore"
LABEL_ENABLED: Final = "allaboard.dev/enabled"

# Floor: members that must board at once. Size: members the workload wants in all.
ANNOTATION_MIN_MEMBER: Final = "allaboard.dev/min-member"
ANNOTATION_SIZE: Final = "allaboard.dev/size"
# Where the live floor and size are read from; absent: the two annotations are the truth.
ANNOTATION_SIZE_FROM: Final = "allaboard.dev/size-from"
SIZE_FROM_OWNER: Final = "owner"  # replicas, or min(parallelism, completions left), of the controller
SIZE_FROM_PARTITION: Final = "nvcf-partition"  # sum over the owners in the namespace with this NVCF index
ANNOTATION_TOPOLOGY_REQUIRED: Final = "allaboard.dev/topology-required"
ANNOTATION_TOPOLOGY_PREFERRED: Final = "allaboard.dev/topology-preferred"
# The path of subgroups from the gang down to the Pod's own (gangs/subgroups.py); how many of the outermost
# must be whole (absent: all that there are); the gang label of one that must be aboard before this may board.
ANNOTATION_SUBGROUPS: Final = "allaboard.dev/subgroups"
ANNOTATION_MIN_SUBGROUP: Final = "allaboard.dev/min-subgroup"
ANNOTATION_AFTER: Final = "allaboard.dev/after"
# How long a gang may run on with fewer members than its floor before the rest is evicted (a Go duration;
# absent or negative: for ever).
ANNOTATION_STALENESS: Final = "allaboard.dev/staleness-grace-period"
ANNOTATION_NOTES: Final = "allaboard.dev/notes"
ANNOTATION_PLAN: Final = "allaboard.dev/plan"
ANNOTATION_EVICTED_FOR: Final = "allaboard.dev/evicted-for"  # the gang for which this Pod has to go

KAI_TOPOLOGY: Final = "kai.scheduler/topology"
KAI_TOPOLOGY_REQUIRED: Final = "kai.scheduler/topology-required-placement"
KAI_TOPOLOGY_PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
KAI_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
KAI_NON_PREEMPTIBLE: Final = "non-preemptible"
KAI_POD_GROUP: Final = "pod-group-name"
KAI_STALENESS: Final = "kai.scheduler/staleness-grace-period"
KAI_BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"

KAI_SEGMENT: Final = "kai.scheduler/segment-size"
KAI_SEGMENT_REQUIRED: Final = "kai.scheduler/segment-topology-required-placement"
KAI_SEGMENT_PREFERRED: Final = "kai.scheduler/segment-topology-preferred-placement"
KAI_SUBGROUP: Final = "kai.scheduler/subgroup-name"
KAI_PRIORITY: Final = "priorityClassName"
KAI_RAY_PRIORITY: Final = "ray.io/priority-class-name"

NVCF_INDEX: Final = "dra.nvcf.nvidia.io/required-nvlink-domain-index"
NVCF_PARTITION: Final = "dra.nvcf.nvidia.io/nvlink-domain-partition"
NVCF_INSTANCE_TYPE: Final = "nvca.nvcf.nvidia.io/workload-instance-type"
NVCF_MINISERVICE: Final = "miniservice"

COSCHEDULING_GROUP: Final = "scheduling.x-k8s.io/pod-group"
LIGHTWEIGHT_GROUP: Final = "pod-group.scheduling.sigs.k8s.io/name"
LIGHTWEIGHT_MIN: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
KOORDINATOR_GROUP: Final = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MIN: Final = "gang.scheduling.koordinator.sh/min-available"

YUNIKORN_GROUP: Final = "yunikorn.apache.org/task-group-name"
YUNIKORN_GROUPS: Final = "yunikorn.apache.org/task-groups"
YUNIKORN_APP: Final = "yunikorn.apache.org/app-id"
YUNIKORN_APP_LABEL: Final = "applicationId"

LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_REVISION: Final = "leaderworkerset.sigs.k8s.io/template-revision-hash"
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
LWS_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_INDEX: Final = "jobset.sigs.k8s.io/job-index"
JOBSET_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"

KUBEFLOW_JOB: Final = "training.kubeflow.org/job-name"
KUBEFLOW_OPERATOR: Final = "training.kubeflow.org/operator-name"
KUBEFLOW_TYPE: Final = "training.kubeflow.org/replica-type"
KUBEFLOW_INDEX: Final = "training.kubeflow.org/replica-index"
SPARK_NAME: Final = "spark-app-name"
SPARK_APP: Final = "spark-app-selector"
RAY_CLUSTER: Final = "ray.io/cluster"
RAY_GROUP: Final = "ray.io/group"

GROVE_PODGANG: Final = "grove.io/podgang"
GROVE_CLIQUE: Final = "grove.io/podclique"
GROVE_BASE: Final = "grove.io/base-podgang"
GROVE_TOPOLOGY: Final = "grove.io/topology-name"

SYSTEM_NAMESPACE: Final = "kube-system"  # whose Pods are never ours

NODE_CLIQUE: Final = "nvidia.com/gpu.clique"
NODE_HOSTNAME: Final = "kubernetes.io/hostname"
GPU: Final = "nvidia.com/gpu"
NVIDIA_PREFIX: Final = "nvidia.com/"
