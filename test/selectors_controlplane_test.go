// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// selectorCase is a selector with a mistake, and what the first remedy says
// instead. In both, x stands for the attributes of the case's driver and m for its
// capacities; $C is a name that only this case has.
type selectorCase struct {
	name, wrong, right string
	// rejected is true if the API server does not take the mistake.
	rejected bool
}

func selectorCases() []selectorCase {
	return []selectorCase{
		{name: "typo", wrong: `x.produktName == "Atlas-80"`, right: `x.productName == "Atlas-80"`},
		{name: "guarded-typo", wrong: `has(x.produktName) && x.produktName == "Atlas-141"`, right: `has(x.productName) && x.productName == "Atlas-141"`},
		{name: "domain", wrong: `device.attributes["$C.exampel.com"].cores == 8`, right: `x.cores == 8`},
		{name: "driver", wrong: `device.driver == "$C.exampel.com"`, right: `device.driver == "$C.example.com"`},
		{name: "capacity-as-attribute", wrong: `x.memory.isGreaterThan(quantity("100Gi"))`, right: `m.memory.isGreaterThan(quantity("100Gi"))`},
		{name: "attribute-as-capacity", wrong: `m.productName == "Atlas-80"`, right: `x.productName == "Atlas-80"`, rejected: true},
		{name: "int-as-string", wrong: `x.cores == "12"`, right: `x.cores == 12`},
		{name: "string-as-int", wrong: `x.slots >= 32`, right: `int(x.slots) >= 32`},
		{name: "bool-as-string", wrong: `x.ecc == "true"`, right: `x.ecc == true`},
		{name: "version-as-text", wrong: `x.driverVersion > "536"`, right: `x.driverVersion.isGreaterThan(semver("536.0.0"))`},
		{name: "version-too-short", wrong: `x.driverVersion.compareTo(semver("536.01")) >= 0`, right: `x.driverVersion.compareTo(semver("536.1.0")) >= 0`},
		{name: "quantity-as-text", wrong: `m.memory >= "100Gi"`, right: `m.memory.compareTo(quantity("100Gi")) >= 0`, rejected: true},
		{name: "field", wrong: `device.atributes["$C.example.com"].cores == 8`, right: `x.cores == 8`, rejected: true},
		{name: "nearest-quantity", wrong: `m.memory.isGreaterThan(quantity("150Gi"))`, right: `m.memory.compareTo(quantity("141Gi")) >= 0`},
		{name: "nearest-int", wrong: `x.cores >= 16`, right: `x.cores >= 12`},
		{name: "nearest-version", wrong: `x.driverVersion.isGreaterThan(semver("600.0.0"))`, right: `x.driverVersion.compareTo(semver("550.54.15")) >= 0`},
		{name: "misspelled-string", wrong: `x.productName == "Altas-141"`, right: `x.productName == "Atlas-141"`},
		{name: "missing-key", wrong: `x.location == "rack-1"`, right: `has(x.location) && x.location == "rack-1"`},
	}
}

// TestCorrectedSelectorsWork creates a pod that waits because of each mistake. The first
// remedy must correct it: after its commands ran in a shell, the real scheduler finds
// devices for the pod.
func TestCorrectedSelectorsWork(t *testing.T) {
	c := startCluster(t, everything())
	t.Run("cases", func(t *testing.T) {
		for _, test := range selectorCases() {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				c.runSelectorCase(t, test)
			})
		}
	})
}

