// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Inventory answers what there is in one snapshot. It is safe for concurrent
// use.
type Inventory struct {
	cluster *cluster.Cluster

	eligible *eligibility.Devices
	notRead  notRead
	counter  *deviceCounter
}

// New takes the inventory of a cluster.
func New(c *cluster.Cluster) *Inventory {
	counter := newDeviceCounter(c)
	return &Inventory{cluster: c, eligible: counter.eligible, notRead: counter.notRead, counter: counter}
}

// uses reports whether a pod may use an allocated claim: the claim is reserved
// for it. A pod that only names the claim waits for that. Where objects have
// no UID, as in a file written by hand, the name has to do.
func uses(facts *cluster.Cluster, pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	return facts.Claims.Reserved(claim, pod) || pod.UID == "" && slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourceapi.ResourceClaimConsumerReference) bool {
		return consumer.APIGroup == "" && consumer.Resource == "pods" && consumer.Name == pod.Name
	})
}

// typeMeta returns the type of an object of a kind such as "Device".
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: api.APIVersion, Kind: kind}
}

func age(facts *cluster.Cluster, created metav1.Time) (since *metav1.Time, seconds int64) {
	if created.IsZero() {
		return nil, 0
	}
	return &created, max(0, int64(facts.Snapshot.Now().Sub(created.Time).Seconds()))
}

// scopeOf says in words which nodes something is for, and the node if it is
// for one by name.
func scopeOf(name *string, all *bool, selector *corev1.NodeSelector) (node, scope string) {
	switch {
	case name != nil && *name != "":
		return *name, *name
	case all != nil && *all:
		return "", "all nodes"
	case selector != nil:
		return "", selectorText(selector)
	default:
		return "", "by device"
	}
}

// requirementText returns what a node selector wants. A label that only has to exist would
// read like the name of a node.
func requirementText(r corev1.NodeSelectorRequirement) string {
	if r.Operator == corev1.NodeSelectorOpExists {
		return "with " + r.Key
	}
	return cluster.RequirementText(r)
}

// selectorText writes a node selector as kubectl writes label selectors; terms
// are joined by "or".
func selectorText(selector *corev1.NodeSelector) string {
	terms := make([]string, 0, len(selector.NodeSelectorTerms))
	for _, term := range selector.NodeSelectorTerms {
		var parts []string
		for _, r := range term.MatchFields {
			parts = append(parts, requirementText(r))
		}
		for _, r := range term.MatchExpressions {
			parts = append(parts, requirementText(r))
		}
		terms = append(terms, strings.Join(parts, ","))
	}
	return strings.Join(terms, " or ")
}

// described has the lists of a cluster that take long to make and do not depend on time, each
// once somebody asked for it. It implements [cluster.Follower].
type described struct {
	pools   keptList[api.Pool]
	classes keptList[api.Class]
	nodes   keptList[Node]
}

// Follow keeps the lists if nothing changed that an answer depends on.
func (d *described) Follow(_ *cluster.Cluster, delta *cluster.Delta) cluster.Follower {
	if delta.Any() {
		return &described{}
	}
	return d
}

// describedIn returns the lists of a cluster.
func describedIn(c *cluster.Cluster) *described {
	return cluster.Remember(c, func() *described { return &described{} })
}

// keptList is a list that is made when it is first asked for. It is safe for concurrent use.
type keptList[T any] struct {
	mu    sync.Mutex
	made  bool
	items []T
}

// of returns a copy of the list. What failed to be made is made again.
func (l *keptList[T]) of(makes func() ([]T, error)) ([]T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.made {
		items, err := makes()
		if err != nil {
			return nil, err
		}
		l.made, l.items = true, items
	}
	return slices.Clone(l.items), nil
}

// PoolName returns DRIVER/POOL.
func PoolName(p *api.Pool) string { return p.Driver + "/" + p.Name }

// DeviceName returns DRIVER/POOL/DEVICE.
func DeviceName(d *api.Device) string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// TaintText returns KEY=VALUE:EFFECT.
func TaintText(t *api.Taint) string {
	taint := resourceapi.DeviceTaint{Key: t.Key, Value: t.Value, Effect: resourceapi.DeviceTaintEffect(t.Effect)}
	return taint.String()
}

func deviceID(result *resourceapi.DeviceRequestAllocationResult) cluster.DeviceID {
	return cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
}

// poolNode returns the node that all slices of a pool name.
func poolNode(pool *cluster.Pool) string {
	node := ""
	for i, slice := range pool.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		if i > 0 && name != node {
			return ""
		}
		node = name
	}
	return node
}

// newCapacity returns a capacity with its use.
func newCapacity(name string, total, used resource.Quantity) api.Capacity {
	left := total.DeepCopy()
	left.Sub(used)
	return api.Capacity{Name: name, Total: total.String(), Consumed: used.String(), Available: left.String(), ConsumedPercent: percent(used, total)}
}

// QuantityText writes a quantity of this package's types for people: 85899345920
// as 80Gi.
func QuantityText(canonical string) string {
	quantity, ok := selector.ParseQuantity(canonical)
	if !ok {
		return canonical
	}
	return selector.QuantityText(quantity)
}

// percent rounds to a whole number; of nothing, it is 0.
func percent(used, total resource.Quantity) int {
	whole := total.AsApproximateFloat64()
	if whole <= 0 {
		return 0
	}
	return int(math.Round(100 * used.AsApproximateFloat64() / whole))
}

func quantities(from map[resourceapi.QualifiedName]resource.Quantity) map[string]string {
	if len(from) == 0 {
		return nil
	}
	out := make(map[string]string, len(from))
	for name, quantity := range from {
		out[string(name)] = quantity.String()
	}
	return out
}
