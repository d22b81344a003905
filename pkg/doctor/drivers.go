// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func driverChecks() []Check {
	sets := []string{snapshot.ResourceDaemonSets}
	withPods := []string{snapshot.ResourceDaemonSets, snapshot.ResourcePods}
	all := []string{snapshot.ResourceDaemonSets, snapshot.ResourcePods, snapshot.ResourceSlices, snapshot.ResourceNodes}
	return []Check{
		{
			Code: "DRA1101", Title: "driver that runs on no node", Severity: api.SeverityWarning, Needs: sets,
			About:  "The DaemonSet of a driver selects no node. Mostly a label is missing that another component, such as node feature discovery, has to set. There is no pod and no error.",
			Advice: "Compare the nodeSelector and the affinity of the DaemonSet with the labels of the nodes.",
			find:   findIdleDaemonSets,
		},
		{
			Code: codeNotCreated, Title: "driver pods that are not created", Severity: api.SeverityError, Needs: withPods,
			About:  "The DaemonSet controller wants more pods than there are. Mostly admission refuses them: a quota, a priority class that the namespace may not use, or Pod Security. Only events of the DaemonSet say so.",
			Advice: "Read the events of the DaemonSet, and lift what refuses the pods.",
			find:   findMissingDaemonPods,
		},
		{
			Code: codeNotReady, Title: "driver pods that are not ready", Severity: api.SeverityError, Needs: withPods,
			About:  "A pod of a driver fails or is not ready. On its node devices are neither published nor prepared, while those that were published before stay visible for a while.",
			Advice: "Read the log of the pod.",
			find:   findFailingDaemonPods,
		},
		{
			Code: "DRA1104", Title: "driver that publishes nothing for its node", Severity: api.SeverityWarning, Needs: all,
			About:  "The pod of a driver is ready on a node, other nodes have ResourceSlices of the driver, and this one has none. Either it has no such hardware, or the API server rejects the slice: attributes that are no semantic versions, names that are too long, too many devices. Only the driver's log says so.",
			Advice: "Search the log of the driver's pod for \"ResourceSlice\"; 'kubectl dra node-probe' shows what the hardware is.",
			find:   findSilentDrivers,
		},
		{
			Code: "DRA1105", Title: "devices of a node without the driver", Severity: api.SeverityError, Needs: all,
			About:  "ResourceSlices are published for a node on which the DaemonSet of the driver has no pod. Pods can be bound to that node, and then wait for the driver in ContainerCreating. Where the pod template does not name the driver, and only the name of the DaemonSet tells that it is the driver's, this is a Warning: something else may run the driver there.",
			Advice: "Make the DaemonSet run a pod there, or remove the slices if the node has lost the hardware.",
			find:   findAbandonedSlices,
		},
		{
			Code: CodeRights, Title: "driver without rights", Severity: api.SeverityError, Needs: sets,
			About:  "The service account of a driver may not do what the driver helper of Kubernetes does: publish ResourceSlices (list, watch, create, update, delete) and read the claims that it is to prepare (get). The driver's log has errors, and nothing else tells. Where the driver publishes slices all the same, another component may do that for it. The API server is asked, which takes the right to create subjectaccessreviews.authorization.k8s.io; a file does not tell.",
			Advice: "Add the verbs to a ClusterRole that is bound to the service account.",
			given:  func(opts *Options) bool { return opts.Reviews != nil },
			find:   findMissingRights,
		},
		{
			Code: CodeUnregistered, Title: "driver that is not registered", Severity: api.SeverityError, Needs: []string{snapshot.ResourcePods, snapshot.ResourceClaims, snapshot.ResourceEvents},
			About:  "A kubelet reports that it does not know a driver whose devices a pod has: the driver has not registered since the kubelet started, or was lost. The pod stays in ContainerCreating.",
			Advice: "Look at the driver's pod on the node, and restart it: it registers when it starts.",
			find:   findUnregistered,
		},
		absentCheck(),
	}
}

