// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// loadManifests loads standard input as kubectl apply would.
func loadManifests(t *testing.T, text string) (*snapshot.Snapshot, error) {
	t.Helper()
	return files.Manifests(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
}

func claimManifest(version, devices string) string {
	return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/%s","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":%s}}`, version, devices)
}

func podManifest(spec string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":` + spec + `}`
}

func TestLoadObjectsRefusesWhatAPIServerRefuses(t *testing.T) {
	deployment := func(apiVersion, spec string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"spec":` + spec + `}}}`
	}
	request := func(fields string) string {
		return claimManifest("v1", `{"requests":[{"name":"gpu",`+fields+`}]}`)
	}
	for name, test := range map[string]struct{ text, want string }{
		"a beta's request": {
			request(`"deviceClassName":"g"`),
			"read standard input, document 1: ResourceClaim/c: spec.devices.requests[0].deviceClassName: unknown field; in v1 it belongs under exactly",
		},
		"a request for a beta": {
			claimManifest("v1beta1", `{"requests":[{"name":"gpu","exactly":{"deviceClassName":"g"}}]}`),
			"spec.devices.requests[0].exactly: unknown field; in v1beta1 what is in it belongs directly under spec.devices.requests[0]",
		},
		"wrong case":             {request(`"exactly":{"deviceClassname":"g"}`), "spec.devices.requests[0].exactly.deviceClassname: unknown field; did you mean deviceClassName?"},
		"typo":                   {request(`"exactly":{"deviceClassName":"g","cout":2}`), "exactly.cout: unknown field; did you mean count?"},
		"one level missing":      {`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"requests":[]}}`, "spec.requests: unknown field; in v1 it belongs under devices"},
		"a claim in a template":  {`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"c"},"spec":{"devices":{}}}`, "spec.devices: unknown field; in v1 it belongs under spec"},
		"no likeness":            {request(`"exactly":{"deviceClassName":"g","xyzzy":2}`), "exactly.xyzzy: unknown field"},
		"in a pod":               {podManifest(`{"containers":[{"name":"c","resource":{}}]}`), "spec.containers[0].resource: unknown field; did you mean resources?"},
		"in a workload":          {deployment("apps/v1", `{"containers":[{"name":"c","resource":{}}]}`), "spec.template.spec.containers[0].resource: unknown field; did you mean resources?"},
		"in a List":              {`{"apiVersion":"v1","kind":"List","items":[` + request(`"exactly":{"deviceClassName":"g","cout":2}`) + `]}`, "item 1 of List (ResourceClaim/c): spec.devices.requests[0].exactly.cout: unknown field"},
		"no apiVersion":          {`{"kind":"Pod","metadata":{"name":"p"},"spec":{}}`, "Pod/p: apiVersion: expected v1, found none"},
		"no apiVersion of claim": {`{"kind":"ResourceClaim","metadata":{"name":"p"},"spec":{}}`, "ResourceClaim/p: apiVersion: expected resource.k8s.io/v1, found none"},
		"no kind":                {`{"apiVersion":"v1","metadata":{"name":"p"}}`, "without apiVersion and kind"},
		"no such version":        {deployment("apps/v1beta1", `{}`), `apiVersion: expected apps/v1, found "apps/v1beta1"`},
		"count below zero":       {request(`"exactly":{"deviceClassName":"g","count":-3}`), "spec.devices.requests[0].exactly.count: expected at least 1, found -3"},
		"unknown mode":           {request(`"exactly":{"deviceClassName":"g","allocationMode":"Most"}`), `spec.devices.requests[0].exactly.allocationMode: expected ExactCount or All, found "Most"`},
		"count of all":           {request(`"exactly":{"deviceClassName":"g","allocationMode":"All","count":2}`), "exactly.count: expected none, since allocationMode is All, found 2"},
		"no class":               {request(`"exactly":{}`), "spec.devices.requests[0].exactly.deviceClassName: expected a name, found none"},
		"no class, beta":         {claimManifest("v1beta1", `{"requests":[{"name":"gpu","count":1}]}`), "spec.devices.requests[0].deviceClassName: expected a name, found none"},
		"no kind of request":     {claimManifest("v1", `{"requests":[{"name":"gpu"}]}`), "spec.devices.requests[0]: expected exactly or firstAvailable, found none"},
		"two kinds of request":   {request(`"exactly":{"deviceClassName":"g"},"firstAvailable":[{"name":"a","deviceClassName":"g"}]`), "spec.devices.requests[0]: expected exactly or firstAvailable, found both"},
		"no request name":        {claimManifest("v1", `{"requests":[{"exactly":{"deviceClassName":"g"}}]}`), "spec.devices.requests[0].name: expected a name, found none"},
		"same request name":      {claimManifest("v1", `{"requests":[{"name":"a","exactly":{"deviceClassName":"g"}},{"name":"a","exactly":{"deviceClassName":"g"}}]}`), `spec.devices.requests[1].name: "a" is also the name of another`},
		"same alternative":       {request(`"firstAvailable":[{"name":"a","deviceClassName":"g"},{"name":"a","deviceClassName":"g"}]`), `spec.devices.requests[0].firstAvailable[1].name: "a" is also`},
		"alternative below zero": {request(`"firstAvailable":[{"name":"a","deviceClassName":"g","count":-2}]`), "spec.devices.requests[0].firstAvailable[0].count: expected at least 1, found -2"},
		"constraint on nothing":  {claimManifest("v1", `{"requests":[{"name":"a","exactly":{"deviceClassName":"g"}}],"constraints":[{"requests":["b"],"matchAttribute":"d/x"}]}`), `spec.devices.constraints[0].requests[0]: there is no request "b"`},
		"in a template":          {`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"c"},"spec":{"spec":{"devices":{"requests":[{"name":"a"}]}}}}`, "spec.spec.devices.requests[0]: expected exactly or firstAvailable"},
		"unknown pod claim":      {podManifest(`{"resourceClaims":[{"name":"g","resourceClaimName":"c"}],"containers":[{"name":"c","resources":{"claims":[{"name":"gg"}]}}]}`), `spec.containers[0].resources.claims[0].name: "gg" is none of spec.resourceClaims: g`},
		"no pod claims":          {podManifest(`{"initContainers":[{"name":"c","resources":{"claims":[{"name":"gg"}]}}]}`), `spec.initContainers[0].resources.claims[0].name: there is no spec.resourceClaims with the name "gg"`},
		"no source":              {podManifest(`{"resourceClaims":[{"name":"g"}]}`), "spec.resourceClaims[0]: expected resourceClaimName or resourceClaimTemplateName, found none"},
		"two sources":            {podManifest(`{"resourceClaims":[{"name":"g","resourceClaimName":"c","resourceClaimTemplateName":"t"}]}`), "spec.resourceClaims[0]: expected resourceClaimName or resourceClaimTemplateName, found both"},
		"same pod claim":         {podManifest(`{"resourceClaims":[{"name":"g","resourceClaimName":"c"},{"name":"g","resourceClaimName":"d"}]}`), `spec.resourceClaims[1].name: "g" is also`},
		"template of a workload": {deployment("apps/v1", `{"resourceClaims":[{"name":"g"}]}`), "spec.template.spec.resourceClaims[0]: expected"},
		"job of a cron job":      {`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"d"},"spec":{"jobTemplate":{"spec":{"template":{"spec":{"resourceClaims":[{"name":"g"}]}}}}}}`, "spec.jobTemplate.spec.template.spec.resourceClaims[0]: expected"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadManifests(t, test.text)
			wantInputError(t, err, test.want)
		})
	}
}

func TestLoadObjectsTakesWhatAPIServerTakes(t *testing.T) {
	for name, text := range map[string]string{
		"a claim of each kind": claimManifest("v1", `{"requests":[
			{"name":"one","exactly":{"deviceClassName":"g","count":0}},
			{"name":"all","exactly":{"deviceClassName":"g","allocationMode":"All"}},
			{"name":"any","firstAvailable":[{"name":"big","deviceClassName":"g"},{"name":"small","deviceClassName":"h","count":2}]}],
			"constraints":[{"requests":["one","any/small"],"matchAttribute":"d/x"}],
			"config":[{"opaque":{"driver":"d","parameters":{"any":{"thing":1}}}}]}`),
		"v1beta1":          claimManifest("v1beta1", `{"requests":[{"name":"gpu","deviceClassName":"g","selectors":[{"cel":{"expression":"true"}}]}]}`),
		"v1beta2":          claimManifest("v1beta2", `{"requests":[{"name":"gpu","exactly":{"deviceClassName":"g","capacity":{"requests":{"memory":"1Gi"}}}}]}`),
		"without requests": claimManifest("v1", `{}`),
		"what a server gave": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","managedFields":[{"fieldsV1":{"f:spec":{"f:x":{}}}}],"annotations":{"a":"b"}},
			"spec":{"volumes":[{"name":"v","configMap":{"name":"x"}}],"containers":[{"name":"c","env":[{"name":"E","value":"v"}],"ports":[{"containerPort":80}],
			"readinessProbe":{"httpGet":{"port":"http"}},"resources":{"limits":{"cpu":1},"claims":[{"name":"g","request":"r"}]}}],"resourceClaims":[{"name":"g","resourceClaimTemplateName":"t"}]},
			"status":{"phase":"Pending"}}`,
		"a custom resource": `{"apiVersion":"example.com/v1","kind":"TrainJob","metadata":{"name":"t"},"spec":{"any":1,"template":{"spec":{"containers":[]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := loadManifests(t, text)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Gaps) != 0 {
				t.Errorf("manifests are not a cluster, got gaps %v", s.Gaps)
			}
		})
	}
}

func TestLoadObjectsNamesWhatItPassesOver(t *testing.T) {
	s, err := loadManifests(t, claimYAML+"---\n"+`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf","namespace":"ml"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Service web", "ConfigMap ml/conf"}, s.SkippedNames); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestLoadRefusesImpossibleNumbers(t *testing.T) {
	slice := func(version, pool string) string {
		return `{"apiVersion":"resource.k8s.io/` + version + `","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":` + pool + `}}`
	}
	ranged := func(version, before, valid, after string) string {
		return `{"apiVersion":"resource.k8s.io/` + version + `","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"p","resourceSliceCount":1},
			"devices":[{"name":"d",` + before + `"capacity":{"memory":{"value":"1","requestPolicy":{"default":"1","validRange":` + valid + `}}}` + after + `}]}}`
	}
	const validRange = `ResourceSlice/s: spec.devices[0].capacity["memory"].requestPolicy.validRange.`
	for name, test := range map[string]struct{ text, want string }{
		"step":             {ranged("v1", "", `{"min":"1","step":"0"}`, ""), "document 1: " + validRange + "step: expected a quantity greater than zero, found 0"},
		"step below zero":  {ranged("v1beta2", "", `{"min":"1","step":"-1m"}`, ""), validRange + "step: expected a quantity greater than zero, found -1m"},
		"large step":       {ranged("v1", "", `{"min":"1","step":"36893488147419103232"}`, ""), validRange + "step: expected at most 9223372036854775807, found 36893488147419103232"},
		"step in v1beta1":  {ranged("v1beta1", `"basic":{`, `{"min":"1","step":"0"}`, "}"), `spec.devices[0].basic.capacity["memory"].requestPolicy.validRange.step: expected a quantity greater`},
		"range without":    {ranged("v1", "", `{"step":"1"}`, ""), validRange + "min: expected a quantity, found none"},
		"count":            {claimManifest("v1", `{"requests":[{"name":"a","exactly":{"deviceClassName":"g","count":-1}}]}`), "document 1: ResourceClaim/c: spec.devices.requests[0].exactly.count: expected at least 1, found -1"},
		"count in v1beta1": {claimManifest("v1beta1", `{"requests":[{"name":"a","deviceClassName":"g","count":-1}]}`), "spec.devices.requests[0].count: expected at least 1"},
		"all of fewer":     {claimManifest("v1", `{"requests":[{"name":"a","exactly":{"deviceClassName":"g","allocationMode":"All","count":-1}}]}`), "exactly.count"},
		"alternative":      {claimManifest("v1", `{"requests":[{"name":"a","firstAvailable":[{"name":"b","deviceClassName":"g","count":-2}]}]}`), "spec.devices.requests[0].firstAvailable[0].count: expected at least 1, found -2"},
		"template":         {`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"c"},"spec":{"spec":{"devices":{"requests":[{"name":"a","exactly":{"count":-1}}]}}}}`, "spec.spec.devices.requests[0].exactly.count"},
		"slices":           {slice("v1", `{"name":"p","resourceSliceCount":0}`), "ResourceSlice/s: spec.pool.resourceSliceCount: expected at least 1, found 0"},
		"old slices":       {slice("v1beta1", `{"name":"p","resourceSliceCount":-5}`), "spec.pool.resourceSliceCount: expected at least 1, found -5"},
		"generation":       {slice("v1", `{"name":"p","resourceSliceCount":1,"generation":-1}`), "spec.pool.generation: expected at least 0, found -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			wantInputError(t, err, test.want)
		})
	}
	for name, text := range map[string]string{
		// A newer server may know more modes and forms of requests.
		"unknown mode":    claimManifest("v1", `{"requests":[{"name":"a","exactly":{"deviceClassName":"g","allocationMode":"Most"}}]}`),
		"unknown request": claimManifest("v1", `{"requests":[{"name":"a","most":{"deviceClassName":"g"}}]}`),
		// The API server takes any quantity.
		"capacity below zero": `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n",
			"pool":{"name":"p","resourceSliceCount":1},"devices":[{"name":"d","capacity":{"memory":{"value":"-1Gi"}}}]}}`,
		"step below one": ranged("v1", "", `{"min":"1","step":"1n"}`, ""),
	} {
		if _, err := loadText(t, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadDoesNotReadURLs(t *testing.T) {
	const url = "https://example.com/train.yaml"
	_, err := files.Manifests(t.Context(), []string{url}, files.Options{})
	want := "read " + url + ": URLs are not read; download it, or pipe it: curl -fsSL " + url + " | kubectl dra why -f -"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = files.Load(t.Context(), []string{url}, files.Options{})
	if err == nil || !strings.HasSuffix(err.Error(), "--snapshot -") {
		t.Errorf("got %v, want an error that ends with --snapshot -", err)
	}
}

func TestLoadTellsWhatFilesLack(t *testing.T) {
	gaps := func(s *snapshot.Snapshot) string {
		var all []string
		for _, gap := range s.Gaps {
			all = append(all, gap.Resource+": "+gap.Reason)
		}
		return strings.Join(all, "\n")
	}
	one := testsnapshot.Load(t, claimYAML)
	want := `nodes: standard input has no Nodes
pods: standard input has no Pods
resourceslices.resource.k8s.io: standard input has no ResourceSlices
deviceclasses.resource.k8s.io: standard input has no DeviceClasses
resourceclaimtemplates.resource.k8s.io: standard input has no ResourceClaimTemplates`
	if diff := cmp.Diff(want, gaps(one)); diff != "" {
		t.Errorf("a claim alone (-want +got):\n%s", diff)
	}
	listed := testsnapshot.Load(t, claimYAML+"---\n"+`{"apiVersion":"v1","kind":"NodeList","items":[]}
{"apiVersion":"v1","kind":"PodList","items":[]}
{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClassList","items":[]}
{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplateList","items":[]}`)
	if diff := cmp.Diff("resourceslices.resource.k8s.io: standard input has no ResourceSlices", gaps(listed)); diff != "" {
		t.Errorf("with empty lists (-want +got):\n%s", diff)
	}
	if saved := testsnapshot.Load(t, claimYAML+"---\napiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\n"); len(saved.Gaps) != 0 {
		t.Errorf("a saved snapshot has what there is, got gaps %v", saved.Gaps)
	}
	path := writeFile(t, t.TempDir(), "claim.yaml", claimYAML)
	file, err := files.Load(t.Context(), []string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Gap(snapshot.ResourceNodes); got == nil || got.Reason != "the file has no Nodes" {
		t.Errorf("got gap %v", got)
	}
	several, err := files.Load(t.Context(), []string{path, path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := several.Gap(snapshot.ResourceNodes); got == nil || got.Reason != "the files have no Nodes" {
		t.Errorf("got gap %v", got)
	}
	// What is laid over a cluster fills no gap of it and makes none.
	if diff := cmp.Diff(one.Gaps, one.With(listed).Gaps); diff != "" {
		t.Errorf("with manifests (-want +got):\n%s", diff)
	}
}

func TestLoadWithGivenVersionIgnoresDetectedGates(t *testing.T) {
	const saved = "apiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\nserverVersion: v1.37.1\n" +
		"gates: {DRADeviceTaints: {enabled: false, source: metrics}, DRAAdminAccess: {enabled: false, source: flag}}\n" +
		"gaps: [{resource: /metrics, reason: none}]\n"
	s, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(saved), KubernetesVersion: "v1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Gate("DRADeviceTaints"), (snapshot.Gate{Enabled: true, Source: snapshot.GateFromDefault}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := s.Gate("DRAAdminAccess"), (snapshot.Gate{Source: snapshot.GateFromFlag}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(s.Gaps) != 0 {
		t.Errorf("got gaps %v", s.Gaps)
	}
	s, err = files.Load(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(saved), KubernetesVersion: "v1.99.0"})
	if err != nil {
		t.Fatal(err)
	}
	want := "Kubernetes v1.99.0 is newer than 1.37, the newest that this program knows"
	if gap := s.Gap(snapshot.ResourceMetrics); gap == nil || gap.Reason != want {
		t.Errorf("got gap %v, want %s", gap, want)
	}
}

func writeFile(t *testing.T, directory, name, content string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
