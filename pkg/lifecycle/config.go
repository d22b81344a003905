// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// OpaqueConfig is configuration for a driver, with its place.
type OpaqueConfig struct {
	Opaque *resourceapi.OpaqueDeviceConfiguration
	Source resourceapi.AllocationConfigSource
	// Requests are the requests with this configuration, none for all.
	Requests []string
	// Object has the configuration, at Path.
	Object api.ObjectRef
	Path   string
}

func (c *OpaqueConfig) String() string {
	text := fmt.Sprintf("%s of %s %s", c.Path, c.Object.Kind, c.Object.Name)
	switch len(c.Requests) {
	case 0:
		return text
	case 1:
		return text + ", for request " + c.Requests[0]
	default:
		return text + ", for requests " + english.JoinAnd(c.Requests)
	}
}

// OpaqueConfigs lists the opaque configuration of a claim, first from its own spec or
// template, then from the classes of its requests.
func OpaqueConfigs(snap *snapshot.Snapshot, pc *cluster.PodClaim) []OpaqueConfig {
	own := OpaqueConfig{Source: resourceapi.AllocationConfigSourceClaim, Object: api.RefTo(api.KindClaim, pc.Claim), Path: "spec"}
	if pc.Template != "" {
		own.Object, own.Path = api.Ref(api.KindTemplate, pc.Claim.Namespace, pc.Template), "spec.spec"
	}
	var configs []OpaqueConfig
	for i := range pc.Claim.Spec.Devices.Config {
		if c := &pc.Claim.Spec.Devices.Config[i]; c.Opaque != nil {
			config := own
			config.Opaque, config.Requests, config.Path = c.Opaque, c.Requests, fmt.Sprintf("%s.devices.config[%d]", own.Path, i)
			configs = append(configs, config)
		}
	}
	requests := map[string][]string{}
	var classes []string
	for _, alternatives := range cluster.Requests(pc.Claim) {
		for _, r := range alternatives {
			if requests[r.Class] == nil {
				classes = append(classes, r.Class)
			}
			requests[r.Class] = append(requests[r.Class], r.Name)
		}
	}
	for _, name := range classes {
		class := snap.Class(name)
		if class == nil {
			continue
		}
		for i := range class.Spec.Config {
			if c := &class.Spec.Config[i]; c.Opaque != nil {
				configs = append(configs, OpaqueConfig{
					Opaque: c.Opaque, Source: resourceapi.AllocationConfigSourceClass, Requests: requests[name],
					Object: api.Ref(kindClass, "", name), Path: fmt.Sprintf("spec.config[%d]", i),
				})
			}
		}
	}
	return configs
}

// kindClass is the kind of a DeviceClass.
const kindClass = "DeviceClass"

// configSource finds the source of a configuration in an allocation. A class or a template
// that has changed since no longer has it; then current is false.
func configSource(snap *snapshot.Snapshot, pc *cluster.PodClaim, index int) (source OpaqueConfig, current bool) {
	config := &pc.Claim.Status.Allocation.Devices.Config[index]
	for _, c := range OpaqueConfigs(snap, pc) {
		if c.Source != config.Source || !sameConfig(c.Opaque, config.Opaque) {
			continue
		}
		if c.Source == resourceapi.AllocationConfigSourceClaim {
			// Configuration for all requests is allocated without requests.
			if len(config.Requests) > 0 && !slices.Equal(c.Requests, config.Requests) {
				continue
			}
			return c, pc.Template == "" || inTemplate(snap, pc, config)
		}
		if len(config.Requests) == 0 || slices.ContainsFunc(config.Requests, func(r string) bool { return slices.Contains(c.Requests, r) }) {
			return c, true
		}
	}
	return OpaqueConfig{
		Opaque: config.Opaque, Source: config.Source, Requests: config.Requests,
		Object: api.RefTo(api.KindClaim, pc.Claim), Path: fmt.Sprintf("status.allocation.devices.config[%d]", index),
	}, false
}

// sameConfig reports whether two configurations are equal, however they are written.
func sameConfig(a, b *resourceapi.OpaqueDeviceConfiguration) bool {
	if a.Driver != b.Driver {
		return false
	}
	var left, right any
	if json.Unmarshal(a.Parameters.Raw, &left) != nil || json.Unmarshal(b.Parameters.Raw, &right) != nil {
		return bytes.Equal(a.Parameters.Raw, b.Parameters.Raw)
	}
	return reflect.DeepEqual(left, right)
}

// inTemplate reports whether the template of a claim still has its configuration: it cannot
// be changed, but it can be replaced by a template of the same name.
func inTemplate(snap *snapshot.Snapshot, pc *cluster.PodClaim, config *resourceapi.DeviceAllocationConfiguration) bool {
	template := snap.Template(pc.Claim.Namespace, pc.Template)
	return template == nil || slices.ContainsFunc(template.Spec.Spec.Devices.Config, func(c resourceapi.DeviceClaimConfiguration) bool {
		return c.Opaque != nil && sameConfig(c.Opaque, config.Opaque)
	})
}

