"""The admission side: a Pod comes in, one JSON patch goes out.

app (HTTP, TLS) ─► wire (AdmissionReview) ─► mutate ─► lookup (owner, namespace, Topologies)
                                               └─► dialects ─► Ask ─► render ─► patch
"""