func findIdleDaemonSets(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, w := range daemonSets(in) {
		if w.Daemon == nil || w.Daemon.Desired > 0 {
			continue
		}
		found = append(found, api.Finding{
			Objects:  []api.ObjectRef{w.Ref()},
			Message:  fmt.Sprintf("DaemonSet %s runs on no node: its node selector or affinity matches none", english.QualifiedName(w)),
			Evidence: []api.Evidence{{Object: w.Ref(), Path: "status.desiredNumberScheduled", Found: "0", Required: "the nodes with the hardware"}},
			Remedy: &api.NextStep{
				Actor: api.ActorAdmin, Text: "compare its nodeSelector and affinity with the labels of the nodes",
				Commands: []string{"kubectl get " + shell.KubectlObjects("daemonset", w.Namespace, w.Name) + " -o jsonpath='{.spec.template.spec.nodeSelector}{.spec.template.spec.affinity}'"},
			},
		})
	}
	return found, nil
}

func findMissingDaemonPods(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, w := range daemonSets(in) {
		pods := len(lifecycle.Pods(in.cluster.Snapshot, w))
		if w.Daemon == nil || pods >= int(w.Daemon.Desired) {
			continue
		}
		f := api.Finding{
			Objects:  []api.ObjectRef{w.Ref()},
			Message:  fmt.Sprintf("DaemonSet %s has %d of %s: %d not created", english.QualifiedName(w), pods, english.Count(int(w.Daemon.Desired), "pod"), int(w.Daemon.Desired)-pods),
			Evidence: []api.Evidence{{Object: w.Ref(), Path: "status.desiredNumberScheduled", Found: english.Count(pods, "pod"), Required: fmt.Sprint(w.Daemon.Desired)}},
			Remedy: &api.NextStep{
				Actor: api.ActorAdmin, Text: "read the events of the DaemonSet: they say what refuses the pods",
				Commands: []string{"kubectl describe " + shell.KubectlObjects("daemonset", w.Namespace, w.Name)},
			},
		}
		if fact := lifecycle.LastWarning(in.cluster.Snapshot, w.Kind, w); fact != nil {
			f.Message += ": " + fact.Found
			f.Evidence = append(f.Evidence, *fact)
			f.Remedy.Text = "lift what refuses the pods: the events of the DaemonSet have all of it"
		}
		waiting := 0
		for _, pod := range in.blocked() {
			if pod.Unregistered != "" && in.lacksPlugin(pod.Unregistered, pod.Node, w) {
				waiting++
				f.Objects = append(f.Objects, api.Ref(api.KindPod, pod.Namespace, pod.Name))
			}
		}
		if waiting > 0 {
			f.Message += "; " + plural(waiting, "pod with devices waits for it", "pods with devices wait for it")
		}
		found = append(found, f)
	}
	return found, nil
}

// lacksPlugin reports whether a DaemonSet of a driver has no pod on a node and lacks some.
func (in *cluster) lacksPlugin(driver, node string, w *snapshot.Workload) bool {
	pods := lifecycle.Pods(in.cluster.Snapshot, w)
	return w.Daemon != nil && len(pods) < int(w.Daemon.Desired) &&
		slices.ContainsFunc(lifecycle.DaemonSets(in.cluster.Snapshot, driver), func(set lifecycle.DaemonSet) bool { return set.Workload == w }) &&
		!slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return lifecycle.DaemonNode(pod) == node })
}

