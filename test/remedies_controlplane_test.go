// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// TestRemediesWork gives the commands of each kind of remedy, for pods of each
// kind of owner, to a shell, as they are. After that all pods that waited, or
// those that came in their place, have to be scheduled.
func TestRemediesWork(t *testing.T) {
	covered := map[whatif.EditKind]bool{}
	for _, each := range remedyCases() {
		for _, kind := range each.kinds {
			covered[kind] = true
		}
	}
	for _, kind := range whatif.EditKinds() {
		if !covered[kind] {
			t.Errorf("no remedy with an edit of kind %s is tried", kind)
		}
	}
	options := everything()
	// The pods of a Job that is replaced are left to the garbage collector.
	options.WithControllers = []string{"statefulset-controller", "garbage-collector-controller", "replicationcontroller-controller"}
	c := startCluster(t, options)
	t.Run("a shared claim", c.sharedClaim)
	c.runTrainers(t)
	t.Run("a deleted claim", c.deletedClaim)
	t.Run("cases", func(t *testing.T) {
		for _, each := range remedyCases() {
			owners := each.owners
			if len(owners) == 0 {
				owners = remedyOwners()
			}
			for _, owner := range owners {
				r := &remedyRun{remedyCase: each, cluster: c, owner: owner, id: each.name + "-" + owner}
				t.Run(each.name+"/"+owner, func(t *testing.T) {
					t.Parallel()
					r.run(t)
				})
			}
		}
	})
}

// deletedClaim deletes a claim that was made from a template. What is said then
// brings another one.
func (c *cluster) deletedClaim(t *testing.T) {
	r := &remedyRun{remedyCase: remedyCase{claim: exactly(", count: 8")}, cluster: c, owner: "pod", id: "deleted-claim"}
	r.setUp(t)
	defer r.deletePods(t, r.id)
	pod := r.waitUntilWaiting(t)[0]
	first, _ := r.claimOf(pod, pod.Spec.ResourceClaims[0])
	if err := r.kube.ResourceV1().ResourceClaims(r.id).Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e := r.explain(t, pod)
	var commands []string
	for _, step := range e.NextSteps {
		commands = append(commands, step.Commands...)
		if strings.Contains(step.Text, "create ResourceClaim") {
			t.Errorf("a claim made by hand does not help: %s", step.Text)
		}
	}
	if len(commands) == 0 {
		// The controller may have been faster.
		t.Logf("%s: %s", e.Verdict, e.Summary)
	}
	r.paste(t, commands)
	if err := poll(t.Context(), func() bool {
		pod, err := c.pods.Pods(r.id).Get(pod.Name)
		if err != nil {
			return false
		}
		claim, ok := r.claimOf(pod, pod.Spec.ResourceClaims[0])
		return ok && claim.UID != first.UID
	}); err != nil {
		t.Errorf("there is no other claim: %v", err)
	}
}

// sharedClaim lets two pods share a claim that the driver prepares for only one of them, as
// an event says. The other pod gets a claim of its own from a template with the spec of the
// shared claim, as the next step says. No kubelet starts the pods.
func (c *cluster) sharedClaim(t *testing.T) {
	r := &remedyRun{remedyCase: remedyCase{claim: exactly(""), nodes: 1}, cluster: c, owner: "pod", id: "shared-claim"}
	r.plain = true
	r.setUp(t)
	defer r.deletePods(t, r.id)
	r.apply(t, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: shared}\nspec: "+r.claim)
	pod := func(name, source string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {nodeSelector: {case: $C}, resourceClaims: [{name: devices, %s}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: devices}]}}]}", name, source)
	}
	scheduled := func(name string) *corev1.Pod {
		t.Helper()
		var found *corev1.Pod
		if err := poll(t.Context(), func() bool {
			pod, err := c.pods.Pods(r.id).Get(name)
			found = pod
			return err == nil && pod.DeletionTimestamp == nil && pod.Spec.NodeName != ""
		}); err != nil {
			t.Fatalf("pod %s: %v", name, err)
		}
		return found
	}
	r.apply(t, pod("first", "resourceClaimName: shared"))
	scheduled("first")
	r.apply(t, pod("second", "resourceClaimName: shared"))
	second := scheduled("second")
	r.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: refused}
