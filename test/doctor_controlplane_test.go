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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestDoctorOnCluster makes faults on a real control plane one after another: doctor
// is silent before, finds each, and is silent again when it has ended, which where it
// says how is by its own commands.
func TestDoctorOnCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{WithControllers: []string{"resourcequota-controller"}})
	c.createAll(t, sickNamespace, sickCluster)
	for _, s := range sicknesses() {
		// What one fault leaves, the next one would find.
		if !t.Run(s.name(), func(t *testing.T) {
			c.waitFindings(t, func(found []api.Finding) bool { return len(found) == 0 })
			c.makeSick(t, &s)
			found := c.waitFindings(t, func(found []api.Finding) bool {
				return slices.ContainsFunc(found, func(f api.Finding) bool { return f.Code == s.code && strings.Contains(f.Message, s.says) })
			})
			for _, f := range found {
				if f.Code != s.code && !slices.Contains(s.also, f.Code) {
					t.Errorf("%s is found, too: %s", f.Code, f.Message)
				}
			}
			if s.pasted {
				c.pasteAll(t, found[slices.IndexFunc(found, func(f api.Finding) bool { return f.Code == s.code })].Remedy.Commands)
				c.waitFindings(t, func(found []api.Finding) bool {
					return !slices.ContainsFunc(found, func(f api.Finding) bool { return f.Code == s.code })
				})
			}
			c.cure(t, &s)
			c.waitFindings(t, func(found []api.Finding) bool { return len(found) == 0 })
		}) {
			return
		}
	}
}

// makeSick does the steps of a fault.
func (c *cluster) makeSick(t *testing.T, s *sickness) {
	t.Helper()
	for _, step := range s.steps {
		if isShell(step) {
			c.pasteAll(t, []string{step})
		} else {
			c.createAll(t, sickNamespace, strings.TrimSpace(step))
		}
	}
}

// cure takes away what the steps of a fault have made, and what the controllers of
// the cluster have made of it.
func (c *cluster) cure(t *testing.T, s *sickness) {
	t.Helper()
	commands := []string{s.undo}
	for _, step := range slices.Backward(s.steps) {
		if !isShell(step) {
			commands = append(commands, "kubectl delete -n "+sickNamespace+" --ignore-not-found --wait=false -f - <<'EOF'\n"+strings.TrimSpace(step)+"\nEOF")
		}
	}
	commands = append(commands,
		"kubectl delete pods --all -n "+sickNamespace+" --force --grace-period=0 --wait=false",
		"kubectl delete resourceclaims,events --all -n "+sickNamespace+" --wait=false")
	c.pasteAll(t, commands)
}

// TestDoctorOnOtherServers makes faults that take an API server with other settings,
// or controllers that do not run.
func TestDoctorOnOtherServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.createAll(t, sickNamespace, sickCluster)
	codes := func(args ...string) []string {
		t.Helper()
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := commands.Run(t.Context(), append([]string{"doctor", "--kubeconfig", c.kubeconfig, "-o", "json"}, args...), streams, commands.Build{Version: "v0.0.0-test"})
		var found api.Diagnosis
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			t.Fatalf("doctor: code %d, %v: %s", code, err, errOut)
		}
		var list []string
		for _, f := range found.Findings {
			list = append(list, f.Code)
		}
		return slices.Compact(list)
	}
	expect := func(want []string, args ...string) {
		t.Helper()
		if got := codes(args...); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
	}
	expect(nil)
	// The controllers would put it right.
	c.createAll(t, sickNamespace, strings.TrimSpace(sickClaim("stale", "sick-a/gpu-0", "reservedFor: [{resource: pods, name: gone, uid: gone}]")))
	expect([]string{"DRA1401"})
	c.pasteAll(t, []string{"kubectl delete resourceclaims --all -n " + sickNamespace})
	expect(nil)
	c.testStored(t, expect)
	c.createAll(t, sickNamespace, strings.TrimSpace(sickPool("binding", `devices: [{name: a, bindingConditions: [Ready], bindingFailureConditions: [Failed]}]`)))
	expect(nil)
	c.createAll(t, sickNamespace, sickUnbound)
	expect([]string{"DRA1409"})
	c.pasteAll(t, []string{"kubectl delete resourceclaims,pods --all --force -n " + sickNamespace})
	c.createAll(t, sickNamespace, sickSlice("counted", `nodeName: sick-a, pool: {name: counted, generation: 1, resourceSliceCount: 2}, sharedCounters: [{name: board, counters: {slices: {value: "4"}}}]`)+"\n---\n"+
		sickSlice("partitions", `nodeName: sick-a, pool: {name: counted, generation: 1, resourceSliceCount: 2}, devices: [{name: a, consumesCounters: [{counterSet: board, counters: {slices: {value: "1"}}}]}]`))
	expect(nil)
	mustDo(t, func() error {
		return c.plane.Restart(t.Context(), controlplane.Options{
			WithoutScheduler: true, WithoutControllerManager: true,
			FeatureGates: map[string]bool{"DRAPartitionableDevices": false, "DRAConsumableCapacity": false, "DRADeviceBindingConditions": false},
		})
	})
	expect([]string{"DRA1002", "DRA1208"})
	c.pasteAll(t, []string{"kubectl delete resourceslices counted partitions binding", `kubectl apply -n ` + sickNamespace + ` -f - <<'EOF'
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: dropped}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: sick, capacity: {requests: {memory: 1Gi}}}}]}}}
EOF`})
	expect([]string{"DRA1003"})
	c.pasteAll(t, []string{"kubectl delete resourceclaims --all -n " + sickNamespace})
	mustDo(t, func() error {
		return c.plane.Restart(t.Context(), controlplane.Options{
			WithoutScheduler: true, WithoutControllerManager: true,
			RuntimeConfig: map[string]bool{"resource.k8s.io/v1": false, "resource.k8s.io/v1beta1": true},
			FeatureGates:  map[string]bool{"DRAResourcePoolStatus": true},
		})
	})
	expect([]string{"DRA1007"})
}