// findFailingDaemonPods groups the pods of a DaemonSet by their problem, and counts the
// pods that wait for them.
func findFailingDaemonPods(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, w := range daemonSets(in) {
		type group struct {
			api.Finding
			pods    []*corev1.Pod
			trouble string
		}
		var groups []*group
		for _, pod := range lifecycle.Pods(in.cluster.Snapshot, w) {
			if lifecycle.Ready(pod) || pod.DeletionTimestamp != nil || in.pluginSaid(w, lifecycle.DaemonNode(pod)) {
				continue
			}
			trouble, evidence := lifecycle.PodTrouble(pod)
			at := slices.IndexFunc(groups, func(g *group) bool { return g.trouble == trouble })
			if at < 0 {
				at = len(groups)
				groups = append(groups, &group{trouble: trouble})
			}
			g := groups[at]
			g.pods, g.Objects, g.Evidence = append(g.pods, pod), append(g.Objects, api.RefTo(api.KindPod, pod)), append(g.Evidence, evidence)
			if fact := lifecycle.LastWarning(in.cluster.Snapshot, api.KindPod, pod); fact != nil {
				g.Evidence = append(g.Evidence, *fact)
			}
		}
		for _, g := range groups {
			first := g.pods[0]
			g.Message = fmt.Sprintf("pod %s of DaemonSet %s%s is not ready: %s", english.QualifiedName(first), w.Name, onNode(first), g.trouble)
			if len(g.pods) > 1 {
				var nodes []string
				for _, pod := range g.pods {
					nodes = append(nodes, lifecycle.DaemonNode(pod))
				}
				g.Message = fmt.Sprintf("%d pods of DaemonSet %s on nodes %s are not ready: %s", len(g.pods), english.QualifiedName(w), english.Sample(nodes, maxNames), g.trouble)
			}
			waiting := 0
			for _, pod := range in.blocked() {
				if in.waitsForPlugin(&pod, w) && slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return lifecycle.DaemonNode(p) == pod.Node }) {
					waiting++
					g.Objects = append(g.Objects, api.Ref(api.KindPod, pod.Namespace, pod.Name))
				}
			}
			if waiting > 0 {
				g.Message += "; " + plural(waiting, "pod waits for it", "pods wait for it")
			}
			g.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "read its log", Commands: []string{logs(first) + " --tail=50"}}
			found = append(found, g.Finding)
		}
	}
	return found, nil
}

// pluginSaid reports whether a finding about a driver names the plugin's pod on a node.
func (in *cluster) pluginSaid(w *snapshot.Workload, node string) bool {
	return slices.ContainsFunc(in.cluster.LostPools(), func(p facts.LostPool) bool {
		return in.lostOn(p.Driver, node) && slices.ContainsFunc(lifecycle.DaemonSets(in.cluster.Snapshot, p.Driver), func(set lifecycle.DaemonSet) bool { return set.Workload == w })
	})
}

// logs returns the command that prints the log of a pod.
func logs(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl logs %s -n %s --all-containers", shell.Quote(pod.Name), shell.Quote(pod.Namespace))
}

func onNode(pod *corev1.Pod) string {
	if node := lifecycle.DaemonNode(pod); node != "" {
		return " on node " + node
	}
	return ""
}

// publishedFor returns, by driver, the nodes for which it publishes slices by name.
func publishedFor(in *cluster) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for _, slice := range in.cluster.Snapshot.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		if name == "" {
			continue
		}
		if found[slice.Spec.Driver] == nil {
			found[slice.Spec.Driver] = map[string]bool{}
		}
		found[slice.Spec.Driver][name] = true
	}
	return found
}

func findSilentDrivers(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, w := range daemonSets(in) {
		for _, driver := range silent(in, w) {
			if f := silentEverywhere(in, w, driver); f != nil {
				found = append(found, *f)
			}
		}
	}
	published := publishedFor(in)
	for _, p := range plugins(in) {
		for _, pod := range lifecycle.Pods(in.cluster.Snapshot, p.Workload) {
			node, nodes := pod.Spec.NodeName, published[p.driver]
			if node == "" || nodes[node] || len(nodes) == 0 || !lifecycle.Ready(pod) {
				continue
			}
			found = append(found, api.Finding{
				Objects:  []api.ObjectRef{api.Ref(api.KindNode, "", node), api.RefTo(api.KindPod, pod)},
				Message:  fmt.Sprintf("driver %s runs on node %s and publishes nothing for it", p.driver, node),
				Evidence: []api.Evidence{{Object: api.Ref(kindSlice, "", ""), Path: "spec.nodeName", Found: "no slice of driver " + p.driver, Required: node}},
				Remedy:   searchLog(pod),
			})
		}
	}
	return found, nil
}