involvedObject: {apiVersion: v1, kind: Pod, namespace: $C, name: second, uid: %s}
type: Warning
reason: FailedPrepareDynamicResources
message: "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim $C/shared: only one pod is supported"
source: {component: kubelet}
count: 1
firstTimestamp: %[2]s
lastTimestamp: %[2]s
`, second.UID, time.Now().UTC().Format(time.RFC3339)))
	e := r.explain(t, second)
	if !slices.ContainsFunc(e.NextSteps, func(s api.NextStep) bool {
		return strings.Contains(s.Text, "create a ResourceClaimTemplate with the spec of claim shared, and name it with resourceClaimTemplateName in place of resourceClaimName")
	}) {
		t.Fatalf("%s: %s\n%+v", e.Verdict, e.Summary, e.NextSteps)
	}
	r.apply(t, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: own}\nspec: {spec: "+r.claim+"}")
	r.paste(t, []string{"kubectl delete pod second --force -n " + r.id})
	if err := poll(t.Context(), func() bool {
		_, err := c.pods.Pods(r.id).Get("second")
		return apierrors.IsNotFound(err)
	}); err != nil {
		t.Fatal(err)
	}
	r.apply(t, pod("second", "resourceClaimTemplateName: own"))
	second = scheduled("second")
	if claim, ok := r.claimOf(second, second.Spec.ResourceClaims[0]); !ok || claim.Name == "shared" || claim.Status.Allocation == nil {
		t.Errorf("the pod has no claim of its own: %+v", claim)
	}
}

// remedyRun is one case with one owner.
type remedyRun struct {
	remedyCase
	*cluster
	owner, id string
}

func (r *remedyRun) run(t *testing.T) {
	ctx := t.Context()
	r.setUp(t)
	defer r.deletePods(t, r.id)
	var asked *corev1.Pod
	if !r.startsLater() {
		asked = r.waitUntilWaiting(t)[0]
	}
	e := r.explain(t, asked)
	remedy := r.chosen(t, e)
	switch {
	case r.target == "pod":
		r.changeOwner(t, e, remedy)
	case r.without:
		if len(remedy.Commands) > 0 {
			t.Errorf("commands %q", remedy.Commands)
		}
		r.paste(t, edited(t, remedy))
	default:
		r.paste(t, remedy.Commands)
	}
	if r.startsLater() {
		r.paste(t, []string{r.startJob()})
	}
	var last string
	if err := poll(ctx, func() bool {
		scheduled := 0
		last = ""
		for _, pod := range r.live(t) {
			last += fmt.Sprintf("%s on %q; ", pod.Name, pod.Spec.NodeName)
			if pod.Spec.NodeName == "" {
				return false
			}
			scheduled++
		}
		return scheduled == r.pods()
	}); err != nil {
		t.Errorf("not all of %d pods are scheduled: %s\n%s", r.pods(), last, strings.Join(remedy.Commands, "\n"))
	}
}

// edited returns how somebody else makes the edits of a remedy without commands.
func edited(t *testing.T, remedy *api.Remedy) []string {
	t.Helper()
	var commands []string
	for i := range remedy.Edits {
		e := &remedy.Edits[i]
		kind, namespace, name := e.Object.Kind, e.Object.Namespace, e.Object.Name
		patch, err := json.Marshal([]operation{{e.Op, e.Path, e.Value}})
		if err != nil {
			t.Fatal(err)
		}
		command := fmt.Sprintf("kubectl patch %s %s --type=json -p '%s'", strings.ToLower(kind), name, patch)
		if namespace != "" {
			command += " -n " + namespace
		}
		if strings.HasPrefix(e.Path, "/status/") {
			command += " --subresource=status"
		}
		commands = append(commands, command)
	}
	return commands
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// startsLater reports whether the pods belong to a CronJob that is asked about before it
// has started a Job.
func (r *remedyRun) startsLater() bool { return r.owner == "cronjob" && r.target == "workload" }

// startJob starts a Job of a CronJob.
func (r *remedyRun) startJob() string {
	return fmt.Sprintf("kubectl create job w --from=cronjob/w -n %s", r.id)
}

// changeOwner does what a remedy says about a pod whose owner is of an unknown
// kind: it makes the edits of the pod in the owner's pod template.
func (r *remedyRun) changeOwner(t *testing.T, e *api.Explanation, remedy *api.Remedy) {
	t.Helper()
	if len(remedy.Commands) > 0 || remedy.Owner != api.Ref("Trainer", r.id, "w").In("training.example.com") {
		t.Fatalf("owner %+v, commands %q", remedy.Owner, remedy.Commands)
	}
	text := drawn(t, e, 200)
	for _, want := range []string{"Change the pod template of Trainer w (training.example.com), which creates the pod:\n", "Pod w-0: spec.nodeSelector"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	var operations []operation
	for _, edit := range remedy.Edits {
		operations = append(operations, operation{edit.Op, "/spec/template" + edit.Path, edit.Value})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	r.paste(t, []string{
		fmt.Sprintf("kubectl patch trainer w -n %s --type=json -p '%s'", r.id, patch),
		fmt.Sprintf("kubectl delete pod --all --wait=false -n %s", r.id),
	})
}

// pods returns how many there are.
func (r *remedyRun) pods() int {
	switch {
	case r.owner == "pod":
		return 1
	case r.owner == "daemonset":
		return r.nodeCount()
	case r.replicas == 0:
		return 2
	default:
		return r.replicas
	}
}

func (r *remedyRun) nodeCount() int {
	if r.nodes == 0 {
		return 2
	}
	return r.nodes
}

func (r *remedyRun) setUp(t *testing.T) {
	t.Helper()
	devices, class := r.devices, r.class
	if devices == "" {
		devices = "[" + strings.Join([]string{
			"{name: gpu-0, attributes: {model: {string: A}, root: {string: r0}}}", "{name: gpu-1, attributes: {model: {string: A}, root: {string: r0}}}",
			"{name: gpu-2, attributes: {model: {string: A}, root: {string: r1}}}", "{name: gpu-3, attributes: {model: {string: A}, root: {string: r1}}}",
		}, ", ") + "]"
	}
	if class == "" {
		class = `{selectors: [{cel: {expression: "device.driver == '$C.example.com'"}}]}`
	}
	slicesOfPool := 1
	if devices, _ = strings.CutSuffix(devices, ", "); devices != r.devices && r.devices != "" {
		slicesOfPool = 2
	}
	r.apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: $C, labels: {"+labelled(r.labels)+"}}")
	r.apply(t, "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: $C}\nspec: "+class)
	for n := range r.nodeCount() {
		r.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: $C-%[1]d, labels: {case: $C, kubernetes.io/hostname: $C-%[1]d}}
%[2]s
`+readyNode, n+1, r.node))
		r.apply(t, fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $C-%[1]d}
