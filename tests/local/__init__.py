"""The local cluster: binaries, processes, nodes and the life of a cluster."""