// silent returns the drivers of a DaemonSet that publish nothing, though a class selects by
// their name.
func silent(in *cluster, w *snapshot.Workload) []string {
	names, _ := w.KubeletPlugin()
	var found []string
	for _, name := range names {
		if isClassDriver(in, name) && len(lifecycle.Publishing(in.cluster.Snapshot, []string{name})) == 0 {
			found = append(found, name)
		}
	}
	return found
}

// silentEverywhere reports a running driver without slices; nil if it does not run.
func silentEverywhere(in *cluster, w *snapshot.Workload, driver string) *api.Finding {
	f := &api.Finding{}
	for _, pod := range lifecycle.Pods(in.cluster.Snapshot, w) {
		if lifecycle.Ready(pod) {
			f.Objects = append(f.Objects, api.RefTo(api.KindPod, pod))
			f.Remedy = cmp.Or(f.Remedy, searchLog(pod))
		}
	}
	if len(f.Objects) == 0 {
		return nil
	}
	f.Message = fmt.Sprintf("driver %s runs on %s and publishes nothing", driver, english.Count(len(f.Objects), "node"))
	f.Evidence = []api.Evidence{{Object: api.Ref(kindSlice, "", ""), Path: "spec.driver", Found: "no slice of driver " + driver, Required: driver}}
	return f
}

func searchLog(pod *corev1.Pod) *api.NextStep {
	return &api.NextStep{
		Actor: api.ActorAdmin, Text: "search the log of the driver for slices that the API server rejects",
		Commands: []string{logs(pod) + " | grep -i resourceslice"},
	}
}

// findUnregistered groups the pods that wait for one driver on one node.
func findUnregistered(_ context.Context, in *cluster) ([]api.Finding, error) {
	type place struct{ driver, node string }
	byPlace := map[place]*api.Finding{}
	var places []place
	for _, pod := range in.blocked() {
		if pod.Unregistered == "" || in.saidOf(&pod) || in.lostOn(pod.Unregistered, pod.Node) {
			continue
		}
		if in.opts.Makes(codeNotCreated) && slices.ContainsFunc(in.cluster.Snapshot.Workloads, func(w *snapshot.Workload) bool { return in.lacksPlugin(pod.Unregistered, pod.Node, w) }) {
			continue
		}
		at := place{pod.Unregistered, pod.Node}
		f := byPlace[at]
		if f == nil {
			step := lifecycle.PluginStep(in.cluster.Snapshot, at.driver, at.node)
			step.Text += ", and restart its pod there: it registers when it starts"
			f = &api.Finding{Remedy: &step}
			byPlace[at], places = f, append(places, at)
		}
		f.Objects = append(f.Objects, api.Ref(api.KindPod, pod.Namespace, pod.Name))
		f.Evidence = append(f.Evidence, *pod.Proof)
	}
	var found []api.Finding
	for _, at := range places {
		f := byPlace[at]
		f.Message = fmt.Sprintf("driver %s is not registered with the kubelet of node %s: %s", at.driver, at.node, plural(len(f.Objects), "pod waits", "pods wait"))
		f.Objects = append([]api.ObjectRef{api.Ref(api.KindNode, "", at.node)}, f.Objects...)
		found = append(found, *f)
	}
	return found, nil
}