// rejectsConfig reports whether a driver's error for a claim rejects its configuration.
// There is no code for it: drivers wrap the errors of the decoders of Kubernetes or of
// JSON.
func rejectsConfig(words string) bool {
	return undecodable(words) || saysAny(words, "config", "opaque", "parameters")
}

// undecodable reports whether a driver's error for a claim says that it could not decode
// something.
func undecodable(words string) bool {
	return saysAny(words, "decod", "unmarshal", "unknown field", "no kind ")
}

func saysAny(words string, parts ...string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(words, part) })
}

// configRejected completes the finding about a driver that rejects the opaque configuration
// of a claim. It reports whether it does.
func configRejected(snap *snapshot.Snapshot, f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, name, words string, event *corev1.Event) bool {
	i := slices.IndexFunc(claims, func(pc cluster.PodClaim) bool { return pc.Claim != nil && pc.Claim.Name == name })
	if i < 0 || claims[i].Claim.Status.Allocation == nil || !rejectsConfig(words) {
		return false
	}
	pc := &claims[i]
	called := calledFor(claims, name)
	var drivers, texts []string
	var sources []OpaqueConfig
	outdated := false
	given := pc.Claim.Status.Allocation.Devices.Config
	for _, j := range suspects(given, called, words) {
		config := &given[j]
		if !slices.Contains(drivers, config.Opaque.Driver) {
			drivers = append(drivers, config.Opaque.Driver)
		}
		source, current := configSource(snap, pc, j)
		outdated = outdated || !current
		sources, texts = append(sources, source), append(texts, source.String())
		f.AddEvidence(source.Object, source.Path+".opaque.parameters", string(config.Opaque.Parameters.Raw), "parameters that driver "+config.Opaque.Driver+" accepts")
	}
	if len(drivers) == 0 {
		return false
	}
	f.Reason = fmt.Sprintf("driver %s rejects the opaque configuration of claim %s: %s%s; retries do not help, because the configuration of an allocated claim cannot be changed. It comes from %s",
		english.JoinOr(drivers), name, words, often(snap, event), strings.Join(texts[:min(len(texts), 3)], "; and from "))
	changeConfig(f, pod, sources, outdated)
	return true
}

// suspects returns the configurations for some drivers that one of them may have rejected:
// those with a text that it quotes ("unknown field "x""), or else all.
func suspects(given []resourceapi.DeviceAllocationConfiguration, drivers []string, words string) []int {
	var all, quoted []int
	parts := strings.Split(words, `"`)
	for i := range given {
		if given[i].Opaque == nil || !slices.Contains(drivers, given[i].Opaque.Driver) {
			continue
		}
		all = append(all, i)
		parameters := string(given[i].Opaque.Parameters.Raw)
		// The texts between pairs of quotes.
		for j := 1; j+1 < len(parts); j += 2 {
			if parts[j] != "" && strings.Contains(parameters, `"`+parts[j]+`"`) {
				quoted = append(quoted, i)
				break
			}
		}
	}
	if len(quoted) > 0 {
		return quoted
	}
	return all
}

// changeConfig adds the step by which a pod gets a claim with other configuration.
func changeConfig(f *Finding, pod *corev1.Pod, sources []OpaqueConfig, outdated bool) {
	in := " -n " + shell.Quote(pod.Namespace)
	deletePod := "kubectl delete pod " + shell.Quote(pod.Name) + in
	again := "create the pod again from its manifest"
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		again = fmt.Sprintf("%s %s creates it again", owner.Kind, owner.Name)
	}
	said := map[api.ObjectRef]bool{}
	for i := range sources {
		c := &sources[i]
		if said[c.Object] {
			continue
		}
		said[c.Object] = true
		switch {
		case outdated:
		case c.Object.Kind == kindClass:
			f.Step(api.ActorAdmin, "correct %s of %s %s: kubectl edit deviceclass %s", c.Path, c.Object.Kind, c.Object.Name, shell.Quote(c.Object.Name))
		case c.Object.Kind == api.KindTemplate:
			f.Step(api.ActorUser, "replace %s %s by one with a corrected %s (it cannot be edited): kubectl get resourceclaimtemplate %s%s -o yaml >template.yaml; edit template.yaml; kubectl replace --force -f template.yaml",
				c.Object.Kind, c.Object.Name, c.Path, shell.Quote(c.Object.Name), in)
		default:
			f.Step(api.ActorUser, "correct %s in the manifest of ResourceClaim %s, and replace pod and claim: %s; kubectl delete resourceclaim %s%s; create both again",
				c.Path, c.Object.Name, deletePod, shell.Quote(c.Object.Name), in)
			return
		}
	}
	if outdated {
		f.Step(api.ActorUser, "the configuration was changed after the claim was allocated: delete and recreate the pod so that it gets a new claim: %s; %s", deletePod, again)
		return
	}
	f.Step(api.ActorUser, "then delete and recreate the pod so that it gets a new claim: %s; %s", deletePod, again)
}
