#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Tests a DRA driver with 'kubectl-dra node-probe conform' and prints the report in
# Markdown:
#
#     run.sh NODE DRIVER [FLAG...]
#
# It runs on the node, as root, with kubectl and kubectl-dra in the PATH and a
# kubeconfig that may do everything. FLAGs are added to those of conform, such as
# --restart-command and --stop-command. No hardware is needed if the driver publishes
# devices without it.
#
# The claims are made here, in a namespace that is deleted in the end. They get the
# first devices of the driver that are free, without the scheduler: nobody else may
# use the cluster meanwhile.
#
# The exit code is 1 if the driver breaks a requirement, 0 if it breaks none, and
# that of the program that failed otherwise.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: $0 NODE DRIVER [FLAG...]" >&2
  exit 3
fi
node=$1 driver=$2
shift 2

namespace=$(kubectl create -f - -o jsonpath='{.metadata.name}' <<END
apiVersion: v1
kind: Namespace
metadata: {generateName: conform-}
END
)
trap 'kubectl delete namespace "$namespace" --wait=false >&2' EXIT

claim() { # NAME
  kubectl create -n "$namespace" -f - >&2 <<END
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: $1}
spec:
  devices:
    requests:
    - name: device
      exactly: {deviceClassName: $driver}
END
}

allocate() { # NAME DRIVER POOL DEVICE
  kubectl patch resourceclaim "$1" -n "$namespace" --subresource=status --type=merge -p "{\"status\": {\"allocation\": {
    \"devices\": {\"results\": [{\"request\": \"device\", \"driver\": \"$2\", \"pool\": \"$3\", \"device\": \"$4\"}]},
    \"nodeSelector\": {\"nodeSelectorTerms\": [{\"matchFields\": [{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": [\"$node\"]}]}]}
  }}}" >&2
}

# Two claims of the driver, or one if it has no more devices.
devices=$(kubectl-dra devices --driver "$driver" --node "$node" --free -o jsonpath='{range .items[*]}{.pool} {.name}{"\n"}{end}')
if [ -z "$devices" ]; then
  echo "driver $driver has no free device on node $node" >&2
  exit 1
fi
claims=()
while read -r pool device; do
  name=claim-$((${#claims[@]} + 1))
  claim "$name"
  allocate "$name" "$driver" "$pool" "$device"
  claims+=("$name")
  [ ${#claims[@]} -lt 2 ] || break
done <<<"$devices"

# Two that it has to refuse, or must not give devices for.
claim unallocated
claim foreign
allocate foreign other.example.com "$node" none

code=0
kubectl-dra node-probe conform "${claims[@]}" -n "$namespace" --driver "$driver" --node-name "$node" \
  --unallocated unallocated --foreign foreign -o markdown "$@" || code=$?
# 2 stands for what a driver may choose, and for what was not tried: the report says which.
[ "$code" != 2 ] || code=0
exit "$code"
