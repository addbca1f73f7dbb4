"""A real control plane on this machine, without containers: what tests, demo and a newcomer's laptop run on.

    binaries (found, or built once by build) ──► cluster: up · down · status ──► nodes (fake racks)
                                                   │
             pki · components (flags, pure) · processes (daemons, pid files) · layout (the state folder)

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the stock ones; only the kubelets
are played, by KWOK. Linux only: who owns a pid is read from /proc.
"""
