#!/bin/bash
# Builds the kind binary, a kind node image and a Python base image from Debian packages and Go modules alone.
# Steps: bins, rootfs, pyroot, images, node; without an argument all of them (14 min on 2 cores).
# Needs root, go, mmdebstrap and a dockerd at $DOCKER_HOST (run.sh starts one).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:?is set by run.sh}
kube=v1.36.3                      # as in go/go.mod
suite=bookworm                    # its systemd still speaks cgroup v1
mirror=${MIRROR:-}                 # empty: mmdebstrap's default
export NODE_IMAGE=${NODE_IMAGE:-kind-node:$kube} PY_IMAGE=${PY_IMAGE:-debian-py:$suite}
export CGO_ENABLED=0 GOFLAGS='-mod=mod -trimpath -buildvcs=false'
TIMEFORMAT='%0R s (cpu %0U+%0S s)'

do_bins() {
    local flags='-s -w' p
    for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $p.gitVersion=$kube -X $p.gitMajor=1 -X $p.gitMinor=${kube:3:2} -X $p.gitTreeState=clean"
    done
    cd "$here/go"
    rm -rf "$out/bin" && mkdir -p "$out/bin"
    go build -o "$out/bin/" -ldflags "$flags" ./dns ./pause sigs.k8s.io/kind go.etcd.io/etcd/server/v3 \
        k8s.io/kubernetes/cmd/{kubelet,kubeadm,kubectl,kube-proxy,kube-apiserver,kube-controller-manager,kube-scheduler}
    mv "$out/bin/server" "$out/bin/etcd"
    mv "$out/bin/dns" "$out/bin/coredns"
}

# debian DIR PACKAGES: a minimal Debian tree
debian() {
    rm -rf "$1"
    mmdebstrap --quiet --mode=root --variant=minbase --include="$2" --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/'{doc,man,locale,info}'/*' "$suite" "$1" ${mirror:+"$mirror"}
}

do_rootfs() {
    debian "$out/rootfs" systemd,containerd,runc,containernetworking-plugins,iptables,nftables,conntrack,iproute2,ethtool,socat,mount,procps,ca-certificates
    cd "$out/rootfs"
    # no units meant for a real machine: they would set the host's kernel
    rm -rf etc/systemd/system/*.wants lib/systemd/system/{multi-user,local-fs,timers}.target.wants
    rm -f lib/systemd/system/sysinit.target.wants/{sys-,proc-,dev-,kmod,systemd-{sysctl,binfmt,modules,udev,update-utmp}}*
    ln -sf /lib/systemd/system/multi-user.target etc/systemd/system/default.target
}

do_pyroot() {
    debian "$out/pyroot" python3,ca-certificates
    tar -C "$out/pyroot" -c . | docker import - "$PY_IMAGE" >/dev/null
}

# image NAME BINARY: one layer holding $out/img/BINARY
image() {
    tar -C "$out/img/$2" --owner=0 --group=0 -c . | docker import -c 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' \
        -c "ENTRYPOINT [\"/usr/local/bin/$2\"]" - "$1" >/dev/null
    names+=("$1")
}

do_images() {
    local names=() d=$out/img b f n list
    rm -rf "$d"
    for b in kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns pause; do
        mkdir -p "$d/$b"/{usr/local/bin,etc,run,tmp}
        ln "$out/bin/$b" "$d/$b/usr/local/bin/"
    done
    # kube-proxy calls iptables, nft and conntrack: bring them and their libraries
    cd "$out/rootfs"
    for f in usr/sbin/{xtables-nft-multi,nft,conntrack} usr/lib/x86_64-linux-gnu/xtables/*.so; do
        echo "/$f"
        chroot . ldd "/$f" | grep -o '/[^ ]*' || true
    done | sort -u | while read -r f; do cp -L --parents ".$f" "$d/kube-proxy/"; done
    for n in iptables ip6tables; do
        for f in $n $n-save $n-restore; do ln -s xtables-nft-multi "$d/kube-proxy/usr/sbin/$f"; done
    done
    # the names and tags that kubeadm will ask for
    list=$("$out/bin/kubeadm" config images list --kubernetes-version $kube)
    for n in $list; do
        b=${n##*/}
        image "$n" "${b%%:*}"
    done
    docker save -o "$out/images.tar" "${names[@]}"
}

do_node() {
    local r=$out/rootfs u
    cp -r "$here"/node/. "$r/"
    echo $kube >"$r/kind/version"
    install -m755 "$out"/bin/{kubelet,kubeadm,kubectl} "$r/usr/bin/"
    mkdir -p "$r"/etc/kubernetes/manifests "$r"/etc/systemd/system/multi-user.target.wants
    for u in containerd kubelet dns-relay; do
        ln -sf "../$u.service" "$r/etc/systemd/system/multi-user.target.wants/"
    done
    tar -C "$r" -c . | docker import -c 'ENV container=docker' - "$NODE_IMAGE-bare" >/dev/null
    # put the images, still packed, into the node's containerd store
    docker rm -f kind-preload >/dev/null 2>&1 || true
    docker run --name kind-preload --stop-signal SIGRTMIN+3 -v "$out/images.tar:/images.tar:ro" \
        --entrypoint bash "$NODE_IMAGE-bare" -ec '
        containerd & pid=$!
        until ctr version >/dev/null 2>&1; do sleep 0.2; done
        ctr -n k8s.io images import --no-unpack /images.tar
        kill $pid; wait $pid || true' >"$out/preload.log" 2>&1
    docker commit -c 'ENTRYPOINT ["/usr/local/sbin/node-start"]' -c 'CMD []' kind-preload "$NODE_IMAGE" >/dev/null
    docker rm kind-preload >/dev/null
}

step() {
    mkdir -p "$out"
    { time "do_$1"; } 2>&1 | sed -u "s/^/$1: /" | tee -a "$out/build.log"
}

if [ $# = 0 ]; then
    step rootfs & roots=$!
    step pyroot & py=$!
    step bins
    wait $roots
    wait $py
    step images
    step node
else
    for s in "$@"; do step "$s"; done
fi
