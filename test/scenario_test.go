// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// schedulingGate holds a pod back until the test has asked about it.
const schedulingGate = "example.com/wait"

// scenario is one file of scenarios/, see the README there.
type scenario struct {
	// name is the name of the file, and of the scenario's namespace.
	name string
	// objects are the objects of the file, except for pods.
	objects []*unstructured.Unstructured
	pods    map[string]*unstructured.Unstructured

	Kind  string   `json:"kind"`
	About string   `json:"about"`
	Nodes []string `json:"nodes"`
	Gates []string `json:"gates"`
	// Since is the first release whose API takes the objects.
	Since           string            `json:"since"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	Steps           []step            `json:"steps"`
}

// step is one pod and what becomes of it.
type step struct {
	Pod string `json:"pod"`
	// Claim is the spec of the one claim of a pod that the file does not have.
	Claim json.RawMessage `json:"claim"`
	// Outcome is the intended verdict of the scenario.
	Outcome api.Verdict `json:"outcome"`
	// Scheduler is the expected decision, if it does not follow from Outcome.
	Scheduler decisionReason `json:"scheduler"`
	// Node is where the pod must go, if only one is right.
	Node string `json:"node"`
	// Message is a part of what the scheduler must say.
	Message string `json:"message"`
	// Code is the code of the answer.
	Code api.Code `json:"code"`
	// With are pods that are created and let go together with it.
	With []string `json:"with"`
	// Codes are reason codes that the explanation must have.
	Codes []api.Code `json:"codes"`
	// Slow is an answer that takes long, so that it is given a limited time, and
	// not asked for again from a file.
	Slow bool `json:"slow"`
	// Releases has what older releases decide otherwise, by "1.35".
	Releases map[string]releaseStep `json:"releases"`
}

// releaseStep changes a step for one release. It replaces the fields of the same name, all
// of them.
type releaseStep struct {
	Outcome   api.Verdict    `json:"outcome"`
	Scheduler decisionReason `json:"scheduler"`
	Node      string         `json:"node"`
	Message   string         `json:"message"`
	Code      api.Code       `json:"code"`
	Codes     []api.Code     `json:"codes"`
}

// in returns the step as a release decides it.
func (s step) in(release string) step {
	if other, found := s.Releases[release]; found {
		s.Outcome, s.Scheduler, s.Node, s.Message, s.Code, s.Codes = other.Outcome, other.Scheduler, other.Node, other.Message, other.Code, other.Codes
	}
	return s
}

// decisionReason says what the scheduler did with a pod.
type decisionReason string

const (
	scheduled decisionReason = "Scheduled"
	// allocated means that the claims are allocated, but the pod is not bound:
	// binding conditions.
	allocated      decisionReason = "Allocated"
	unschedulable  decisionReason = corev1.PodReasonUnschedulable
	schedulerError decisionReason = corev1.PodReasonSchedulerError
	// notQueued means that the scheduler does not look at the pod at all.
	notQueued decisionReason = "NotQueued"
)

// expected returns the decision that the scenario was written for.
func (s step) expected() decisionReason {
	switch {
	case s.Scheduler != "":
		return s.Scheduler
	case s.Outcome == api.Fits, s.Outcome == api.Allocated:
		return scheduled
	case s.Outcome == api.Error:
		return schedulerError
	case s.Outcome == api.Blocked && s.Message == "":
		return notQueued
	default:
		return unschedulable
	}
}

// awaits reports whether a decision is the intended one.
func (s step) awaits(d decision) bool {
	return d.reason == s.expected() && strings.Contains(d.message, s.Message)
}

// timedOut is a part of what the scheduler says if its search takes too long.
const timedOut = "timed out trying to allocate devices"

// agree reports whether a verdict says what the scheduler did. Some errors make
// it wait for a change instead of trying again. Only what it has no time for
// may be decided otherwise, by counting, or not at all.
func agree(verdict api.Verdict, decision decisionReason, message string) bool {
	switch decision {
	case scheduled, allocated:
		return verdict == api.Fits || verdict == api.Allocated
	case unschedulable:
		return verdict == api.DoesNotFit || verdict == api.Error || verdict == api.Blocked
	case notQueued:
		return verdict == api.Blocked || verdict == api.Error
	default:
		return verdict == api.Error || strings.Contains(message, timedOut) && (verdict == api.DoesNotFit || verdict == api.Undetermined)
	}
}

func loadScenarios(t *testing.T) []*scenario { return loadScenariosIn(t, "scenarios") }

func loadScenariosIn(t *testing.T, dir string) []*scenario {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no scenarios found in %s", dir)
	}
	var list []*scenario
	for _, path := range paths {
		s, err := loadScenario(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

func loadScenario(path string) (*scenario, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &scenario{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), pods: map[string]*unstructured.Unstructured{}}
	content = bytes.ReplaceAll(content, []byte("$S"), []byte(s.name))
	header, rest, _ := bytes.Cut(content, []byte("\n---\n"))
	if err := yaml.UnmarshalStrict(header, s); err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", path, err)
	}
	if s.Kind != "Scenario" || s.About == "" || len(s.Steps) == 0 {
		return nil, fmt.Errorf("read %s: it must start with kind: Scenario, about and steps", path)
	}
	for i, document := range bytes.Split(rest, []byte("\n---\n")) {
		object, err := parseObject(document)
		if err != nil {
			return nil, fmt.Errorf("read object %d of %s: %w", i+1, path, err)
		}
		switch {
		case object == nil:
		case object.GetKind() == "Pod":
			s.pods[object.GetName()] = object
		default:
			s.objects = append(s.objects, object)
		}
	}
	return s, s.complete()
}

func parseObject(document []byte) (*unstructured.Unstructured, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil, nil
	}
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	// Unlike the standard library's it reads whole numbers as such.
	return object, utiljson.Unmarshal(raw, &object.Object)
}

// complete adds what every scenario has: a namespace, nodes, a class, and for
// a step with a claim the template and the pod.
func (s *scenario) complete() error {
	namespace := newObject("v1", "Namespace", s.name, nil)
	namespace.SetLabels(s.NamespaceLabels)
	first := []*unstructured.Unstructured{namespace}
	for _, node := range s.Nodes {
		first = append(first, s.node(node))
	}
	if !s.has("DeviceClass", s.name) {
		first = append(first, newObject("resource.k8s.io/v1", "DeviceClass", s.name, map[string]any{
			"spec": map[string]any{"selectors": []any{
				map[string]any{"cel": map[string]any{"expression": fmt.Sprintf("device.driver == '%s.example.com'", s.name)}},
			}},
		}))
	}
	s.objects = append(first, s.objects...)
	for _, step := range s.Steps {
		if len(step.Claim) > 0 {
			template, err := parseObject(step.Claim)
			if err != nil {
				return fmt.Errorf("read scenario %s: claim of pod %s: %w", s.name, step.Pod, err)
			}
			s.objects = append(s.objects, newObject("resource.k8s.io/v1", "ResourceClaimTemplate", step.Pod, map[string]any{
				"spec": map[string]any{"spec": template.Object},
			}))
			s.pods[step.Pod] = newObject("v1", "Pod", step.Pod, map[string]any{
				"spec": map[string]any{"resourceClaims": []any{
					map[string]any{"name": "devices", "resourceClaimTemplateName": step.Pod},
				}},
			})
		}
		if step.Outcome != api.Undetermined && !agree(step.Outcome, step.expected(), step.Message) {
			return fmt.Errorf("read scenario %s: step %s: %s and %s are no agreement", s.name, step.Pod, step.Outcome, step.expected())
		}
		pod := s.pods[step.Pod]
		if pod == nil {
			return fmt.Errorf("read scenario %s: there is no pod %s, and its step has no claim", s.name, step.Pod)
		}
		for _, name := range append(slices.Clone(step.With), step.Pod) {
			if s.pods[name] == nil {
				return fmt.Errorf("read scenario %s: there is no pod %s", s.name, name)
			}
			if err := s.completePod(s.pods[name]); err != nil {
				return fmt.Errorf("read scenario %s: pod %s: %w", s.name, name, err)
			}
		}
	}
	return nil
}

func (s *scenario) has(kind, name string) bool {
	return slices.ContainsFunc(s.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name
	})
}

// node returns one with nothing special. Its name has the scenario's before it.
func (s *scenario) node(name string) *unstructured.Unstructured {
	name = s.name + "-" + name
	resources := map[string]any{"cpu": "8", "memory": "32Gi", "pods": "110"}
	node := newObject("v1", "Node", name, map[string]any{
		"status": map[string]any{
			"capacity":    resources,
			"allocatable": resources,
			"conditions":  []any{map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady"}},
		},
	})
	node.SetLabels(map[string]string{"scenario": s.name, "kubernetes.io/hostname": name})
	return node
}

// completePod keeps a pod on the scenario's own nodes, holds it back until the
// test lets it go, and gives it a container that uses all its claims.
func (s *scenario) completePod(pod *unstructured.Unstructured) error {
	gates := []any{map[string]any{"name": schedulingGate}}
	if err := unstructured.SetNestedSlice(pod.Object, gates, "spec", "schedulingGates"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(pod.Object, s.name, "spec", "nodeSelector", "scenario"); err != nil {
		return err
	}
	if _, found, err := unstructured.NestedSlice(pod.Object, "spec", "containers"); err != nil || found {
		return err
	}
	claims, _, err := unstructured.NestedSlice(pod.Object, "spec", "resourceClaims")
	if err != nil {
		return err
	}
	var used []any
	for _, claim := range claims {
		entry, ok := claim.(map[string]any)
		if !ok {
			return fmt.Errorf("spec.resourceClaims has %v, which is no object", claim)
		}
		used = append(used, map[string]any{"name": entry["name"]})
	}
	container := map[string]any{"name": "main", "image": "example.com/none", "resources": map[string]any{"claims": used}}
	return unstructured.SetNestedSlice(pod.Object, []any{container}, "spec", "containers")
}

func newObject(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	maps.Copy(object.Object, content)
	object.SetName(name)
	return object
}