spec: {driver: $C.example.com, nodeName: $C-%[1]d, pool: {name: $C-%[1]d, generation: 1, resourceSliceCount: %[2]d}, devices: %[3]s}
`, n+1, slicesOfPool, devices))
	}
	if !r.plain {
		r.apply(t, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: "+r.claim+"}")
	}
	if r.objects != "" {
		r.apply(t, r.objects)
	}
	if r.labels != "" {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, r.labels)
		if _, err := r.kube.CoreV1().Namespaces().Patch(t.Context(), r.id, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		r.waitForAdmission(t)
	}
	r.apply(t, r.workload())
	if r.owner == "cronjob" && !r.startsLater() {
		r.paste(t, []string{r.startJob()})
	}
}

// waitForAdmission returns when the API server has noticed that the namespace has
// lost the label for admin access.
func (r *remedyRun) waitForAdmission(t *testing.T) {
	t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: resourceapi.ResourceClaimSpec{
		Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "any", AdminAccess: ptr.To(true)},
		}}},
	}}
	if err := poll(t.Context(), func() bool {
		_, err := r.kube.ResourceV1().ResourceClaims(r.id).Create(t.Context(), claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	}); err != nil {
		t.Fatal(err)
	}
}

func labelled(name string) string {
	if name == "" {
		return ""
	}
	return name + `: "true"`
}

func (r *remedyRun) apply(t *testing.T, document string) {
	t.Helper()
	object, err := parseObject([]byte(strings.ReplaceAll(document, "$C", r.id)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	if err := r.create(t.Context(), r.id, object); err != nil {
		t.Fatal(err)
	}
}

// podSpec returns the spec of the pods, in one line of YAML.
func (r *remedyRun) podSpec() string {
	container := r.container
	claims := ""
	if !r.plain {
		if container == "" {
			container = "resources: {claims: [{name: devices}]}"
		}
		claims = ", resourceClaims: [{name: devices, resourceClaimTemplateName: t}]"
	}
	further := r.pod
	if further == "" {
		further = "nodeSelector: {case: $C}"
	}
	restart := ""
	if r.owner == "job" || r.owner == "cronjob" {
		restart = ", restartPolicy: Never"
	}
	return fmt.Sprintf("{%s, containers: [{name: main, image: example.com/none, %s}]%s%s}", further, container, claims, restart)
}

// workload returns what makes the pods.
func (r *remedyRun) workload() string {
	template := "{metadata: {labels: {app: w}}, spec: " + r.podSpec() + "}"
	switch r.owner {
	case "pod":
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: w}\nspec: " + r.podSpec()
	case "deployment":
		return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: %d, selector: {matchLabels: {app: w}}, template: %s}", r.pods(), template)
	case "replicaset":
		return fmt.Sprintf("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: w}\nspec: {replicas: %d, selector: {matchLabels: {app: w}}, template: %s}", r.pods(), template)
	case "statefulset":
		return fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: w}\nspec: {replicas: %d, serviceName: w, podManagementPolicy: Parallel, selector: {matchLabels: {app: w}}, template: %s}", r.pods(), template)
	case "daemonset":
		return fmt.Sprintf("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: w}\nspec: {selector: {matchLabels: {app: w}}, template: %s}", template)
	case "job":
		// One failure is one too many.
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: w}\nspec: {backoffLimit: 0, parallelism: %[1]d, completions: %[1]d, template: %[2]s}", r.pods(), template)
	case "cronjob":
		return fmt.Sprintf("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: w}\nspec: {schedule: 0 0 1 1 *, suspend: true, jobTemplate: {spec: {backoffLimit: 0, parallelism: %[1]d, completions: %[1]d, template: %[2]s}}}", r.pods(), template)
	case "replicationcontroller":
		return fmt.Sprintf("apiVersion: v1\nkind: ReplicationController\nmetadata: {name: w}\nspec: {replicas: %d, selector: {app: w}, template: %s}", r.pods(), template)
	case "trainer":
		return fmt.Sprintf("apiVersion: training.example.com/v1\nkind: Trainer\nmetadata: {name: w}\nspec: {replicas: %d, template: %s}", r.pods(), template)
	}
	panic("unknown owner " + r.owner)
}

// kindOfOwner returns the kind as it is written in manifests, and how kubectl names it.
func kindOfOwner(owner string) (kind, resource string) {
	switch owner {
	case "trainer":
		return "Trainer", "trainers.training.example.com"
	case "cronjob":
		return "CronJob", owner
	case "replicationcontroller":
		return "ReplicationController", owner
	case "replicaset", "statefulset", "daemonset":
		kind := strings.TrimSuffix(owner, "set")
		return strings.ToUpper(kind[:1]) + kind[1:] + "Set", owner
	default:
		return strings.ToUpper(owner[:1]) + owner[1:], owner
	}
}

// live returns the pods that are not being deleted.
func (r *remedyRun) live(t *testing.T) []*corev1.Pod {
	t.Helper()
	pods, err := r.cluster.pods.Pods(r.id).List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Name == "other" })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// waitUntilWaiting returns the pods when the scheduler has refused all of them,
// and their claims are there, if they can be.
func (r *remedyRun) waitUntilWaiting(t *testing.T) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	if err := poll(t.Context(), func() bool {
		pods = r.live(t)
		for _, pod := range pods {
			// The scheduler does not look at pods whose claims cannot be created.
			if reason := r.decided(pod).reason; r.labels == "" && reason != unschedulable && reason != schedulerError {
				return false
			}
			for _, entry := range pod.Spec.ResourceClaims {
				if _, ok := r.claimOf(pod, entry); !ok && r.labels == "" {
					return false
				}
			}
		}
		return len(pods) == r.pods()
	}); err != nil {
		for _, pod := range pods {
			t.Logf("%s: %+v", pod.Name, r.decided(pod))
		}
		t.Fatalf("%d pods do not wait", r.pods())
	}
	return pods
}

// explain asks about a pod or about the workload, as a user does.
func (r *remedyRun) explain(t *testing.T, pod *corev1.Pod) *api.Explanation {
	t.Helper()
	ref := snapshot.Argument{Resource: "pod", Namespace: r.id}
	options := explain.Options{Object: api.Ref(api.KindPod, r.id, ""), AllRemedies: true}
	if pod != nil {
		ref.Name, options.Object.Name = pod.Name, pod.Name
	}
	switch r.target {
	case "template":
		ref.Resource, ref.Name, options.Object.Kind, options.Object.Name = "resourceclaimtemplate", "t", api.KindTemplate, "t"
	case "podgroup":
		ref.Resource, ref.Name, options.Object.Kind, options.Object.Name = "podgroup", "gang", api.KindPodGroup, "gang"
	case "workload":
		ref.Name, options.Object.Name = "w", "w"
		options.Object.Kind, ref.Resource = kindOfOwner(r.owner)
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &r.kubeconfig
	clients, err := collect.NewClients(flags)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := collect.Collect(t.Context(), clients, collect.Options{Target: &ref})
	if err != nil {
		t.Fatal(err)
	}
	var answers []explain.Answer
	synctest.Test(t, func(t *testing.T) {
		answers, err = explain.ExplainEach(t.Context(), facts.New(snap), []explain.Options{options})
	})
	if err != nil {
		t.Fatal(err)
	}
	if answers[0].Err != nil {
		t.Fatal(answers[0].Err)
	}
	return answers[0].Explanation
}

// chosen returns the remedy with the kinds of edits that the case is about.
func (r *remedyRun) chosen(t *testing.T, e *api.Explanation) *api.Remedy {
	t.Helper()
	want := slices.Sorted(slices.Values(r.kinds))
	var found []string
	for i := range e.Remedies {
		var kinds []whatif.EditKind
		for j := range e.Remedies[i].Edits {
			kinds = append(kinds, whatif.KindOf(&e.Remedies[i].Edits[j]))
		}
		slices.Sort(kinds)
		kinds = slices.Compact(kinds)
		found = append(found, fmt.Sprintf("%s %v", e.Remedies[i].Change, kinds))
		if slices.Equal(kinds, want) && strings.Contains(e.Remedies[i].Change, r.change) && (r.without || len(e.Remedies[i].Commands) > 0) {
			return &e.Remedies[i]
		}
	}
	t.Fatalf("%s: %s\nno remedy with edits %v and commands: %s", e.Verdict, e.Summary, want, strings.Join(found, "\n"))
	return nil
}

// paste gives commands to a shell as they are.
func (r *remedyRun) paste(t *testing.T, commands []string) {
	t.Helper()
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig, "PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(commands, "\n"), out)
	}
}

// trainerKind is the definition of a kind that a controller of its own makes pods
// for.
const trainerKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainers.training.example.com}
spec:
  group: training.example.com
  scope: Namespaced
  names: {kind: Trainer, plural: trainers, singular: trainer, listKind: TrainerList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// runTrainers serves Trainers, and has pods run, until the end of the test: each
// Trainer has pods w-0 and so on, made from its template.
func (c *cluster) runTrainers(t *testing.T) {
	t.Helper()
	definition, err := parseObject([]byte(trainerKind))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.create(t.Context(), "", definition); err != nil {
		t.Fatal(err)
	}
	trainers := schema.GroupVersionResource{Group: "training.example.com", Version: "v1", Resource: "trainers"}
	if err := poll(t.Context(), func() bool {
		_, err := c.dynamic.Resource(trainers).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	c.mapper.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			list, err := c.dynamic.Resource(trainers).List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(list.Items); i++ {
				// What fails is tried again.
				_ = c.train(ctx, &list.Items[i])
			}
			c.startPods(ctx)
			return false, nil
		})
	}()
}

// startPods runs the pods that are bound to a node, as a kubelet would, since a Deployment
// waits for that, and ends deleted ones.
func (c *cluster) startPods(ctx context.Context) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp != nil {
			_ = c.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		}
		if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
			patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
			_, _ = c.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
	}
}

// train creates the pods that a Trainer lacks.
func (c *cluster) train(ctx context.Context, trainer *unstructured.Unstructured) error {
	var spec struct {
		Replicas int                    `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
	}
	fields, _, err := unstructured.NestedMap(trainer.Object, "spec")
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return err
	}
	for n := range spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: *spec.Template.ObjectMeta.DeepCopy(), Spec: *spec.Template.Spec.DeepCopy()}
		pod.Name = fmt.Sprintf("%s-%d", trainer.GetName(), n)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(trainer, trainer.GroupVersionKind())}
		if _, err := c.pods.Pods(trainer.GetNamespace()).Get(pod.Name); err == nil {
			continue
		}
		if _, err := c.kube.CoreV1().Pods(trainer.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