// findAbandonedSlices finds slices whose driver is gone. It is certain only if the
// DaemonSet names the driver: a DaemonSet whose name resembles the driver's may not be the
// only publisher of its slices.
func findAbandonedSlices(_ context.Context, in *cluster) ([]api.Finding, error) {
	type running struct {
		sets  []string
		named bool
		nodes map[string]bool
	}
	drivers := map[string]*running{}
	for _, p := range plugins(in) {
		r := drivers[p.driver]
		if r == nil {
			r = &running{named: true, nodes: map[string]bool{}}
			drivers[p.driver] = r
		}
		r.sets, r.named = append(r.sets, p.String()), r.named && p.Named
		for _, pod := range lifecycle.Pods(in.cluster.Snapshot, p.Workload) {
			r.nodes[lifecycle.DaemonNode(pod)] = true
		}
	}
	var found []api.Finding
	for _, slice := range in.cluster.Snapshot.Slices {
		node, r := ptr.Deref(slice.Spec.NodeName, ""), drivers[slice.Spec.Driver]
		if r == nil || node == "" || r.nodes[node] || in.cluster.Snapshot.Node(node) == nil || slices.ContainsFunc(in.blocked(), func(pod lifecycle.BlockedPod) bool {
			// A pod waits for it, which is a finding of its own.
			return pod.Unregistered == slice.Spec.Driver && pod.Node == node && in.opts.Makes(CodeUnregistered)
		}) {
			continue
		}
		f := api.Finding{
			Objects:  []api.ObjectRef{api.RefTo(kindSlice, slice)},
			Message:  fmt.Sprintf("slice %s of driver %s is for node %s, where %s has no pod", slice.Name, slice.Spec.Driver, node, english.JoinAnd(r.sets)),
			Evidence: []api.Evidence{{Object: api.RefTo(kindSlice, slice), Path: "spec.nodeName", Found: node, Required: "a node with a pod of the driver"}},
			Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "make the driver's DaemonSet run a pod on node " + node + ", or delete the slice if the hardware is gone"},
		}
		if !r.named {
			f.Severity = api.SeverityWarning
			f.Remedy.Text = "find out what runs the driver on node " + node + "; delete the slice if nothing does and the hardware is gone"
		}
		found = append(found, f)
	}
	return found, nil
}

func pluginChecks() []Check {
	return []Check{{
		Code: "DRA1213", Title: "devices that a device plugin hands out, too", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceNodes},
		About:  "A driver publishes devices of a node, and on the same node a device plugin offers what by its name is the same hardware: driver gpu.example.com and the extended resource example.com/gpu. Neither knows what the other has handed out, so that two pods can get one device. Resources of another name are not found; where a DeviceClass has the name of the resource, DRA1305 says so.",
		Advice: "Run either the device plugin or the DRA driver on a node.",
		find:   findPluginHardware,
	}}
}

// findPluginHardware groups the nodes of one driver.
func findPluginHardware(_ context.Context, in *cluster) ([]api.Finding, error) {
	served := map[corev1.ResourceName]bool{}
	for _, class := range in.cluster.Snapshot.Classes {
		if name := class.Spec.ExtendedResourceName; name != nil {
			served[corev1.ResourceName(*name)] = true
		}
	}
	published := publishedFor(in)
	var found []api.Finding
	for _, driver := range slices.Sorted(maps.Keys(published)) {
		f := api.Finding{}
		offered := map[string]bool{}
		for _, node := range in.cluster.Snapshot.Nodes {
			if !published[driver][node.Name] {
				continue
			}
			o, before := api.RefTo(api.KindNode, node), len(f.Evidence)
			for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
				quantity := node.Status.Allocatable[name]
				if quantity.IsZero() || served[name] || !facts.SameHardware(driver, string(name)) {
					continue
				}
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "status.allocatable[" + string(name) + "]", Found: quantity.String()})
				offered[string(name)] = true
			}
			if len(f.Evidence) > before {
				f.Objects = append(f.Objects, o)
			}
		}
		if len(f.Objects) == 0 {
			continue
		}
		f.Message = fmt.Sprintf("a device plugin offers %s on %s where driver %s publishes devices: if these are the same hardware, as their names suggest, both can hand out one device",
			english.JoinAnd(slices.Sorted(maps.Keys(offered))), english.Count(len(f.Objects), "node"), driver)
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "compare the hardware of both; if it is the same, run either the device plugin or the DRA driver on these nodes"}
		found = append(found, f)
	}
	return found, nil
}

