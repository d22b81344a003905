// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// poolScenarios returns scenarios with plain devices, shared counters, shared devices,
// several drivers, taints from drivers and from rules, and broken pools.
func poolScenarios() []string {
	return []string{
		"capacity-exclusive", "compatibility-groups", "count", "counters", "counters-in-one-claim", "network-all-nodes", "pool-incomplete",
		"pool-obsolete", "prioritized-first", "shared-nic", "taint-rule", "taint-slice", "two-drivers",
	}
}

// runAs calls the program as a user and returns both of its outputs. It waits for
// the cluster as patiently as the tests do, unless args say otherwise.
func runAs(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (out, errOut string) {
	t.Helper()
	return runFor(ctx, t, kubeconfig, 0, args...)
}

// runUnread is like runAs, for output that is incomplete for the user, or for anybody.
func runUnread(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (out, errOut string) {
	t.Helper()
	return runFor(ctx, t, kubeconfig, 4, args...)
}

func runFor(ctx context.Context, t *testing.T, kubeconfig string, want int, args ...string) (out, errOut string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	args = slices.Concat(args[:1], []string{"--kubeconfig", kubeconfig, "--request-timeout", decisionTimeout.String()}, args[1:])
	if code := commands.Run(ctx, args, streams, commands.Build{Version: "v0.0.0-test"}); code != want {
		t.Fatalf("kubectl dra %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, stderr)
	}
	return stdout.String(), stderr.String()
}

// listAs calls a verb that lists something and decodes its JSON.
func listAs[T any](ctx context.Context, t *testing.T, kubeconfig string, args ...string) []T {
	t.Helper()
	out, _ := runAs(ctx, t, kubeconfig, append(args, "-o", "json")...)
	var list struct {
		Items []T `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// allocateScenarios lets the scheduler allocate the claims of scenarios.
func (c *cluster) allocateScenarios(ctx context.Context, t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		s, err := loadScenario("scenarios/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range s.objects {
			if err := c.create(ctx, s.name, object); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range s.Steps {
			if err := c.create(ctx, s.name, s.pods[step.Pod]); err != nil {
				t.Fatal(err)
			}
			if err := c.waitForClaims(ctx, s.name, step.Pod); err != nil {
				t.Fatal(err)
			}
			if err := c.release(ctx, s.name, step.Pod); err != nil {
				t.Fatal(err)
			}
			if got := c.decision(ctx, s.name, step.Pod, step.awaits); got.reason != step.expected() {
				t.Fatalf("scenario %s, pod %s: want %s, got %s: %s", name, step.Pod, step.expected(), got.reason, got.message)
			}
		}
	}
}

// TestPoolCounts lets a real scheduler allocate devices. What `pools` counts
// must then be what the cluster counts itself, and what users who see less are
// told must never contradict it.
func TestPoolCounts(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, everything())
	c.allocateScenarios(ctx, t, poolScenarios())
	public := rbacv1.PolicyRule{
		Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"", "resource.k8s.io"},
		Resources: []string{"nodes", "resourceslices", "deviceclasses", "devicetaintrules"},
	}
	c.grant(ctx, t, "viewer", "", public)
	c.grant(ctx, t, "counter", "", append(readRights(t).roles["ClusterRole kubectl-dra-pool-status"], public)...)
	viewer, counter := c.kubeconfigOf(t, "viewer"), c.kubeconfigOf(t, "counter")
	truth := listAs[api.Pool](ctx, t, c.kubeconfig, "pools")

	t.Run("the cluster counts the same", func(t *testing.T) {
		pools := listAs[api.Pool](ctx, t, c.kubeconfig, "pools", "--ask-server")
		_, notes := runAs(ctx, t, c.kubeconfig, "pools", "--ask-server")
		checkSameCounts(t, pools, notes)
	})
	t.Run("who sees no claims gets bounds", func(t *testing.T) {
		marked := 0
		for i, pool := range listAs[api.Pool](ctx, t, viewer, "pools") {
			checkBounds(t, &truth[i], &pool)
			if pool.CountsFrom != api.CountsFromVisibleClaims || pool.ClusterCounts != nil {
				t.Errorf("pool %s: counts from %s", pool.Name, pool.CountsFrom)
			}
			if pool.Devices.FreeIsUpperBound != (pool.Devices.Free > 0) {
				t.Errorf("pool %s: %d free, upper bound: %v", pool.Name, pool.Devices.Free, pool.Devices.FreeIsUpperBound)
			}
			if pool.Devices.Free > truth[i].Devices.Free {
				marked++
			}
		}
		if marked < 5 {
			t.Errorf("only %d pools seem to have more free devices than they have: nothing is tested", marked)
		}
		out, notes := runAs(ctx, t, viewer, "pools")
		requireText(t, out, "≤", "≥")
		requireText(t, notes, "may not list resourceclaims.resource.k8s.io", "claims that were not seen may have devices")
		_, notes = runAs(ctx, t, viewer, "pools", "-o", "name")
		requireText(t, notes, "claims that were not seen may have devices")
	})
	t.Run("who sees no claims never hears that a device is free", func(t *testing.T) {
		state := map[string]api.DeviceState{}
		for _, d := range listAs[api.Device](ctx, t, c.kubeconfig, "devices") {
			state[inventory.DeviceName(&d)] = d.State
		}
		for _, d := range listAs[api.Device](ctx, t, viewer, "devices") {
			if !d.Uncertain && d.State != state[inventory.DeviceName(&d)] || d.State == api.DeviceStateFree && !d.Uncertain {
				t.Errorf("device %v: %s (uncertain: %v), in truth %s", inventory.DeviceName(&d), d.State, d.Uncertain, state[inventory.DeviceName(&d)])
			}
		}
		out, notes := runUnread(ctx, t, viewer, "devices", "--free")
		requireText(t, out, "Free?", "≤")
		requireText(t, notes, "claims that were not seen may have devices")
		slices := listAs[api.Slice](ctx, t, c.kubeconfig, "slices")
		for i, slice := range listAs[api.Slice](ctx, t, viewer, "slices") {
			if slice.Free < slices[i].Free || slice.FreeIsUpperBound != (slice.Free > 0) {
				t.Errorf("slice %s: %d free, upper bound: %v; in truth %d", slice.Name, slice.Free, slice.FreeIsUpperBound, slices[i].Free)
			}
		}
		classes := listAs[api.Class](ctx, t, c.kubeconfig, "classes")
		for i, class := range listAs[api.Class](ctx, t, viewer, "classes") {
			if class.Free < classes[i].Free || class.FreeIsUpperBound != (class.Free > 0) || !class.ClaimsAreLowerBounds || class.Claims > classes[i].Claims {
				t.Errorf("class %s: %d free, upper bound: %v; in truth %d", class.Name, class.Free, class.FreeIsUpperBound, classes[i].Free)
			}
		}
		out, notes = runAs(ctx, t, viewer, "tree", "node/count-a")
		requireText(t, out, "(Free?)")
		requireText(t, notes, "claims that were not seen may have devices")
	})
	t.Run("who may ask the cluster gets its counts", func(t *testing.T) {
		exact := 0
		for i, pool := range listAs[api.Pool](ctx, t, counter, "pools", "--ask-server") {
			checkBounds(t, &truth[i], &pool)
			if len(pool.Differences) > 0 {
				t.Errorf("pool %s: %q", pool.Name, pool.Differences)
			}
			if pool.State == api.PoolStateIncomplete {
				continue
			}
			if pool.CountsFrom != api.CountsFromPoolStatus {
				t.Errorf("pool %s: counts from %s", pool.Name, pool.CountsFrom)
			}
			if !pool.Devices.FreeIsUpperBound {
				exact++
			}
			for _, capacity := range pool.Capacity {
				if capacity.ConsumedIsLowerBound {
					t.Errorf("pool %s: used capacity of %s is only a bound", pool.Name, capacity.Name)
				}
			}
		}
		if exact < 8 {
			t.Errorf("only %d pools are counted exactly", exact)
		}
		out, notes := runAs(ctx, t, counter, "pools", "count-b", "--ask-server")
		requireText(t, out, "1 pool, 3 devices, 0 free")
		requireText(t, notes, "asked for its counts with 1 ResourcePoolStatusRequest, created for that and deleted again")
		_, notes = runAs(ctx, t, counter, "pools", "--ask-server", "-o", "name")
		requireText(t, notes, "created for that and deleted again")
	})
	t.Run("listing never writes", func(t *testing.T) {
		requests := c.watchRequests(ctx, t)
		defer requests.Stop()
		for _, pool := range listAs[api.Pool](ctx, t, counter, "pools") {
			if pool.CountsFrom != api.CountsFromVisibleClaims {
				t.Errorf("pool %s: counts from %s", pool.Name, pool.CountsFrom)
			}
		}
		runAs(ctx, t, counter, "pools", "-o", "wide")
		runAs(ctx, t, c.kubeconfig, "pools")
		// The first request to be seen is the one that is asked for now.
		runAs(ctx, t, counter, "pools", "count-b", "--ask-server")
		event, ok := <-requests.ResultChan()
		if !ok {
			t.Fatal("the watch has ended")
		}
		if text := fmt.Sprint(event.Object); event.Type != watch.Added || !strings.Contains(text, "count-b") {
			t.Errorf("the first request is %s %s", event.Type, text)
		}
	})
	t.Run("nothing is left behind", func(t *testing.T) {
		c.requireNoRequests(ctx, t)
	})
}

// TestPoolStatusSilence asks a cluster whose controller does not answer, and a cluster
// without the requests.
func TestPoolStatusSilence(t *testing.T) {
	ctx := t.Context()
	options := everything()
	options.WithoutScheduler, options.WithoutControllers = true, []string{"resourcepoolstatusrequest-controller"}
	c := startCluster(t, options)
	s, err := loadScenario("scenarios/count.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range s.objects {
		if err := c.create(ctx, s.name, object); err != nil {
			t.Fatal(err)
		}
	}
	c.grant(ctx, t, "counter", "",
		rbacv1.PolicyRule{
			Verbs: []string{"get", "list"}, APIGroups: []string{"", "resource.k8s.io"},
			Resources: []string{"nodes", "resourceslices", "deviceclasses", "devicetaintrules"},
		},
		rbacv1.PolicyRule{
			Verbs: []string{"create", "watch", "delete"}, APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourcepoolstatusrequests"},
		})
	counter := c.kubeconfigOf(t, "counter")

	t.Run("no answer", func(t *testing.T) {
		out, notes := runUnread(ctx, t, counter, "pools", "--ask-server", "--request-timeout=0")
		requireText(t, out, "2 pools, 4 devices, ≤4 free")
		requireText(t, notes, "no answer within 10s")
		c.requireNoRequests(ctx, t)
	})
	t.Run("stopped while it waits", func(t *testing.T) {
		ctx, stop := context.WithTimeout(ctx, decisionTimeout)
		defer stop()
		requests := c.watchRequests(ctx, t)
		defer requests.Stop()
		running, interrupt := context.WithCancel(ctx)
		ended := make(chan int, 1)
		go func() {
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			ended <- commands.Run(running, []string{"pools", "--ask-server", "--kubeconfig", counter, "--request-timeout", decisionTimeout.String()}, streams, commands.Build{Version: "v0.0.0-test"})
		}()
		if event, ok := <-requests.ResultChan(); !ok || event.Type != watch.Added {
			t.Fatalf("got %v, want a new request", event)
		}
		interrupt()
		if code := <-ended; code == 0 {
			t.Error("it ended as if it had not been stopped")
		}
		c.requireNoRequests(t.Context(), t)
	})
	t.Run("no such requests", func(t *testing.T) {
		options.FeatureGates["DRAResourcePoolStatus"], options.FeatureGates["DRAPartitionableDevicesType"] = false, false
		options.RuntimeConfig["resource.k8s.io/v1alpha3"] = false
		if err := c.plane.Restart(ctx, options); err != nil {
			t.Fatal(err)
		}
		// Who may read the metrics knows before it asks.
		_, notes := runUnread(ctx, t, c.kubeconfig, "pools", "--ask-server")
		requireText(t, notes, "the feature gate DRAResourcePoolStatus is off")
		out, notes := runUnread(ctx, t, counter, "pools", "--ask-server")
		requireText(t, out, "2 pools, 4 devices, ≤4 free")
		requireText(t, notes, "the server has no ResourcePoolStatusRequest")
	})
}

// checkSameCounts compares, pool by pool, the free devices with the devices that the
// cluster counts as available.
//
// The cluster counts a device as available although other devices use up its counters. A
// device that is in use and tainted counts as both, so that it is missing twice. Pools that
// are incomplete are not counted at all. The notes must say all that.
func checkSameCounts(t *testing.T, pools []api.Pool, notes string) {
	t.Helper()
	equal := 0
	for i := range pools {
		pool := &pools[i]
		counts, there := &pool.Devices, pool.ClusterCounts
		if pool.State == api.PoolStateIncomplete {
			if there != nil {
				t.Errorf("pool %s is incomplete, and the cluster counts %+v", pool.Name, there)
			}
			continue
		}
		if there == nil || there.Total == nil {
			t.Errorf("pool %s: the cluster counts nothing: %+v", pool.Name, there)
			continue
		}
		if int(*there.Total) != counts.Total || int(*there.Allocated) != counts.Allocated+counts.Shared {
			t.Errorf("pool %s: %+v, the cluster counts %d in all and %d allocated", pool.Name, counts, *there.Total, *there.Allocated)
		}
		available := counts.Free + counts.Blocked
		if pool.Name == "taint-rule-a" {
			// The pod both-tolerated has the tainted device, too.
			available--
		}
		if int(*there.Available) != max(0, available) {
			t.Errorf("pool %s: %+v, the cluster counts %d available", pool.Name, counts, *there.Available)
		}
		differs := int(*there.Available) != counts.Free
		if differs != (len(pool.Differences) > 0) || differs && !strings.Contains(notes, pool.Driver+"/"+pool.Name+": the cluster counts") {
			t.Errorf("pool %s: %d free, %d available, but the differences are %q and the notes\n%s", pool.Name, counts.Free, *there.Available, pool.Differences, notes)
		}
		if !differs {
			equal++
		}
	}
	if equal < 9 {
		t.Errorf("only %d of %d pools can be compared", equal, len(pools))
	}
}

// checkBounds reports whether what somebody is told about a pool can be true.
func checkBounds(t *testing.T, truth, told *api.Pool) {
	t.Helper()
	if truth.Driver != told.Driver || truth.Name != told.Name {
		t.Fatalf("pools %s/%s and %s/%s", truth.Driver, truth.Name, told.Driver, told.Name)
	}
	for name, count := range map[string][2]int{
		"total":     {truth.Devices.Total, told.Devices.Total},
		"free":      {truth.Devices.Free, told.Devices.Free},
		"allocated": {truth.Devices.Allocated, told.Devices.Allocated},
		"shared":    {truth.Devices.Shared, told.Devices.Shared},
		"blocked":   {truth.Devices.Blocked, told.Devices.Blocked},
		"tainted":   {truth.Devices.Tainted, told.Devices.Tainted},
		"unusable":  {truth.Devices.Unusable, told.Devices.Unusable},
	} {
		ok := count[0] == count[1]
		switch told.Devices.Bounds[name] {
		case api.BoundAtLeast:
			ok = count[0] >= count[1]
		case api.BoundAtMost:
			ok = count[0] <= count[1]
		case api.BoundUnknown:
			ok = true
		}
		if !ok {
			t.Errorf("pool %s: told %d %s (%v), in truth %d; told %+v, truth %+v", told.Name, count[1], name, told.Devices.Bounds[name], count[0], told.Devices, truth.Devices)
		}
	}
	for i := range truth.Partitions {
		is, told := &truth.Partitions[i], &told.Partitions[i]
		if is.MoreFit == nil || told.MoreFit == nil {
			continue
		}
		if *told.MoreFit != *is.MoreFit && (!told.MoreFitIsUpperBound || *told.MoreFit < *is.MoreFit) {
			t.Errorf("pool %s: %d more of %s fit (upper bound: %v), in truth %d", truth.Name, *told.MoreFit, told.Type, told.MoreFitIsUpperBound, *is.MoreFit)
		}
	}
	for i := range truth.Capacity {
		if is, told := &truth.Capacity[i], &told.Capacity[i]; !told.ConsumedIsLowerBound && told.Consumed != is.Consumed {
			t.Errorf("pool %s: %s of %s used, in truth %s", truth.Name, told.Consumed, told.Name, is.Consumed)
		}
	}
	for i := range truth.Counters {
		if is, told := &truth.Counters[i], &told.Counters[i]; !told.ConsumedIsLowerBound && told.Consumed != is.Consumed {
			t.Errorf("pool %s: %s of %s used, in truth %s", truth.Name, told.Consumed, told.Name, is.Consumed)
		}
	}
}

func requireText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

func (c *cluster) kubeconfigOf(t *testing.T, user string) string {
	t.Helper()
	path, err := c.plane.Kubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *cluster) requireNoRequests(ctx context.Context, t *testing.T) {
	t.Helper()
	list := c.listRequests(ctx, t)
	for i := range list.Items {
		t.Errorf("left behind: %s", list.Items[i].Name)
	}
}

// watchRequests follows the requests that are made and deleted from now on.
func (c *cluster) watchRequests(ctx context.Context, t *testing.T) watch.Interface {
	t.Helper()
	// Without the version of a list a watch may begin with what was there before.
	now := metav1.ListOptions{ResourceVersion: c.listRequests(ctx, t).ResourceVersion}
	requests, err := c.kube.ResourceV1alpha3().ResourcePoolStatusRequests().Watch(ctx, now)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func (c *cluster) listRequests(ctx context.Context, t *testing.T) *resourcev1alpha3.ResourcePoolStatusRequestList {
	t.Helper()
	list, err := c.kube.ResourceV1alpha3().ResourcePoolStatusRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
