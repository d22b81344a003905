// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options say what to explain.
type Options struct {
	// Object is the object to explain. Without a group, a kind that Kubernetes does not
	// have stands for the kind of that name in any group.
	Object api.ObjectRef
	// AllRemedies asks for all remedies that can be found, not only the most
	// useful ones.
	AllRemedies bool
	// Node is the name of the only node to look at, empty for all of them.
	Node string
	// Device is one to be explained for the target: driver/pool/device, or a
	// part of that which is clear.
	Device string
}

// Error means that there is nothing to explain: the object does not
// exist, or it has no claims.
type Error struct {
	Target api.ObjectRef
	// Message is a sentence about the error; Hint names the existing objects.
	Message, Hint string
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Hint
}

// errNoClaims is a pod that uses neither claims nor extended resources of DRA.
var errNoClaims = errors.New("uses no ResourceClaim and no extended resource of a DeviceClass")

// Target is a resolved target: the pod, if any, and the claims to allocate together.
type Target struct {
	// Options are the question about the target. Its Object has the group.
	Options

	// Pod is the one whose claims these are, nil for a claim or template that
	// no pod uses. It does not exist in the cluster if Hypothetical is set.
	Pod          *corev1.Pod
	Hypothetical bool
	Claims       []cluster.PodClaim
	// Member asks about a pod without the rest of its gang. Gang is what was found out
	// about that, nil if nothing was.
	Member bool
	Gang   *Gang
	// Others are further pods that wait for the same claim. Instead is set if Pod is
	// one of them, because the first one does not fit.
	Others  []*corev1.Pod
	Instead bool
	// Workload is set if the pod stands for several; Desired is how many there
	// should be, nil if that is not known.
	Workload bool
	Desired  *int32
	// ByOwner is set if the pods were found by what they name as their owners.
	ByOwner bool
	// Different are pods of the target that need something else than Pod: the answer
	// is not about them.
	Different []*corev1.Pod
	// Creator creates the pods, nil if it is not known.
	Creator *lifecycle.Creator
	// New are pods that are yet to be created. If Sample is set, it is not known how
	// many there will be, and there is one of them.
	New    []*corev1.Pod
	Sample bool
	// Group is the PodGroup that was asked about, nil if it was not one.
	Group *schedulingapi.PodGroup
	// End is how the target ended, if it is a Job that did.
	End *snapshot.JobEnd
	// Users are the pods that use the target.
	Users []*corev1.Pod
	// LeftOut has, by the name of a node, further nodes that have the same answer and that
	// the snapshot leaves out.
	LeftOut map[string][]string
	// Only is the one node to look at, nil for all of them.
	Only *corev1.Node
	// Device is one to be explained, nil for none.
	Device *cluster.Device
}

// isKind reports whether a kind is the kind of the target, which may be without its group.
func (s *Target) isKind(kind schema.GroupVersionKind) bool {
	return kind.Kind == s.Object.Kind && (s.Object.APIGroup == "" || kind.Group == s.Object.APIGroup)
}

// UsePod makes the target stand for a pod.
func (s *Target) UsePod(c *cluster.Cluster, pod *corev1.Pod) {
	s.Pod = pod
	s.Claims = c.Claims.OfPod(pod)
}

func (s *Target) needClaims(c *cluster.Cluster) error {
	if len(s.Claims) > 0 || (s.Hypothetical || snapshot.Waits(s.Pod)) && len(c.Unserved(s.Pod)) > 0 {
		return nil
	}
	err := &Error{
		Target:  s.Object,
		Message: fmt.Sprintf("%s %s", s.Object.Title(), errNoClaims),
	}
	if gap := c.Snapshot.Gap(snapshot.ResourceClasses); gap != nil {
		err.Hint = "it may use extended resources all the same: " + gap.Reason
	} else {
		err.Hint = unmapped(c.Snapshot, s.Pod, c.Gates.Enabled("DRAExtendedResource"))
	}
	return err
}

// MaxPods is how many pods an explanation names.
const MaxPods = 10

// Queued reports whether the target stands for pods in the scheduling queue. A
// question about one node or one device is about that alone.
func (s *Target) Queued() bool {
	return s.Pod != nil && s.Node == "" && s.Options.Device == "" && (s.Hypothetical || snapshot.Waits(s.Pod)) && s.Object.Kind != api.KindClaim
}

// Counted reports whether the target stands for several pods, so that the answer
// counts them.
func (s *Target) Counted() bool {
	return s.Workload && s.Node == "" && s.Options.Device == ""
}

// UnknownPriority returns the PriorityClass of the pod that is asked about, if it does not
// exist yet and nothing tells the priority.
func (s *Target) UnknownPriority() string {
	if s.Pod != nil && s.Hypothetical && s.Pod.Spec.Priority == nil {
		return s.Pod.Spec.PriorityClassName
	}
	return ""
}

