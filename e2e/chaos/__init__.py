"""Hundreds of faults over hundreds of gangs on the real control plane; the independent checker judges.

    workload ──► gangs come and go          judge ──► looks all the time, past the proxy
    faults   ──► one after another          run   ──► heals, waits until all are aboard, counts

Imports nothing of the product.
"""