// testStored covers objects in etcd that today's API server would not store, or not with
// that age: leftovers of an earlier release or an earlier day.
func (c *cluster) testStored(t *testing.T, expect func(want []string, args ...string)) {
	t.Helper()
	longAgo := time.Now().Add(-31 * 24 * time.Hour).UTC().Format(time.RFC3339)
	store := func(resource, name, yamlText string) {
		object, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(yamlText, "{name: "+name+"}", "{name: "+name+", uid: "+name+", creationTimestamp: '"+longAgo+"'}")))
		if err != nil {
			t.Fatal(err)
		}
		mustDo(t, func() error { return c.plane.Store(t.Context(), resource+"/"+name, object) })
	}
	// A slice with devices and their counters was valid up to 1.34.
	store("resourceslices", "outdated", sickPool("outdated", `sharedCounters: [{name: board, counters: {slices: {value: "4"}}}], devices: [{name: a, consumesCounters: [{counterSet: board, counters: {slices: {value: "1"}}}]}]`))
	// The scheduler of today takes no devices of it.
	expect([]string{"DRA1208", "DRA1212"})
	// The API server says so, too, whatever changes.
	label := `kubectl label resourceslice outdated a=b 2>&1 | grep -q "only one of .sharedCounters. or .devices. is allowed"`
	c.pasteAll(t, []string{"set +o pipefail", label, "kubectl delete resourceslice outdated"})

	store("resourceslices", "newer", sickSlice("newer", "nodeName: sick-a, pool: {name: stale, generation: 2, resourceSliceCount: 1}, devices: [{name: a}]"))
	expect(nil)
	store("resourceslices", "older", sickSlice("older", "nodeName: sick-a, pool: {name: stale, generation: 1, resourceSliceCount: 1}, devices: [{name: b}]"))
	expect([]string{"DRA1204"})
	c.pasteAll(t, []string{"kubectl delete resourceslices newer older"})

	store("devicetaintrules", "forgotten", sickTaint("forgotten", "sick-a", "", "NoSchedule"))
	expect([]string{"DRA1503"})
	expect(nil, "--older-than", "768h")
	c.pasteAll(t, []string{"kubectl delete devicetaintrule forgotten"})
	expect(nil)
}

// waitFindings asks doctor until the findings are as awaited.
func (c *cluster) waitFindings(t *testing.T, awaited func([]api.Finding) bool) []api.Finding {
	t.Helper()
	var found []api.Finding
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		var diagnosis api.Diagnosis
		code := commands.Run(ctx, []string{"doctor", "--kubeconfig", c.kubeconfig, "-o", "json"}, streams, commands.Build{Version: "v0.0.0-test"})
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err := json.Unmarshal(out.Bytes(), &diagnosis); err != nil {
			return false, fmt.Errorf("doctor: code %d, %w: %s", code, err, errOut)
		}
		found = diagnosis.Findings
		return awaited(found), nil
	})
	if err != nil {
		t.Fatalf("%v; findings: %+v", err, found)
	}
	return found
}

// pasteAll gives commands to a shell as they are.
func (c *cluster) pasteAll(t *testing.T, commands []string) {
	t.Helper()
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(commands, "\n"), out)
	}
}
