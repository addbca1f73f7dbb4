"""Queues: who is served first, and how much a queue may hold at most. Pure, like all of gangs/.

Queue objects ──► tree.py ──► ledger.py (what each queue holds, its limits)
                                  │
                  fairness.py ──► turns.py (the order in which gangs are looked at)
"""
