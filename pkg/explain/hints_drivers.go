// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// How many drivers, and how many objects of one kind, hints are given about.
const (
	maxHintedDrivers = 2
	maxNamed         = 3
)

// driverHints tells what is the matter with the drivers of the devices that
// are wanted, if the devices are missing where the pod could go.
func (x *inquiry) driverHints() {
	if x.out.Verdict != api.DoesNotFit || len(x.out.Nodes) == 0 || x.snap.Gap(snapshot.ResourceSlices) != nil || len(x.site.candidates) == 0 {
		return
	}
	drivers := x.wantedDrivers()
	for _, driver := range drivers[:min(len(drivers), maxHintedDrivers)] {
		p := x.publication(driver)
		x.emptyPoolHint(&p)
		x.publicationHint(&p)
		for _, set := range x.daemonSetsOf(driver) {
			if !x.daemonPodHints(&p, set) && len(p.published) == 0 {
				x.placementHint(&p, set)
			}
		}
	}
}

// publication is what a driver publishes, as the nodes that the pod could use
// see it.
type publication struct {
	driver string
	slices []*resourceapi.ResourceSlice
	// published are the candidates that a slice of the driver is for, missing
	// the others.
	published, missing []*corev1.Node
}

func (x *inquiry) publication(driver string) publication {
	p := publication{driver: driver}
	own := map[string]bool{}
	for _, slice := range x.snap.Slices {
		if slice.Spec.Driver != driver {
			continue
		}
		p.slices = append(p.slices, slice)
		if slice.Spec.NodeName != nil {
			own[*slice.Spec.NodeName] = true
		}
	}
	reached := func(pool *allocator.NodePool) bool { return pool.Pool.Driver == driver }
	for _, node := range x.site.candidates {
		if own[node.Name] || slices.ContainsFunc(x.site.pools[node.Name], reached) {
			p.published = append(p.published, node)
		} else {
			p.missing = append(p.missing, node)
		}
	}
	return p
}

// wantedDrivers lists the drivers whose devices the claims are about: those
// that the selectors name, or else those of the devices of the class.
func (x *inquiry) wantedDrivers() []string {
	found := map[string]bool{}
	for i := range x.claims {
		for _, alternatives := range x.claims[i].funnels {
			for _, f := range alternatives {
				named := x.namedDrivers(f)
				if published := x.publishing(named); len(published) > 0 {
					named = published
				}
				if len(named) == 0 {
					for j := range f.devices {
						if !f.otherClass(f.devices[j].Device) {
							found[f.devices[j].ID.Driver] = true
						}
					}
				}
				for _, driver := range named {
					found[driver] = true
				}
			}
		}
	}
	return sortedKeys(found)
}

// publishing leaves of several drivers, each of which would do, those that have
// slices.
func (x *inquiry) publishing(drivers []string) []string {
	return slices.DeleteFunc(slices.Clone(drivers), func(driver string) bool {
		return !slices.ContainsFunc(x.snap.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Driver == driver })
	})
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// namedDrivers lists the drivers that the selectors of a request, or else those
// of its class, compare device.driver with.
func (x *inquiry) namedDrivers(f *funnel) []string {
	lists := [][]resourceapi.DeviceSelector{f.request.selectors}
	if f.checks.class != nil {
		lists = append(lists, f.checks.class.Spec.Selectors)
	}
	for _, list := range lists {
		var drivers []string
		for _, s := range list {
			if s.CEL == nil {
				continue
			}
			drivers = append(drivers, x.selectors.Compile(s.CEL.Expression).Drivers()...)
		}
		if len(drivers) > 0 {
			return drivers
		}
	}
	return nil
}

// publicationHint says that the driver publishes nothing where it matters. If
// nothing is more promising than these nodes, that is the reason itself.
func (x *inquiry) publicationHint(p *publication) {
	tell := func(text string, fact api.Evidence) {
		if first := x.out.Nodes[0]; first.Code == api.NodeNotReachable || first.Code == api.ClassSelectorFalse {
			// It says more than that no device matches the name.
			x.out.Summary = strings.Replace(x.out.Summary, "; "+noneOf(p.driver, x.catalog.words().Drivers()), "", 1) + "; " + text
		} else {
			x.hint(text, fact)
		}
	}
	switch {
	case len(p.slices) == 0:
		others := map[string]bool{}
		for _, slice := range x.snap.Slices {
			others[slice.Spec.Driver] = true
		}
		tell(fmt.Sprintf("driver %s publishes nothing: there is no ResourceSlice of it in the cluster%s", p.driver, naming.DidYouMean(p.driver, sortedKeys(others))),
			api.Evidence{Object: "ResourceSlice", Path: "spec.driver", Found: cmp.Or(english.Sample(sortedKeys(others), maxNamed), "none"), Wanted: p.driver})
	case len(p.published) == 0:
		nodes := map[string]bool{}
		for _, slice := range p.slices {
			if slice.Spec.NodeName != nil {
				nodes[*slice.Spec.NodeName] = true
			}
		}
		elsewhere := "elsewhere"
		if len(nodes) > 0 {
			elsewhere = "on " + english.Sample(sortedKeys(nodes), maxNamed)
		}
		tell(fmt.Sprintf("driver %s publishes devices only %s, and nothing on the nodes that the pod can use: %s", p.driver, elsewhere, nodeNames(p.missing)),
			api.Evidence{Object: "ResourceSlice", Path: "spec.nodeName", Found: strings.TrimPrefix(elsewhere, "on "), Wanted: nodeNames(p.missing)})
	}
}

