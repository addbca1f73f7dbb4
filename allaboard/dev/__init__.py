"""`allaboard dev`: webhook, extender and kube-scheduler outside the cluster, against any kubeconfig.

settings ──► install (CRDs, defaults) ──► supervisor (three processes) ──► register ──► ready
"""