// CodeRights is the code of the check of rights.
const CodeRights = "DRA1106"

// rightsOfHelper returns the verbs that the helper for drivers uses (resourceslice and
// kubeletplugin of k8s.io/dynamic-resource-allocation), by resource.
func rightsOfHelper() []Right {
	var list []Right
	for _, verb := range []string{"list", "watch", "create", "update", "delete"} {
		list = append(list, Right{Resource: "resourceslices", Verb: verb})
	}
	return append(list, Right{Resource: "resourceclaims", Verb: "get"})
}

// Rights lists the rights that the service accounts of drivers need, each once.
func Rights(c *facts.Cluster) []Right {
	var list []Right
	for _, w := range daemonSets(&cluster{cluster: c}) {
		for _, right := range rightsOfHelper() {
			right.Namespace, right.ServiceAccount = w.Namespace, serviceAccount(w)
			if !slices.Contains(list, right) {
				list = append(list, right)
			}
		}
	}
	return list
}

func serviceAccount(w *snapshot.Workload) string {
	return cmp.Or(w.Template.Spec.ServiceAccountName, "default")
}

func findMissingRights(_ context.Context, in *cluster) ([]api.Finding, error) {
	for _, review := range in.opts.Reviews {
		if review.Unknown != "" {
			return []api.Finding{{Severity: api.SeverityUnknown, Message: "not checked: " + review.Unknown}}, nil
		}
	}
	var found []api.Finding
	for _, w := range daemonSets(in) {
		var refused []Right
		for _, review := range in.opts.Reviews {
			if !review.Allowed && review.Namespace == w.Namespace && review.ServiceAccount == serviceAccount(w) {
				refused = append(refused, review.Right)
			}
		}
		if len(refused) > 0 {
			found = append(found, missingRights(in, w, refused))
		}
	}
	return found, nil
}

func missingRights(in *cluster, w *snapshot.Workload, refused []Right) api.Finding {
	account := api.Ref("ServiceAccount", w.Namespace, serviceAccount(w))
	f := api.Finding{Objects: []api.ObjectRef{api.RefTo(w.Kind, w)}}
	var resources, texts, commands []string
	verbs := map[string][]string{}
	for _, right := range refused {
		if verbs[right.Resource] == nil {
			resources = append(resources, right.Resource)
		}
		verbs[right.Resource] = append(verbs[right.Resource], right.Verb)
	}
	role := "dra-driver-" + w.Name
	for _, resource := range resources {
		qualified := resource + "." + resourceapi.GroupName
		texts = append(texts, english.JoinAnd(verbs[resource])+" "+qualified)
		f.Evidence = append(f.Evidence, api.Evidence{
			Object: account, Path: qualified, Found: "may not " + strings.Join(verbs[resource], ", "), Required: strings.Join(verbs[resource], ", "),
		})
		named := shell.Quote(role + "-" + resource)
		commands = append(commands,
			fmt.Sprintf("kubectl create clusterrole %s --verb=%s --resource=%s", named, strings.Join(verbs[resource], ","), qualified),
			fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --serviceaccount=%s", named, named, shell.Quote(w.Namespace+":"+serviceAccount(w))))
	}
	f.Message = fmt.Sprintf("the service account %s of DaemonSet %s may not %s", serviceAccount(w), english.QualifiedName(w), english.JoinAnd(texts))
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "give the service account these rights", Commands: commands}
	names, _ := w.KubeletPlugin()
	if len(lifecycle.Publishing(in.cluster.Snapshot, names)) > 0 && !slices.Contains(resources, "resourceclaims") {
		f.Severity = api.SeverityWarning
		f.Message += "; what it has published is not kept up to date, unless another component does that"
	}
	return f
}
