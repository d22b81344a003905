// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// Kind is the kind of the findings.
	Kind = "NodePods"

	// callTimeout limits each call.
	callTimeout = 5 * time.Second
)

// Names of checks.
const (
	checkSocket      = "pods/socket"
	checkList        = "pods/list"
	checkGet         = "pods/get"
	checkAllocatable = "pods/allocatable"
	checkPods        = "pods/pods"
	checkClaims      = "pods/claims"
	checkAlignment   = "pods/alignment"
)

// Look asks the kubelet about all its pods and compares the claims with the cluster. snap
// is nil if there is no cluster.
func Look(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) *Findings {
	return look(ctx, host, snap, nil)
}

// LookPod is like Look, for one pod.
func LookPod(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, namespace, name string) *Findings {
	return look(ctx, host, snap, &v1.GetPodResourcesRequest{PodNamespace: namespace, PodName: name})
}

func look(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, one *v1.GetPodResourcesRequest) *Findings {
	f := &Findings{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: Kind},
		Socket:   path.Join(host.Kubelet, "pod-resources", "kubelet.sock"),
		Pods:     []Pod{},
	}
	cluster := host.In(snap)
	if cluster != nil {
		f.Node = cluster.Node
	}
	conn, err := host.Dial(ctx, f.Socket, host.Kubelet, maxReply)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Checks = append(f.Checks, node.NotKnown(checkSocket, f.Socket, "there is no such socket: "+node.NoKubelet))
		return f
	case err != nil:
		f.Checks = append(f.Checks, node.Failed(checkSocket, f.Socket, err))
		return f
	}
	defer func() { _ = conn.Close() }()
	client := v1.NewPodResourcesListerClient(conn)
	ok := false
	if one == nil {
		ok = f.list(ctx, client)
	} else {
		ok = f.get(ctx, client, one)
	}
	f.allocatable(ctx, client)
	if ok {
		(&join{Findings: f, cluster: cluster, one: one}).run()
		f.align(host, snap)
	}
	return f
}

func (f *Findings) list(ctx context.Context, client v1.PodResourcesListerClient) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.List(ctx, &v1.ListPodResourcesRequest{})
	if err != nil {
		f.Checks = append(f.Checks, failed(checkList, f.Socket, "List", err))
		return false
	}
	for _, p := range reply.GetPodResources() {
		if pod := podOf(p); len(pod.Containers) > 0 {
			f.Pods = append(f.Pods, pod)
		} else {
			f.Others++
		}
	}
	slices.SortStableFunc(f.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	f.Checks = append(f.Checks, node.Good(checkList, f.Socket, "the kubelet lists %s, %d of them with devices, CPUs or memory of their own",
		english.Count(len(reply.GetPodResources()), "pod"), len(f.Pods)))
	return true
}

func (f *Findings) get(ctx context.Context, client v1.PodResourcesListerClient, one *v1.GetPodResourcesRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.Get(ctx, one)
	if err != nil {
		f.Checks = append(f.Checks, failed(checkGet, f.Socket, "Get of pod "+one.PodNamespace+"/"+one.PodName, err))
		return false
	}
	if pod := podOf(reply.GetPodResources()); len(pod.Containers) > 0 {
		f.Pods = append(f.Pods, pod)
	} else {
		f.Others++
	}
	f.Checks = append(f.Checks, node.Good(checkGet, f.Socket, "the kubelet has pod %s/%s", one.PodNamespace, one.PodName))
	return true
}

func (f *Findings) allocatable(ctx context.Context, client v1.PodResourcesListerClient) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.GetAllocatableResources(ctx, &v1.AllocatableResourcesRequest{})
	if err != nil {
		f.Checks = append(f.Checks, failed(checkAllocatable, f.Socket, "GetAllocatableResources", err))
		return
	}
	f.Allocatable = resourcesOf(reply.GetDevices())
	devices := 0
	for _, r := range f.Allocatable {
		devices += len(r.IDs)
	}
	f.Checks = append(f.Checks, node.Good(checkAllocatable, f.Socket, "the kubelet gives out %s of device plugins", english.Count(devices, "device")))
}

