#!/bin/bash
# make e2e-kind where no image can be pulled: dockerd on a private socket, images built once, scenes, all stopped again.
#
#   apt-get install docker.io mmdebstrap iptables      as root, once
#   e2e/kind/airgapped/run.sh                          OUT: where built things are kept (3 GB)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export OUT=${OUT:-${XDG_CACHE_HOME:-$HOME/.cache}/allaboard/kind}
state=$OUT/state
export DOCKER_HOST=unix://$state/docker.sock DOCKER_BUILDKIT=0
export KIND_NODE_IMAGE=${KIND_NODE_IMAGE:-kind-node:v1.36.3} KIND=$OUT/bin/kind
base=debian-py:bookworm
# Kubelets set the first three for the whole machine; nine nodes need more than the usual 128 of the last.
settings=(vm.overcommit_memory kernel.panic kernel.panic_on_oops fs.inotify.max_user_instances)

for program in dockerd mmdebstrap iptables go; do
    command -v $program >/dev/null || { echo "error: no $program (apt-get install docker.io mmdebstrap iptables; go.dev/dl)" >&2; exit 1; }
done
mkdir -p "$state"
sysctl "${settings[@]}" >"$state/sysctl"

dockerd -H "$DOCKER_HOST" --data-root "$state/docker" --exec-root "$state/exec" -p "$state/docker.pid" \
    --add-runtime less="$here/runc-less" --default-runtime less >"$state/dockerd.log" 2>&1 &
dockerd=$!

end() {
    [ ! -x "$KIND" ] || "$KIND" delete cluster --name "${KIND_NAME:-allaboard-e2e}" || true
    kill $dockerd 2>/dev/null || true
    wait $dockerd || true
    sysctl -q -p "$state/sysctl"
}
trap end EXIT

for _ in $(seq 60); do
    docker version >/dev/null 2>&1 && break
    kill -0 $dockerd 2>/dev/null || { tail -5 "$state/dockerd.log" >&2; exit 1; }
    sleep 1
done
if ! docker image inspect "$KIND_NODE_IMAGE" $base >/dev/null 2>&1 || [ ! -x "$KIND" ]; then
    "$here/build.sh"
fi
sysctl -qw fs.inotify.max_user_instances=1024
make -C "$here/../../.." e2e-kind BASE_IMAGE=$base PYTHON_VERSION=3.11
