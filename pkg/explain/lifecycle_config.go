// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

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

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// opaqueConfig is configuration for a driver, and where it stands.
type opaqueConfig struct {
	opaque *resourceapi.OpaqueDeviceConfiguration
	source resourceapi.AllocationConfigSource
	// requests are those that it is for, none for all.
	requests []string
	// object has it at path; kind and name are those of the object.
	object, path, kind, name string
}

func (c *opaqueConfig) String() string {
	text := fmt.Sprintf("%s of %s %s", c.path, c.kind, c.name)
	switch len(c.requests) {
	case 0:
		return text
	case 1:
		return text + ", for request " + c.requests[0]
	default:
		return text + ", for requests " + english.JoinAnd(c.requests)
	}
}

// opaqueConfigs lists the opaque configuration of a claim: what its own spec, or
// the template that it is made from, has, and then what the classes of its
// requests have.
func (x *inquiry) opaqueConfigs(pc *allocator.PodClaim) []opaqueConfig {
	own := opaqueConfig{source: resourceapi.AllocationConfigSourceClaim, object: whatif.ClaimObject(pc.Claim), path: "spec", kind: api.KindClaim, name: pc.Claim.Name}
	if pc.Template != "" {
		own.object, own.path, own.kind, own.name = whatif.Object(api.KindTemplate, pc.Claim.Namespace, pc.Template), "spec.spec", api.KindTemplate, pc.Template
	}
	var configs []opaqueConfig
	for i := range pc.Claim.Spec.Devices.Config {
		if c := &pc.Claim.Spec.Devices.Config[i]; c.Opaque != nil {
			config := own
			config.opaque, config.requests, config.path = c.Opaque, c.Requests, fmt.Sprintf("%s.devices.config[%d]", own.path, i)
			configs = append(configs, config)
		}
	}
	requests := map[string][]string{}
	var classes []string
	for _, alternatives := range requestsOf(pc.Claim) {
		for _, r := range alternatives {
			if requests[r.class] == nil {
				classes = append(classes, r.class)
			}
			requests[r.class] = append(requests[r.class], r.name)
		}
	}
	for _, name := range classes {
		class := x.snap.Class(name)
		if class == nil {
			continue
		}
		for i := range class.Spec.Config {
			if c := &class.Spec.Config[i]; c.Opaque != nil {
				configs = append(configs, opaqueConfig{
					opaque: c.Opaque, source: resourceapi.AllocationConfigSourceClass, requests: requests[name],
					object: whatif.Object(kindClass, "", name), path: fmt.Sprintf("spec.config[%d]", i), kind: kindClass, name: name,
				})
			}
		}
	}
	return configs
}

// kindClass is the kind of classes.
const kindClass = "DeviceClass"

// configSource finds what a configuration of an allocation was copied from. A
// class or a template that has changed since no longer has it; then current is
// false.
func (x *inquiry) configSource(pc *allocator.PodClaim, index int) (source opaqueConfig, current bool) {
	config := &pc.Claim.Status.Allocation.Devices.Config[index]
	for _, c := range x.opaqueConfigs(pc) {
		if c.source != config.Source || !sameConfig(c.opaque, config.Opaque) {
			continue
		}
		if c.source == resourceapi.AllocationConfigSourceClaim {
			// What is for all requests is allocated as being for none in particular.
			if len(config.Requests) > 0 && !slices.Equal(c.requests, config.Requests) {
				continue
			}
			return c, pc.Template == "" || x.inTemplate(pc, config)
		}
		if len(config.Requests) == 0 || slices.ContainsFunc(config.Requests, func(r string) bool { return slices.Contains(c.requests, r) }) {
			return c, true
		}
	}
	return opaqueConfig{
		opaque: config.Opaque, source: config.Source, requests: config.Requests,
		object: whatif.ClaimObject(pc.Claim), path: fmt.Sprintf("status.allocation.devices.config[%d]", index), kind: api.KindClaim, name: pc.Claim.Name,
	}, false
}

// sameConfig reports whether two configurations say the same, however they are
// written.
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

// inTemplate reports whether the template of a claim still has its configuration:
// it cannot be changed, but replaced by another one of the same name.
func (x *inquiry) inTemplate(pc *allocator.PodClaim, config *resourceapi.DeviceAllocationConfiguration) bool {
	template := x.snap.Template(pc.Claim.Namespace, pc.Template)
	return template == nil || slices.ContainsFunc(template.Spec.Spec.Devices.Config, func(c resourceapi.DeviceClaimConfiguration) bool {
		return c.Opaque != nil && sameConfig(c.Opaque, config.Opaque)
	})
}