func nodeNames(nodes []*corev1.Node) string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.SortFunc(names, naming.Compare)
	return english.Sample(names, maxNamed)
}

// daemonSet is a DaemonSet that runs the plugin of a driver, or seems to.
type daemonSet struct {
	*snapshot.Workload
	// named is true if the pod template has the name of the driver in it.
	named bool
}

func (d daemonSet) String() string {
	text := "DaemonSet " + qualifiedName(d)
	if !d.named {
		text += " (a kubelet plugin that by its name belongs to the driver)"
	}
	return text
}

// daemonSetsOf finds the DaemonSets of a driver: those whose pod template has
// its name in it, or else plugins of the kubelet without the name of any driver
// whose own name, namespace or image has the maker's name in it ("example" of
// gpu.example.com).
func (x *inquiry) daemonSetsOf(driver string) []daemonSet {
	var named, alike []daemonSet
	for _, w := range x.snap.Workloads {
		names, plugin := w.KubeletPlugin()
		switch {
		case !plugin:
		case slices.Contains(names, driver):
			named = append(named, daemonSet{w, true})
		case madeBy(w, driver) && !slices.ContainsFunc(names, x.isDriver):
			alike = append(alike, daemonSet{w, false})
		}
	}
	if len(named) > 0 {
		return named
	}
	return alike
}

// Drivers are mostly named product.maker.top.
const (
	namedTop    = 1
	namedMaker  = namedTop + 1
	namedLabels = namedMaker + 1
)

// isDriver reports whether a name is, or could be, that of a driver, also of one
// for storage or networks. Version numbers are none.
func (x *inquiry) isDriver(name string) bool {
	labels := strings.Split(name, ".")
	top := labels[len(labels)-namedTop]
	return slices.Contains(labels, "csi") || len(x.publishing([]string{name})) > 0 ||
		len(labels) >= namedLabels && !strings.ContainsAny(top, "0123456789")
}

func madeBy(w *snapshot.Workload, driver string) bool {
	labels := strings.Split(driver, ".")
	if len(labels) < namedLabels {
		return false
	}
	name := labels[len(labels)-namedMaker]
	texts := []string{w.Name, w.Namespace}
	for i := range w.Template.Spec.Containers {
		texts = append(texts, withoutRegistry(w.Template.Spec.Containers[i].Image))
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.Contains(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune("-._/:@", r) }), name)
	})
}

// withoutRegistry is the path of an image: who keeps it need not have made it.
func withoutRegistry(image string) string {
	if host, path, found := strings.Cut(image, "/"); found && strings.ContainsAny(host, ".:") {
		return path
	}
	return image
}

// placementHint tells why a DaemonSet has no pods on the nodes that lack
// devices: the controller looks at labels and taints, and at nothing else.
func (x *inquiry) placementHint(p *publication, set daemonSet) {
	if _, known := x.site.alloc.Nodes(); !known {
		return
	}
	reasons, example := naming.Tally{}, map[string]api.Evidence{}
	count := 0
	pod := &corev1.Pod{Spec: templateSpec(set.Workload)}
	for _, node := range p.missing {
		for _, misfit := range x.site.alloc.NodeFit(pod, node) {
			if slices.Contains([]allocator.Filter{allocator.FilterPorts, allocator.FilterPods, allocator.FilterResources}, misfit.Filter) {
				continue
			}
			text := strings.Replace(misfit.Reason, "spec.nodeSelector", "its nodeSelector", 1)
			if misfit.Filter == allocator.FilterNodeAffinity {
				text = "its node affinity wants " + misfit.Wanted
			}
			if reasons[text]++; reasons[text] == 1 {
				example[text] = api.Evidence{
					Object: whatif.Object("Node", "", node.Name), Path: misfit.Path,
					Found: cmp.Or(misfit.Found, "not set"), Wanted: misfit.Wanted,
				}
			}
			count++
			break
		}
	}
	wants := ""
	if set.Daemon != nil {
		wants = fmt.Sprintf(" wants pods on %s", english.Count(int(set.Daemon.Desired), "node"))
	}
	if count == 0 {
		if wants != "" && set.Daemon.Desired == 0 {
			x.hint(fmt.Sprintf("%s%s", set, wants), api.Evidence{Object: daemonObject(set), Path: "status.desiredNumberScheduled", Found: "0"})
		}
		return
	}
	most := reasons.Sorted()[0]
	if wants != "" {
		wants += " and"
	}
	where := nodeNames(p.missing)
	if reasons[most] < len(p.missing) {
		where = fmt.Sprintf("%d of %s", reasons[most], english.Count(len(p.missing), "node"))
	}
	evidence := []api.Evidence{example[most]}
	if set.Daemon != nil {
		evidence = append(evidence, api.Evidence{Object: daemonObject(set), Path: "status.desiredNumberScheduled", Found: fmt.Sprint(set.Daemon.Desired)})
	}
	x.hint(fmt.Sprintf("%s%s has none for %s: %s", set, wants, where, most), evidence...)
}

