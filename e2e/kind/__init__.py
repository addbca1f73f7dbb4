"""`make e2e-kind`: the scenes on a kind cluster, with Allaboard in Pods by manifests/overlays/kind.

kind create ──► image into nodes ──► GPUs into node status ──► kubectl apply -k ──► scenes ──► kind delete
"""
