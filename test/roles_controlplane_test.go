// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// rightsCluster starts a cluster with something for each right to see.
func rightsCluster(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t, controlplane.Options{
		FeatureGates:     map[string]bool{"GenericWorkload": true, "DRAWorkloadResourceClaims": true, "DRAResourcePoolStatus": true, "TopologyAwareWorkloadScheduling": true, "CompositePodGroup": true},
		RuntimeConfig:    map[string]bool{"scheduling.k8s.io/v1beta1": true, "scheduling.k8s.io/v1alpha3": true, "resource.k8s.io/v1alpha3": true},
		WithoutScheduler: true, WithoutControllerManager: true,
		// Pods may be privileged then.
		WithNodes: true,
	})
	objects, err := os.ReadFile("testdata/rights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	domain := c.createDomain(t)
	// Nothing runs that would change them.
	c.createAll(t, "ml", strings.ReplaceAll(string(objects), "$DOMAIN", domain))
	queues, err := os.ReadFile("testdata/rights-kueue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(queues), "\n---\n") {
		object, err := parseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		c.createCustom(t.Context(), t, "ml", resource, object)
	}
	return c
}

// TestRights applies the roles of docs/rbac.md, and runs each verb as somebody
// who has what the document says that it takes, and nothing more; and then once
// without each of these rights.
func TestRights(t *testing.T) {
	c := rightsCluster(t)
	document, runs := readRights(t), verbRuns(t)
	for _, object := range document.objects {
		mustDo(t, func() error { return c.create(t.Context(), "kube-system", object) })
	}
	r := &rightsTest{cluster: c, document: document, rules: map[string][]rbacv1.PolicyRule{}}
	for verb, run := range runs {
		r.add(t, userOf(verb, ""), verb, run, "")
		for right := range document.uses[verb] {
			r.add(t, userOf(verb, right), verb, run, right)
		}
	}
	r.add(t, "unprivileged adder", "taints add", verbRun{}, "")
	r.add(t, "unprivileged remover", "taints remove", verbRun{}, "")
	r.grantAll(t)

	t.Run("reading", func(t *testing.T) {
		for verb := range document.uses {
			run, known := runs[verb]
			if !known {
				t.Errorf("the document names %s, which is not tested", verb)
				continue
			}
			t.Run(verb, func(t *testing.T) {
				t.Parallel()
				r.testVerb(t, verb, run)
			})
		}
		t.Run("whole roles", func(t *testing.T) {
			t.Parallel()
			r.testWholeRoles(t, runs)
		})
		for user, right := range map[string]string{"unprivileged adder": "create", "unprivileged remover": "delete"} {
			t.Run(user, func(t *testing.T) {
				t.Parallel()
				verb := map[string]string{"create": "taints add", "delete": "taints remove"}[right]
				got := invoke(t.Context(), c.kubeconfigOf(t, user), runs[verb].args...)
				if want := "cannot " + right + ` resource "devicetaintrules"`; got.code != 4 || !strings.Contains(got.errOut, want) {
					t.Errorf("code %d, want 4 and %q: %s", got.code, want, got.errOut)
				}
			})
		}
	})
	// These make and delete objects, which others would see.
	t.Run("node-probe --node", r.testProbe)
	t.Run("a missing right to count", r.testNoCounts)
}

