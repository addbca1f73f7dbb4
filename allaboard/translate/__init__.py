"""What the webhook would do with a manifest, told without a cluster.

files ──../manifests.py──► objects ──workloads.py──► a Pod each, as its controller would create it
                           │ objects.py: they answer the webhook's look-ups
                           ▼
                        the webhook itself ──report.py──► gang, notes and patch as YAML
"""