func (c *cluster) runSelectorCase(t *testing.T, test selectorCase) {
	id := "cel-" + test.name
	long := strings.NewReplacer("x.", `device.attributes["`+id+`.example.com"].`, "m.", `device.capacity["`+id+`.example.com"].`, "$C", id)
	wrong, right := long.Replace(test.wrong), long.Replace(test.right)
	claim := fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, namespace: $C}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: $C, selectors: [{cel: {expression: %q}}]}}]}}`, wrong)
	c.createAll(t, id, strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: $C}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $C}
spec: {selectors: [{cel: {expression: "device.driver.startsWith('$C.')"}}]}
---
apiVersion: v1
kind: Node
metadata: {name: $C, labels: {kubernetes.io/hostname: $C}}
`+readyNode+`---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $C}
spec:
  driver: $C.example.com
  nodeName: $C
  pool: {name: $C, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {productName: {string: Atlas-80}, cores: {int: 8}, ecc: {bool: true}, driverVersion: {version: 535.1.0}, slots: {string: "16"}}, capacity: {memory: {value: "85899345920"}}}
  - {name: gpu-1, attributes: {productName: {string: Atlas-141}, cores: {int: 12}, ecc: {bool: false}, driverVersion: {version: 550.54.15}, slots: {string: "32"}, location: {string: rack-1}}, capacity: {memory: {value: 141Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: $C}
spec:
  nodeSelector: {kubernetes.io/hostname: $C}
  resourceClaims: [{name: gpu, resourceClaimName: claim}]
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]`, "$C", id))
	defer c.deletePods(t, id)
	object, err := parseObject([]byte(strings.ReplaceAll(claim, "$C", id)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.create(t.Context(), id, object); (err != nil) != test.rejected {
		t.Fatalf("the API server says %v", err)
	}
	if test.rejected {
		c.createCorrected(t, id, wrong, right)
	} else {
		c.pasteFirstRemedy(t, id, right)
	}
	got := c.decision(t.Context(), id, "pod", func(decision) bool { return false })
	if got.reason != scheduled {
		t.Fatalf("the pod is not scheduled: %+v", got)
	}
}

// pasteFirstRemedy waits until the scheduler has refused the pod, and gives the
// commands of the first remedy to a shell.
func (c *cluster) pasteFirstRemedy(t *testing.T, id, right string) {
	t.Helper()
	refused := c.decision(t.Context(), id, "pod", func(d decision) bool {
		return (d.reason == unschedulable || d.reason == schedulerError) && len(d.claims) > 0
	})
	if refused.reason == scheduled {
		t.Fatalf("the pod is scheduled with the mistake: %+v", refused)
	}
	e, err := why(t, c.kubeconfig, id, "pod")
	if err != nil {
		t.Fatal(err)
	}
	remedy := firstRemedy(t, e.Explanation, right)
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(strings.Join(remedy.Commands, "\n") + "\n")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(remedy.Commands, "\n"), out)
	}
}

// createCorrected asks about a claim that is not created yet, as -f does, and
// creates what the first remedy says.
func (c *cluster) createCorrected(t *testing.T, id, wrong, right string) {
	t.Helper()
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "claim"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: id, Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: wrong}}}},
		}}}},
	}
	e, err := why(t, c.kubeconfig, id, "pod")
	if err != nil {
		t.Fatal(err)
	}
	snap := *e.snapshot
	// Claims are in the order of their names.
	snap.Claims = append(slices.Clone(snap.Claims), claim)
	slices.SortFunc(snap.Claims, func(a, b *resourceapi.ResourceClaim) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	asked, err := unhurried(t, &snap, explain.Options{Object: api.Ref(api.KindClaim, id, "claim")})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(asked.Summary, "does not compile") || !strings.HasSuffix(asked.Summary, "; the API server rejects it.") {
		t.Errorf("summary: %s", asked.Summary)
	}
	firstRemedy(t, asked, right)
	claim.Spec.Devices.Requests[0].Exactly.Selectors[0].CEL.Expression = right
	if _, err := c.kube.ResourceV1().ResourceClaims(id).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// firstRemedy returns the first remedy, which has to name the right expression.
func firstRemedy(t *testing.T, e *api.Explanation, right string) *api.Remedy {
	t.Helper()
	if len(e.Remedies) == 0 {
		t.Fatalf("%s: %s\nno remedy", e.Verdict, e.Summary)
	}
	remedy := &e.Remedies[0]
	var expression string
	if len(remedy.Edits) == 0 || json.Unmarshal(remedy.Edits[0].Value, &expression) != nil || expression != right {
		t.Fatalf("%s: %s\nthe first remedy says %q, not %q: %s", e.Verdict, e.Summary, expression, right, remedy.Change)
	}
	return remedy
}
