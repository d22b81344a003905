// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Kind is the kind of a report.
const Kind = "NodeReport"

// Report describes one node. A part that is nil was not looked at in time; a check of its
// name in Host says so.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Report struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name of the node in the cluster, empty if not known.
	Node string `json:"node,omitempty"`
	// Paths are the paths that were searched.
	Paths Paths `json:"paths"`
	// Result is the worst of all checks.
	Result node.State `json:"result"`

	// Host has the checks of the node itself and its place in the cluster.
	Host    []node.Check         `json:"host"`
	GPUs    *nvidia.Findings     `json:"gpus,omitempty"`
	Plugins *driver.Findings     `json:"plugins,omitempty"`
	State   *checkpoint.Findings `json:"state,omitempty"`
	CDI     *cdi.Findings        `json:"cdi,omitempty"`
	Pods    *kubelet.Findings    `json:"pods,omitempty"`
	Health  *driver.Health       `json:"health,omitempty"`
}

// Paths are the paths of a node. Root is where the node's root is, as seen from where the
// program ran.
type Paths struct {
	// Root is the mount point of the node's root, Kubelet the root directory of its
	// kubelet, CDI the directories with specs, in the order of their priority.
	Root    string   `json:"root"`
	Kubelet string   `json:"kubelet"`
	CDI     []string `json:"cdi"`
}

// Options configure the probe.
//
// +k8s:deepcopy-gen=false
type Options struct {
	// Library is the path of the NVML library on the node, empty for the usual
	// places.
	Library string
	// Timeout limits one part; 0 means a minute. Everything in it has a limit of its own:
	// this one is for a file system that hangs.
	Timeout time.Duration
}

const defaultTimeout = time.Minute

// Probe looks at everything. snap is nil if no cluster could be read. Errors are among the
// checks, including the end of ctx.
func Probe(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, opts Options) *Report {
	r := &Report{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: Kind},
		Paths:    Paths{Root: host.Root, Kubelet: host.Kubelet, CDI: slices.Clone(host.CDI)},
	}
	cluster := host.In(snap)
	if cluster != nil {
		r.Node = cluster.Node
	} else {
		r.Node = host.Name
	}

	// The parts run side by side: each waits for others.
	p := &parts{timeout: cmp.Or(opts.Timeout, defaultTimeout)}
	part(ctx, p, "host", &r.Host, func(context.Context) ([]node.Check, error) {
		return hostChecks(host, snap, cluster), nil
	})
	part(ctx, p, "gpus", &r.GPUs, func(ctx context.Context) (*nvidia.Findings, error) {
		return nvidia.Look(ctx, host, nvidia.Options{Library: opts.Library})
	})
	part(ctx, p, "health", &r.Health, func(ctx context.Context) (*driver.Health, error) {
		return driver.AskHealth(ctx, host, snap, "", driver.Options{})
	})
	part(ctx, p, "pods", &r.Pods, func(ctx context.Context) (*kubelet.Findings, error) {
		return kubelet.Look(ctx, host, snap), nil
	})
	part(ctx, p, "state", &r.State, func(ctx context.Context) (*checkpoint.Findings, error) {
		return checkpoint.Look(ctx, host, snap), nil
	})
	p.wait()
	// The kubelet's checkpoint lists the CDI devices handed to the runtime; CDI specs are
	// compared with it. Device plugins are compared with its records of their devices.
	var handed cdi.Handed
	if r.State != nil {
		handed = r.State.Handed()
	}
	records := DeviceRecords(r.Pods, r.State)
	part(ctx, p, "plugins", &r.Plugins, func(ctx context.Context) (*driver.Findings, error) {
		return driver.Look(ctx, host, snap, driver.Options{Kubelet: records})
	})
	part(ctx, p, "cdi", &r.CDI, func(ctx context.Context) (*cdi.Findings, error) {
		return cdi.Look(ctx, host, snap, handed), nil
	})
	p.wait()
	r.Host = append(r.Host, p.late...)
	r.Result = node.Worst(r.Checks())
	return r
}

// DeviceRecords returns the kubelet's records of the devices of device plugins. Each of the
// findings may be nil.
func DeviceRecords(pods *kubelet.Findings, state *checkpoint.Findings) driver.Records {
	var records driver.Records
	if pods != nil {
		records.GivenOut, records.InUse = pods.GivenOut(), pods.InUse()
	}
	if state != nil {
		records.Registered, records.Recorded = state.Registered(), state.Recorded()
	}
	return records
}

// parts are the parts of a report that are being looked at.
type parts struct {
	timeout time.Duration
	running sync.WaitGroup

	mu sync.Mutex
	// late has a check for each part that did not finish in time.
	late []node.Check
}

func (p *parts) wait() { p.running.Wait() }