func daemonObject(set daemonSet) string {
	return whatif.Object("DaemonSet", set.Namespace, set.Name)
}

// daemonPodHints tells of plugins that are to run where devices are missing,
// but fail, or run and publish nothing. It returns whether there are any.
func (x *inquiry) daemonPodHints(p *publication, set daemonSet) bool {
	missing := map[string]bool{}
	for _, node := range p.missing {
		missing[node.Name] = true
	}
	var failing, silent []*corev1.Pod
	for _, pod := range podsOf(x.snap, set.Workload) {
		switch {
		case !missing[daemonNode(pod)]:
		case !ready(pod):
			failing = append(failing, pod)
		default:
			silent = append(silent, pod)
		}
	}
	if len(failing) > 0 {
		pod := failing[0]
		state, evidence := podTrouble(pod)
		more := ""
		if len(failing) > 1 {
			more = fmt.Sprintf(", and so are %d more", len(failing)-1)
		}
		x.hint(fmt.Sprintf("%s: pod %s on node %s is not ready: %s%s", set, pod.Name, daemonNode(pod), state, more), evidence)
	}
	if len(silent) > 0 {
		nodes := make([]string, 0, len(silent))
		for _, pod := range silent {
			nodes = append(nodes, pod.Spec.NodeName)
		}
		slices.SortFunc(nodes, naming.Compare)
		advice := ""
		if set.named {
			advice = ": its log shows whether the API server refuses the slices; if they vanished, restart it"
		}
		x.hint(
			fmt.Sprintf("%s: pod %s is ready, but there is no ResourceSlice of %s for %s%s", set, silent[0].Name, p.driver, english.Sample(nodes, maxNamed), advice),
			api.Evidence{Object: whatif.Object(api.KindPod, silent[0].Namespace, silent[0].Name), Path: "status.conditions[type=Ready].status", Found: "True"},
			api.Evidence{Object: "ResourceSlice", Path: "spec.nodeName", Found: "none", Wanted: nodes[0]},
		)
	}
	return len(failing)+len(silent) > 0
}

// daemonNode is the node that a pod of a DaemonSet is for: its controller sets
// an affinity to the name before the pod is bound.
func daemonNode(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return pod.Spec.NodeName
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podTrouble says why a pod is not ready: the state of the first container that
// is not, or a condition.
func podTrouble(pod *corev1.Pod) (string, api.Evidence) {
	fact := api.Evidence{Object: whatif.Object(api.KindPod, pod.Namespace, pod.Name), Path: "status.phase", Found: string(pod.Status.Phase), Wanted: "ready"}
	for i, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for j := range list {
			status := &list[j]
			text := ""
			switch {
			case status.Ready:
				continue
			case status.State.Waiting != nil && status.State.Waiting.Reason != "PodInitializing":
				text = status.State.Waiting.Reason
			case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
				text = fmt.Sprintf("%s, exit code %d", status.State.Terminated.Reason, status.State.Terminated.ExitCode)
			case status.State.Running != nil && i == 1:
				text = "running, but its readiness probe fails"
			default:
				continue
			}
			fact.Path = fmt.Sprintf("status.%s[name=%s]", []string{"initContainerStatuses", "containerStatuses"}[i], status.Name)
			fact.Found = text
			text = fmt.Sprintf("container %s: %s", status.Name, text)
			if status.RestartCount > 0 {
				text += fmt.Sprintf(" (%s)", english.Count(int(status.RestartCount), "restart"))
			}
			return text, fact
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			fact.Path, fact.Found = "status.conditions[type=PodScheduled]", c.Message
			return "not scheduled: " + c.Message, fact
		}
	}
	return "it is " + string(pod.Status.Phase), fact
}