// createDomain creates a ComputeDomain with the kinds that it takes, and returns its UID.
func (c *cluster) createDomain(t *testing.T) string {
	t.Helper()
	crds, err := os.ReadFile("testdata/computedomain-crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.createAll(t, "", string(crds))
	c.createAll(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: domains}}")
	object, err := parseObject([]byte("{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {name: train}, spec: {channel: {resourceClaimTemplate: {name: channel}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	domains := schema.GroupVersionResource{Group: "resource.nvidia.com", Version: "v1beta1", Resource: "computedomains"}
	c.createCustom(t.Context(), t, "domains", domains, object)
	domain, err := c.dynamic.Resource(domains).Namespace("domains").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(domain.GetUID())
}

// rightsTest grants rights to users, all at once.
type rightsTest struct {
	cluster  *cluster
	document rightsDocument
	rules    map[string][]rbacv1.PolicyRule
}

// add adds a user who has all rights that the document lists for a verb, but for one.
func (r *rightsTest) add(t *testing.T, user, verb string, run verbRun, without string) {
	t.Helper()
	used := func(right string) bool {
		_, used := r.document.uses[verb][right]
		return used && right != without
	}
	r.rules[user] = slices.Concat(r.document.rules(t, "ClusterRole kubectl-dra-devices", used), r.document.rules(t, "ClusterRole kubectl-dra-claims", used), r.document.rules(t, "ClusterRole kubectl-dra-doctor", used))
	if run.role == "" {
		return
	}
	for _, rule := range r.document.roles["ClusterRole "+run.role] {
		if slices.Contains(rule.Verbs, run.verb) {
			r.rules[user] = append(r.rules[user], rule)
		}
	}
}

func (r *rightsTest) grantAll(t *testing.T) {
	t.Helper()
	for user, rules := range r.rules {
		r.cluster.grant(t.Context(), t, user, "", rules...)
	}
	for user, rules := range r.rules {
		for _, rule := range rules {
			r.cluster.waitForRight(t, user, "", rule)
		}
	}
}

func (r *rightsTest) testVerb(t *testing.T, verb string, run verbRun) {
	ctx := t.Context()
	want := invoke(ctx, r.cluster.kubeconfig, run.args...)
	if want.code > 2 || strings.Contains(want.errOut, "Note: ") {
		t.Fatalf("with all rights: %+v", want)
	}
	if diff := cmp.Diff(want, invoke(ctx, r.cluster.kubeconfigOf(t, userOf(verb, "")), run.args...), cmp.AllowUnexported(answered{})); diff != "" {
		t.Errorf("with the rights that it takes: -all rights +these\n%s", diff)
	}
	for right, mark := range r.document.uses[verb] {
		args, other := run.without[right]
		full := want
		if !other {
			args = run.args
		} else {
			full = invoke(ctx, r.cluster.kubeconfig, args...)
		}
		got := invoke(ctx, r.cluster.kubeconfigOf(t, userOf(verb, right)), args...)
		said := got.out + got.errOut
		if !slices.ContainsFunc(r.document.says[right], func(text string) bool { return strings.Contains(said, text) }) && (got.code != 4 || !strings.Contains(said, right)) {
			t.Errorf("without %s it does not say %q:\n%s", right, r.document.says[right], said)
		}
		// These say what a gap means among the rest, or tell how long ago something was.
		mixed := slices.Contains([]string{"why", "plan", "doctor", "top", "snapshot"}, verb)
		switch {
		case mark == markAsked && (got.code != 4 || !strings.Contains(got.errOut, "may list") || !strings.Contains(got.errOut, "kubectl dra snapshot") || strings.Contains(got.out+got.errOut, "No ")):
			t.Errorf("without %s: code %d, want 4 and the role to ask for, and not that there is nothing:\n%s%s", right, got.code, got.out, got.errOut)
		case mark == markLess && got.code == 4 && !slices.Contains([]string{"why", "fit", "node-probe"}, verb):
			t.Errorf("without %s: code 4, though it is not what is asked for:\n%s", right, got.errOut)
		case mark == markLess && got.code == full.code && got.out == full.out:
			t.Errorf("without %s it says all the same, and the document marks it as needed:\n%s", right, got.out)
		case mark == markMinor && (got.code != full.code || withoutGaps(got.out) != withoutGaps(full.out) && !mixed):
			t.Errorf("without %s: code %d, want %d as with it, since the document marks it as optional:\n%s", right, got.code, full.code, cmp.Diff(withoutGaps(full.out), withoutGaps(got.out)))
		}
	}
}

// withoutGaps leaves out the reports of gaps: notes, and the section of assumptions.
func withoutGaps(out string) string {
	out = regexp.MustCompile(`(?m)^Note: .*\n`).ReplaceAllString(out, "")
	return regexp.MustCompile(`\n*Assumptions .*\n( - .*\n)*`).ReplaceAllString(out, "\n")
}

// testWholeRoles runs the verbs as somebody who has the roles that were applied.
func (r *rightsTest) testWholeRoles(t *testing.T, runs map[string]verbRun) {
	ctx, c := t.Context(), r.cluster
	for _, role := range []string{"kubectl-dra-devices", "kubectl-dra-claims", "kubectl-dra-doctor", "kubectl-dra-taints"} {
		c.bind(t, "operator", "", role)
		for _, rule := range r.document.roles["ClusterRole "+role] {
			c.waitForRight(t, "operator", "", rule)
		}
	}
	operator := c.kubeconfigOf(t, "operator")
	for verb, run := range runs {
		if diff := cmp.Diff(invoke(ctx, c.kubeconfig, run.args...), invoke(ctx, operator, run.args...), cmp.AllowUnexported(answered{})); diff != "" {
			t.Errorf("%s: -all rights +the roles\n%s", verb, diff)
		}
	}
	watching := programFor(t, operator).start(t, "claims", "--watch", "-n", "ml")
	watching.waitRow(t, "train", "Reserved")
	if code, _, stderr := watching.interrupt(t); code != 0 || len(stderr) > 0 {
		t.Errorf("claims --watch: code %d, %q", code, stderr)
	}
}

// testProbe starts the pod of node-probe, which no kubelet takes here.
func (r *rightsTest) testProbe(t *testing.T) {
	c, here, everywhere := r.cluster, r.document.roles["Role kubectl-dra-node-probe"], r.document.roles["ClusterRole kubectl-dra-node-probe"]
	lists := r.rules[userOf("node-probe", "")]
	grant := func(user string, here, everywhere []rbacv1.PolicyRule) string {
		c.grant(t.Context(), t, user, "kube-system", here...)
		c.grant(t.Context(), t, user, "", everywhere...)
		for _, rule := range here {
			c.waitForRight(t, user, "kube-system", rule)
		}
		for _, rule := range everywhere {
			c.waitForRight(t, user, "", rule)
		}
		return c.kubeconfigOf(t, user)
	}
	args := []string{"node-probe", "--node", "node-a", "--pod-namespace", "kube-system"}
	started := func(user, kubeconfig string) {
		pods, err := c.kube.CoreV1().Pods("kube-system").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer pods.Stop()
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		ended := make(chan answered, 1)
		go func() { ended <- invoke(ctx, kubeconfig, args...) }()
		select {
		case got := <-ended:
			t.Fatalf("%s cannot start the pod: %+v", user, got)
		case <-pods.ResultChan():
		}
		interrupt()
		if got := <-ended; got.code != 4 || !strings.Contains(got.errOut, "interrupted") {
			t.Errorf("%s: %+v", user, got)
		}
		left, err := c.kube.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range left.Items {
			if left.Items[i].DeletionTimestamp == nil {
				t.Errorf("%s leaves pod %s behind", user, left.Items[i].Name)
			}
			mustDo(t, func() error {
				return c.kube.CoreV1().Pods("kube-system").Delete(t.Context(), left.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			})
		}
	}
	started("prober", grant("prober", here, slices.Concat(everywhere, lists)))

	got := invoke(t.Context(), grant("prober-without-nodes", here, lists), args...)
	if got.code != 4 || !strings.Contains(got.errOut, "not permitted to get nodes") {
		t.Errorf("without get nodes: %+v", got)
	}
	for i, rule := range here {
		right := rule.Verbs[0] + " " + rule.Resources[0]
		user := "prober-without-" + strings.NewReplacer(" ", "-", "/", "-").Replace(right)
		kubeconfig := grant(user, slices.Delete(slices.Clone(here), i, i+1), slices.Concat(everywhere, lists))
		if right == "get pods/exec" {
			// There is another way, which takes create alone.
			started(user, kubeconfig)
			continue
		}
		if got := invoke(t.Context(), kubeconfig, args...); got.code != 4 || !strings.Contains(got.errOut, "not permitted to "+right+" in namespace kube-system\n") {
			t.Errorf("without %s: %+v", right, got)
		}
	}
}

// testNoCounts lacks one of the rights that it takes to have the cluster count.
func (r *rightsTest) testNoCounts(t *testing.T) {
	all := r.document.roles["ClusterRole kubectl-dra-pool-status"]
	for i, rule := range all {
		user := "counter-without-" + rule.Verbs[0]
		rules := slices.Concat(r.rules[userOf("pools", snapshot.ResourceClaims)], slices.Delete(slices.Clone(all), i, i+1))
		r.cluster.grant(t.Context(), t, user, "", rules...)
		for _, rule := range rules {
			r.cluster.waitForRight(t, user, "", rule)
		}
		got := invoke(t.Context(), r.cluster.kubeconfigOf(t, user), "pools", "--ask-server")
		want := "this user may not " + rule.Verbs[0] + " resourcepoolstatusrequests.resource.k8s.io"
		if got.code != 4 || !strings.Contains(got.out, "≤") || !strings.Contains(got.errOut, want) {
			t.Errorf("without %s it does not say %q: %+v", rule.Verbs[0], want, got)
		}
	}
}

// answered is the output for a user.
type answered struct {
	code        int
	out, errOut string
}

// invoke runs a verb in namespace ml. What depends on the moment is left out.
func invoke(ctx context.Context, kubeconfig string, args ...string) answered {
	passing := regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h)(\d+s)?\b|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`)
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(ctx, append(slices.Clone(args), "-n", "ml", "--kubeconfig", kubeconfig), streams, commands.Build{Version: "v0.0.0-test"})
	// An age can make a column wider.
	blanks := regexp.MustCompile(` +`)
	return answered{code, blanks.ReplaceAllString(passing.ReplaceAllString(out.String(), "*"), " "), errOut.String()}
}

// verbRun is a verb as the test runs it.
type verbRun struct {
	args []string
	// without has other arguments for those rights that only matter then.
	without map[string][]string
	// role is a role of the document that the verb takes besides the rights in the table,
	// and verb the verb of the rule in it; empty for verbs that only read.
	role, verb string
}

// verbRuns returns the verbs of the document, by the name that they have there.
func verbRuns(t *testing.T) map[string]verbRun {
	return map[string]verbRun{
		"slices":           {args: []string{"slices"}},
		"pools":            {args: []string{"pools", "-o", "wide"}},
		"devices":          {args: []string{"devices", "-o", "wide"}},
		"claims":           {args: []string{"claims", "-o", "wide"}},
		"classes":          {args: []string{"classes", "-o", "wide"}},
		"nodes":            {args: []string{"nodes", "-o", "wide"}},
		"usage":            {args: []string{"usage", "-A", "-o", "wide"}},
		"taints":           {args: []string{"taints", "-o", "wide"}},
		"attributes":       {args: []string{"attributes", "-o", "wide"}},
		"cel":              {args: []string{"cel", "--class", "gpu", `device.driver == "gpu.example.com"`}},
		"tree":             {args: []string{"tree", "pod/train", "pod/worker-0", "pod/templated", "node/", "class/gpu"}},
		"claims --pending": {args: []string{"claims", "--pending"}},
		"top":              {args: []string{"top", "--once"}},
		"doctor":           {args: []string{"doctor"}},
		"impact":           {args: []string{"impact", "drain", "node-a"}},
		"lint --cluster":   {args: []string{"lint", "testdata/lint.yaml", "--cluster"}},
		"plan":             {args: []string{"plan"}},
		"test":             {args: []string{"test", "--dry-run=client", "--class", "gpu"}},
		"snapshot":         {args: []string{"snapshot", "--format", "json"}},
		"version":          {args: []string{"version"}},
		"node-probe":       {args: []string{"node-probe", "cdi", "--node-root", t.TempDir(), "--node-name", "node-a"}},
		"taints add": {
			args: []string{"taints", "add", "--pool", "node-a", "--device", "gpu-0", "example.com/hot:NoExecute", "--dry-run=server"},
			role: "kubectl-dra-taints", verb: "create",
		},
		"taints remove": {args: []string{"taints", "remove", "worn", "--dry-run=server"}, role: "kubectl-dra-taints", verb: "delete"},
		"fit": {args: []string{"fit", "pod/big"}, without: map[string][]string{
			"deployments.apps":              {"fit", "deployment/serve"},
			"jobs.batch":                    {"fit", "job/tune"},
			"namespaces":                    {"fit", "template/inspect"},
			snapshot.ResourceTemplates:      {"fit", "pod/templated"},
			snapshot.ResourceQuotas:         {"fit", "deployment/serve"},
			snapshot.ResourceLimitRanges:    {"fit", "deployment/serve"},
			"persistentvolumeclaims":        {"fit", "pod/stored"},
			"persistentvolumes":             {"fit", "pod/stored"},
			"storageclasses.storage.k8s.io": {"fit", "pod/stored"},
		}},
		"why": {args: []string{"why", "pod/big"}, without: map[string][]string{
			"deployments.apps":                  {"why", "deployment/serve"},
			"jobs.batch":                        {"why", "job/tune"},
			snapshot.ResourceAutoscalers:        {"why", "deployment/serve"},
			"namespaces":                        {"why", "template/inspect"},
			"podgroups.scheduling.k8s.io":       {"why", "pod/worker-1"},
			snapshot.ResourceCompositePodGroups: {"why", "pod/crew-0"},
			snapshot.ResourceTemplates:          {"why", "pod/templated"},
			snapshot.ResourceQuotas:             {"why", "deployment/serve"},
			snapshot.ResourceLimitRanges:        {"why", "deployment/serve"},
			"persistentvolumeclaims":            {"why", "pod/stored"},
			"persistentvolumes":                 {"why", "pod/stored"},
			"storageclasses.storage.k8s.io":     {"why", "pod/stored"},
		}},
	}
}

func userOf(verb, without string) string {
	user := "user of " + verb
	if without != "" {
		user += " without " + strings.Trim(without, "/")
	}
	return strings.ReplaceAll(user, " ", "-")
}

// bind gives a user a ClusterRole that there is, in a namespace or, if that is
// empty, everywhere.
func (c *cluster) bind(t *testing.T, user, namespace, role string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user + "-" + role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	mustDo(t, func() error {
		if namespace == "" {
			_, err := c.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
			return err
		}
		_, err := c.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		return err
	})
}

// waitForRight returns when the API server knows that a user has a right.
func (c *cluster) waitForRight(t *testing.T, user, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	spec := authorizationv1.SubjectAccessReviewSpec{User: user}
	if len(rule.NonResourceURLs) > 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
	} else {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: rule.Verbs[0],
		}
	}
	err := poll(t.Context(), func() bool {
		review, err := c.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
	if err != nil {
		t.Fatalf("user %s never gets %v: %v", user, rule, err)
	}
}
