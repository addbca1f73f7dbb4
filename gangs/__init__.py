"""The domain: gangs, room, plans and permits.

Pure: no I/O, no clock, no Kubernetes client. Values in, values out; whoever calls hands in the time.
"""
