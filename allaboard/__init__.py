"""The command line: serve the parts, run a local control plane, run both against any cluster."""