// notFound says that a target does not exist, and what does.
func notFound[T metav1.Object](snap *snapshot.Snapshot, t api.ObjectRef, resource string, list []T) error {
	err := absent(snap, t)
	var here, elsewhere []string
	for _, o := range list {
		switch {
		case o.GetNamespace() == t.Namespace:
			here = append(here, o.GetName())
		case o.GetName() == t.Name:
			elsewhere = append(elsewhere, o.GetNamespace())
		}
	}
	gap := snap.Gap(resource)
	// Names of pods and claims begin with the name of what they were made from.
	near := english.DidYouMean(t.Name, here)
	switch {
	case gap != nil && (gap.Namespace == "" || gap.Namespace != t.Namespace):
		err.Hint = fmt.Sprintf("it may exist all the same: %s", gap.Reason)
	case len(elsewhere) > 0:
		err.Hint = fmt.Sprintf("one of that name exists in namespace %s: use -n %s", english.JoinAnd(elsewhere), elsewhere[0])
	case snap.Node(t.Name) != nil:
		err.Hint = "there is a node of that name: " + "kubectl dra why node/" + t.Name
	case near != "":
		err.Message += near
	case len(here) > 0:
		slices.SortFunc(here, english.CompareNames)
		err.Hint = fmt.Sprintf("namespace %s has: %s", t.Namespace, english.Sample(here, 10))
	case len(list) > 0:
		namespaces := english.Tally{}
		for _, o := range list {
			namespaces[o.GetNamespace()]++
		}
		err.Hint = fmt.Sprintf("namespace %s has none; these have: %s", t.Namespace, english.Sample(namespaces.Sorted(), 10))
	default:
		err.Hint = fmt.Sprintf("no %s exists", t.Kind)
	}
	return err
}

// absent returns the error for an object that does not exist.
func absent(snap *snapshot.Snapshot, object api.ObjectRef) *Error {
	return &Error{Target: object, Message: fmt.Sprintf("find %s: not found in %s", object.Title(), snap.Source)}
}

// ServedBy lists the nodes on which device plugins offer a resource.
func ServedBy(snap *snapshot.Snapshot, name corev1.ResourceName) []*corev1.Node {
	var nodes []*corev1.Node
	for _, node := range snap.Nodes {
		if quantity, ok := node.Status.Allocatable[name]; ok && !quantity.IsZero() {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// unmapped tells, of a pod that has nothing to do with DRA, who serves the
// extended resources that it asks for: perhaps DRA was meant to.
func unmapped(snap *snapshot.Snapshot, pod *corev1.Pod, enabled bool) string {
	names := cluster.ExtendedResources(pod)
	if len(names) == 0 {
		return ""
	}
	name := names[0]
	text := fmt.Sprintf("it asks for the extended resource %s, which no DeviceClass maps", name)
	for _, class := range snap.Classes {
		if !enabled && class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(name) {
			text = fmt.Sprintf("it asks for the extended resource %s, which DeviceClass %s maps, but the feature gate DRAExtendedResource is off", name, class.Name)
		}
	}
	if nodes := ServedBy(snap, name); len(nodes) > 0 {
		text += fmt.Sprintf("; device plugins offer it on %s", NodeNames(nodes))
	} else if snap.Gap(snapshot.ResourceNodes) == nil {
		text += ", and no node offers it through a device plugin"
	}
	if enabled {
		text += Mappable(snap, name)
	}
	return text
}

// Mappable names the drivers of the vendor of an extended resource that
// publish devices: a DeviceClass could map it to them.
func Mappable(snap *snapshot.Snapshot, name corev1.ResourceName) string {
	var drivers []string
	domain, _, _ := strings.Cut(string(name), "/")
	for _, slice := range snap.Slices {
		if OfVendor(slice.Spec.Driver, domain) && !slices.Contains(drivers, slice.Spec.Driver) {
			drivers = append(drivers, slice.Spec.Driver)
		}
	}
	if len(drivers) == 0 {
		return ""
	}
	return fmt.Sprintf("; driver %s publishes devices: to serve it with them, a DeviceClass needs spec.extendedResourceName: %s", english.JoinAnd(drivers), name)
}

// OfVendor reports whether a driver is of the domain of an extended resource:
// gpu.example.com is of example.com.
func OfVendor(driver, domain string) bool {
	return driver == domain || strings.HasSuffix(driver, "."+domain)
}

// NodeNames names the first nodes of a list.
func NodeNames(nodes []*corev1.Node) string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.SortFunc(names, english.CompareNames)
	return english.Sample(names, 3)
}

// MayOwnPods reports whether what the pods of a workload belong to may be of a resource. That
// may have any kind: those that are read for something else do not, but for Jobs.
func MayOwnPods(resource string) bool {
	return resource == snapshot.ResourceJobs || !slices.Contains(snapshot.Resources(), resource)
}
