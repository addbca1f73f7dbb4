"""What runs in a Pod of the cluster, where manifests have registered the webhook already.

certificates (a Secret that all replicas share ──► file, caBundle) ──► webhook (serves by that file)
"""