// podOf returns a pod with the containers that have something.
func podOf(p *v1.PodResources) Pod {
	pod := Pod{Namespace: p.GetNamespace(), Name: p.GetName()}
	for _, c := range p.GetContainers() {
		container := Container{Name: c.GetName(), Devices: resourcesOf(c.GetDevices()), CPUs: c.GetCpuIds()}
		for _, m := range c.GetMemory() {
			container.Memory = append(container.Memory, Memory{Type: m.GetMemoryType(), Bytes: m.GetSize(), NUMANodes: numaOf(m.GetTopology())})
		}
		for _, d := range c.GetDynamicResources() {
			container.Claims = append(container.Claims, claimOf(d))
		}
		if len(container.Claims)+len(container.Devices)+len(container.CPUs)+len(container.Memory) > 0 {
			pod.Containers = append(pod.Containers, container)
		}
	}
	return pod
}

func claimOf(d *v1.DynamicResource) Claim {
	claim := Claim{Namespace: d.GetClaimNamespace(), Name: d.GetClaimName()}
	for _, r := range d.GetClaimResources() {
		device := Device{Driver: r.GetDriverName(), Pool: r.GetPoolName(), Device: r.GetDeviceName(), ShareID: r.GetShareId()}
		for _, c := range r.GetCdiDevices() {
			device.CDIDevices = append(device.CDIDevices, c.GetName())
		}
		claim.Devices = append(claim.Devices, device)
	}
	// The kubelet asks its drivers in any order.
	slices.SortStableFunc(claim.Devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), english.CompareNames(a.Pool, b.Pool), english.CompareNames(a.Device, b.Device), cmp.Compare(a.ShareID, b.ShareID))
	})
	return claim
}

// resourcesOf joins the devices of a resource at one place: the kubelet reports them one by
// one.
func resourcesOf(devices []*v1.ContainerDevices) []Resource {
	var resources []Resource
	for _, d := range devices {
		numa := numaOf(d.GetTopology())
		i := slices.IndexFunc(resources, func(r Resource) bool {
			return r.Name == d.GetResourceName() && slices.Equal(r.NUMANodes, numa)
		})
		if i < 0 {
			i = len(resources)
			resources = append(resources, Resource{Name: d.GetResourceName(), IDs: []string{}, NUMANodes: numa})
		}
		resources[i].IDs = append(resources[i].IDs, d.GetDeviceIds()...)
	}
	for i := range resources {
		slices.Sort(resources[i].IDs)
	}
	slices.SortFunc(resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.NUMANodes, b.NUMANodes))
	})
	return resources
}

func numaOf(topology *v1.TopologyInfo) []int64 {
	var nodes []int64
	for _, n := range topology.GetNodes() {
		nodes = append(nodes, n.GetID())
	}
	slices.Sort(nodes)
	return nodes
}

// maxReply is the limit of the kubelet's own client (defaultPodResourcesMaxSize,
// pkg/kubelet/kubelet.go).
const maxReply = 16 << 20

// longestText limits the shown part of a server's message.
const longestText = 1000

// failed returns the check for a call that failed.
func failed(name, path, call string, err error) node.Check {
	said := status.Convert(err)
	message := said.Message()
	if len(message) > longestText {
		message = fmt.Sprintf("%s… (%d bytes)", message[:longestText], len(message))
	}
	switch said.Code() {
	case codes.Unimplemented:
		return node.NotKnown(name, path, "the kubelet does not offer %s: %s", call, message)
	case codes.Canceled:
		return node.NotKnown(name, path, "%s was interrupted", call)
	case codes.DeadlineExceeded:
		return node.Bad(name, path, "%s got no answer in time", call)
	case codes.ResourceExhausted:
		return node.NotKnown(name, path, "%s got more than it takes, or asked too often: %s", call, message)
	case codes.Unavailable:
		return node.Bad(name, path, "%s: the server closed the connection, or does not speak gRPC: %s", call, message)
	case codes.PermissionDenied, codes.Unauthenticated:
		return node.NotKnown(name, path, "%s is not permitted: %s", call, message)
	default:
		return node.Bad(name, path, "%s failed: %s", call, message)
	}
}
