// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-dra/kubectl-dra/pkg/controller"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// followed is a cluster that a controller follows as a user.
type followed struct {
	mu       sync.Mutex
	logged   []string
	registry *prometheus.Registry
}

// follow follows the cluster as a user until the test ends.
func (c *cluster) follow(t *testing.T, user string) *followed {
	t.Helper()
	f := &followed{registry: prometheus.NewRegistry()}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigOf(t, user))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := collect.NewClientsOf(config)
	if err != nil {
		t.Fatal(err)
	}
	log := func(_, line string) {
		f.mu.Lock()
		f.logged = append(f.logged, line)
		f.mu.Unlock()
	}
	follower := &controller.Follower{Clients: clients, Metrics: controller.NewMetrics(0), Log: funcr.New(log, funcr.Options{}), Every: time.Second}
	f.registry.MustRegister(follower.Metrics)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follower.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// said returns what the controller has logged.
func (f *followed) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.logged, "\n")
}

// metric returns the value of a metric without labels, -1 if it is not there.
func (f *followed) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// checkEachRight follows the cluster without each of the rights in turn. The controller has to go on,
// and to say what it may not read. A few objects are read one by one, and many are listed.
func (c *cluster) checkEachRight(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	var rights []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights = append(rights, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
			}
			for _, resource := range rule.Resources {
				rights = append(rights, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: rule.APIGroups, Resources: []string{resource}})
			}
		}
	}
	listed := []string{"deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch", "localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io"}
	for _, many := range []bool{false, true} {
		c.refuseWorkloads(t, many)
		all := map[string]*followed{}
		for i, right := range rights {
			verb, object := right.Verbs[0], rightOf(right)
			// TestController asks for metrics, which takes the rights to create.
			if verb == "create" || many != (verb == "list" && slices.Contains(listed, object)) {
				continue
			}
			user := "without " + verb + " " + strings.TrimPrefix(object, "/")
			others := slices.Delete(slices.Clone(rights), i, i+1)
			c.grant(t.Context(), t, user, "", others...)
			c.waitForRight(t, user, "", others[0])
			all[verb+" "+object] = c.follow(t, user)
		}
		for right, f := range all {
			_, object, _ := strings.Cut(right, " ")
			if err := poll(t.Context(), func() bool {
				return f.metric(t, "dra_snapshot_timestamp_seconds") > 0 && f.metric(t, "dra_gaps") > 0 && strings.Contains(f.said(), object)
			}); err != nil {
				t.Errorf("without the right to %s: the snapshot is of %v, with %v gaps, and it logs\n%s", right, f.metric(t, "dra_snapshot_timestamp_seconds"), f.metric(t, "dra_gaps"), f.said())
			}
		}
	}
}

// refuseWorkloads creates events about refused pods of workloads of each kind, and, if there are to be
// many of them, workloads and queues of Kueue.
func (c *cluster) refuseWorkloads(t *testing.T, many bool) {
	t.Helper()
	from, to := 0, 1
	if many {
		from, to = 1, 6
	}
	queues, err := os.ReadFile("testdata/rights-kueue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		for _, kind := range []string{"apps/v1 DaemonSet", "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "batch/v1 Job", "batch/v1 CronJob"} {
			version, kind, _ := strings.Cut(kind, " ")
			c.createAll(t, "ml", fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: refused-%[1]s-%[2]d}, type: Warning, reason: FailedCreate, message: exceeded quota,
  involvedObject: {apiVersion: %[3]s, kind: %[4]s, namespace: ml, name: refused-%[2]d}}`, strings.ToLower(kind), i, version, kind))
		}
		if !many {
			continue
		}
		for text := range strings.SplitSeq(string(queues), "\n---\n") {
			object, err := parseObject([]byte(regexp.MustCompile(`waits|team|all`).ReplaceAllString(text, fmt.Sprintf("$0-%d", i))))
			if err != nil {
				t.Fatal(err)
			}
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			c.createCustom(t.Context(), t, "ml", resource, object)
		}
	}
}