// rejectsConfig reports whether what a driver says about a claim is about its
// configuration. No code tells: drivers decode the parameters with the decoders
// of Kubernetes or of JSON, and wrap what these say.
func rejectsConfig(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"config", "opaque", "parameters", "decod", "unmarshal", "unknown field", "no kind "}, func(word string) bool {
		return strings.Contains(words, word)
	})
}

// configRejected is about a driver that does not accept the opaque configuration
// of a claim. It reports whether that is so.
func (x *inquiry) configRejected(f *finding, pod *corev1.Pod, claims []allocator.PodClaim, name, words string, event *corev1.Event) bool {
	i := slices.IndexFunc(claims, func(pc allocator.PodClaim) bool { return pc.Claim != nil && pc.Claim.Name == name })
	if i < 0 || claims[i].Claim.Status.Allocation == nil || !rejectsConfig(words) {
		return false
	}
	pc := &claims[i]
	called := calledFor(claims, name)
	var drivers, texts []string
	var sources []opaqueConfig
	outdated := false
	given := pc.Claim.Status.Allocation.Devices.Config
	for _, j := range suspects(given, called, words) {
		config := &given[j]
		if !slices.Contains(drivers, config.Opaque.Driver) {
			drivers = append(drivers, config.Opaque.Driver)
		}
		source, current := x.configSource(pc, j)
		outdated = outdated || !current
		sources, texts = append(sources, source), append(texts, source.String())
		f.prove(source.object, source.path+".opaque.parameters", string(config.Opaque.Parameters.Raw), "parameters that driver "+config.Opaque.Driver+" accepts")
	}
	if len(drivers) == 0 {
		return false
	}
	f.reason = fmt.Sprintf("driver %s rejects the opaque configuration of claim %s: %s%s; retries do not help, because the configuration of an allocated claim cannot be changed. It comes from %s",
		english.JoinOr(drivers), name, words, x.often(event), strings.Join(texts[:min(len(texts), maxNamed)], "; and from "))
	x.changeConfig(f, pod, sources, outdated)
	return true
}

// suspects are the configurations for some drivers that one of them may have
// rejected: those with something in them that it quotes ("unknown field "x""), or
// else all.
func suspects(given []resourceapi.DeviceAllocationConfiguration, drivers []string, words string) []int {
	var all, quoted []int
	parts := strings.Split(words, `"`)
	for i := range given {
		if given[i].Opaque == nil || !slices.Contains(drivers, given[i].Opaque.Driver) {
			continue
		}
		all = append(all, i)
		parameters := string(given[i].Opaque.Parameters.Raw)
		// What is between the first two quotes, between the next two, and so on.
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

// changeConfig says how a pod gets a claim with other configuration.
func (x *inquiry) changeConfig(f *finding, pod *corev1.Pod, sources []opaqueConfig, outdated bool) {
	in := " -n " + shell.Quote(pod.Namespace)
	deletePod := "kubectl delete pod " + shell.Quote(pod.Name) + in
	again := "create the pod again from its manifest"
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		again = fmt.Sprintf("%s %s creates it again", owner.Kind, owner.Name)
	}
	said := map[string]bool{}
	for i := range sources {
		c := &sources[i]
		if said[c.object] {
			continue
		}
		said[c.object] = true
		switch {
		case outdated:
		case c.kind == kindClass:
			f.step(api.ActorAdmin, "correct %s of %s %s: kubectl edit deviceclass %s", c.path, c.kind, c.name, shell.Quote(c.name))
		case c.kind == api.KindTemplate:
			f.step(api.ActorUser, "replace %s %s by one with a corrected %s (it cannot be edited): kubectl get resourceclaimtemplate %s%s -o yaml >template.yaml; edit template.yaml; kubectl replace --force -f template.yaml",
				c.kind, c.name, c.path, shell.Quote(c.name), in)
		default:
			f.step(api.ActorUser, "correct %s in the manifest of ResourceClaim %s, and replace pod and claim: %s; kubectl delete resourceclaim %s%s; create both again",
				c.path, c.name, deletePod, shell.Quote(c.name), in)
			return
		}
	}
	if outdated {
		f.step(api.ActorUser, "the configuration was changed after the claim was allocated: delete and recreate the pod so that it gets a new claim: %s; %s", deletePod, again)
		return
	}
	f.step(api.ActorUser, "then delete and recreate the pod so that it gets a new claim: %s; %s", deletePod, again)
}