// part starts to look at one part and stores the result in found, unless it takes too long:
// then the part is abandoned.
func part[T any](ctx context.Context, p *parts, name string, found *T, look func(context.Context) (T, error)) {
	type answer struct {
		found T
		err   error
	}
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, p.timeout)
		defer cancel()
		answers := make(chan answer, 1)
		go func() {
			found, err := look(ctx)
			answers <- answer{found, err}
		}()
		var late node.Check
		select {
		case a := <-answers:
			if a.err == nil {
				*found = a.found
				return
			}
			late = node.NotKnown(name, "", "could not be looked at: %v", a.err)
		case <-ctx.Done():
			late = node.NotKnown(name, "", "could not be looked at within %s", p.timeout)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = append(p.late, late)
	})
}

// hostChecks checks that the root contains a node, and that it is the cluster's node.
func hostChecks(host *node.Host, snap *snapshot.Snapshot, cluster *node.Cluster) []node.Check {
	checks := []node.Check{
		directory(host, "host/root", "/", "the root of the node is at "+host.Root, "this is not where the root of the node is"),
		directory(host, "host/kubelet", host.Kubelet, "the kubelet has its files here", node.NoKubelet),
	}
	if cluster == nil {
		return append(checks, node.NotKnown("host/cluster", "", "no cluster was read: nothing can be compared with it"))
	}
	if cluster.Node == "" {
		return append(checks, node.NotKnown("host/cluster", "", "%s", cluster.Unknown))
	}
	object := snap.Node(cluster.Node)
	if object == nil {
		return append(checks, node.NotKnown("host/cluster", "", "node %s could not be read: %s", cluster.Node, cluster.Missing(snapshot.ResourceNodes, "")))
	}
	checks = append(checks, ready(object))
	here, err := host.BootID()
	there := object.Status.NodeInfo.BootID
	switch {
	case err != nil:
		checks = append(checks, node.Failed("host/boot", "", fmt.Errorf("read the boot ID: %w", err)))
	case there == "":
		checks = append(checks, node.NotKnown("host/boot", "", "the kubelet has not reported to the cluster which boot ID the node has"))
	case here != there:
		check := node.Bad("host/boot", "", "the boot ID is not the one that the kubelet of %s reported: this is another machine, or it was restarted since", cluster.Node)
		check.Found, check.Required = here, there
		checks = append(checks, check)
	default:
		checks = append(checks, node.Good("host/boot", "", "the boot ID is the one that the kubelet reported"))
	}
	return checks
}

// directory looks for a directory; absent says why it may be missing.
func directory(host *node.Host, name, path, message, absent string) node.Check {
	info, err := host.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return node.NotKnown(name, path, "there is no such directory: %s", absent)
	case err != nil:
		return node.Failed(name, path, err)
	case !info.IsDir():
		return node.Bad(name, path, "is no directory")
	default:
		return node.Good(name, path, "%s", message)
	}
}

// ready returns the check of the node's condition in the cluster.
func ready(object *corev1.Node) node.Check {
	const name = "host/ready"
	for i := range object.Status.Conditions {
		condition := &object.Status.Conditions[i]
		switch {
		case condition.Type != corev1.NodeReady:
			continue
		case condition.Status == corev1.ConditionTrue:
			return node.Good(name, "", "node %s is ready, kubelet %s", object.Name, object.Status.NodeInfo.KubeletVersion)
		default:
			check := node.Bad(name, "", "node %s is not ready: %s: %s", object.Name, condition.Reason, condition.Message)
			check.Found, check.Required = string(condition.Status), string(corev1.ConditionTrue)
			return check
		}
	}
	return node.NotKnown(name, "", "node %s has no condition Ready: its kubelet has not reported yet", object.Name)
}

// Section is the common form of all parts of a report.
//
// +k8s:deepcopy-gen=false
type Section struct {
	// Name is the name of the field in the report, and of the command that shows all of it.
	Name   string
	Checks []node.Check
}

// Sections returns the present parts, ordered from the hardware to the container.
func (r *Report) Sections() []Section {
	sections := []Section{{"host", r.Host}}
	if r.GPUs != nil {
		sections = append(sections, Section{"gpus", r.GPUs.Checks})
	}
	if r.Plugins != nil {
		sections = append(sections, Section{"plugins", r.Plugins.Checks})
	}
	if r.State != nil {
		sections = append(sections, Section{"state", r.State.Checks})
	}
	if r.CDI != nil {
		sections = append(sections, Section{"cdi", r.CDI.Checks})
	}
	if r.Pods != nil {
		sections = append(sections, Section{"pods", r.Pods.Checks})
	}
	if r.Health != nil {
		sections = append(sections, Section{"health", r.Health.Checks})
	}
	return sections
}

// Checks returns all checks.
func (r *Report) Checks() []node.Check {
	var all []node.Check
	for _, section := range r.Sections() {
		all = append(all, section.Checks...)
	}
	return all
}
