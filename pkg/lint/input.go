// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// input is the input of checks.
type input struct {
	ctx     context.Context
	objects []*object
	claims  []*claim
	pods    []*pod
	// snap has the objects of the manifests, and of the cluster if there is one.
	snap *snapshot.Snapshot
	// against is true if there is a cluster.
	against bool
	cel     *selector.Evaluator
	// explain answers for the targets of the manifests as "why -f" does; nil without a
	// cluster.
	explain    func(context.Context) ([]Answer, error)
	whyCommand func(file string) string
	err        error
	// published has what drivers publish, by the directory of the manifests that are
	// held against it.
	published  map[string]*published
	byClass    map[string]*resourceapi.DeviceClass
	namespaces map[string]*corev1.Namespace
	// specs has the claims and templates by kind and name, names their names by kind and
	// namespace.
	specs map[string][]spec
	names map[string][]string
	// called has the objects by kind and name.
	called map[string][]*object
	// incomplete are the objects of which is said that a claim or template is missing.
	incomplete map[*object]bool
}

// claim is a claim or a template.
type claim struct {
	*object
	devices *resourceapi.DeviceClaim
	// path is where the object has it: spec.devices, and in a template one deeper.
	path string
	// requests are its requests, each with its alternatives.
	requests [][]*cluster.Request
}

// at returns the path of something in a claim that package cluster found.
func (c *claim) at(path string) string {
	return c.path + strings.TrimPrefix(path, "spec.devices")
}

// pod is a pod, or the template of one in a workload.
type pod struct {
	*object
	spec *corev1.PodSpec
	path string
}

func newInput(ctx context.Context, all []*object, snap *snapshot.Snapshot) *input {
	in := &input{
		ctx: ctx, objects: all, snap: snap, byClass: map[string]*resourceapi.DeviceClass{}, namespaces: map[string]*corev1.Namespace{},
		specs: map[string][]spec{}, names: map[string][]string{}, called: map[string][]*object{},
		incomplete: map[*object]bool{}, published: map[string]*published{},
	}
	in.cel = cluster.New(snap).Gates.Selectors()
	for _, class := range snap.Classes {
		in.byClass[class.Name] = class
	}
	for _, namespace := range snap.Namespaces {
		in.namespaces[namespace.Name] = namespace
	}
	for _, t := range snap.Templates {
		in.addSpec(api.KindTemplate, t.Namespace, t.Name, &t.Spec.Spec.Devices)
	}
	for _, c := range snap.Claims {
		in.addSpec(api.KindClaim, c.Namespace, c.Name, &c.Spec.Devices)
	}
	for _, o := range all {
		in.called[o.kind+"/"+o.name] = append(in.called[o.kind+"/"+o.name], o)
		in.add(o)
	}
	return in
}

func (in *input) add(o *object) {
	switch decoded := o.decoded.(type) {
	case *resourceapi.ResourceClaim:
		in.claims = append(in.claims, &claim{o, &decoded.Spec.Devices, "spec.devices", cluster.Requests(decoded)})
	case *resourceapi.ResourceClaimTemplate:
		spec := &resourceapi.ResourceClaim{Spec: decoded.Spec.Spec}
		in.claims = append(in.claims, &claim{o, &decoded.Spec.Spec.Devices, "spec.spec.devices", cluster.Requests(spec)})
	case *corev1.Pod:
		in.pods = append(in.pods, &pod{o, &decoded.Spec, "spec"})
	case *snapshot.Workload:
		path := "spec.template.spec"
		group, _, grouped := strings.Cut(o.apiVersion, "/")
		if !grouped {
			group = ""
		}
		switch kinds.KnownWorkload(group, o.kind) {
		case kinds.TemplateInJob:
			path = "spec.jobTemplate.spec.template.spec"
		case kinds.TemplateOnTop:
			path = "template.spec"
		case kinds.TemplateInSpec, kinds.NotWorkload:
		}
		in.pods = append(in.pods, &pod{o, &decoded.Template.Spec, path})
	}
}

// published has the published values that matter for some manifests.
type published struct {
	slices []*resourceapi.ResourceSlice
	words  *selector.Vocabulary
}

// near returns the slices of the cluster, and of the directory that an object is in: slices
// of other directories may be of machines that its objects are not meant for.
func (in *input) near(o *object) *published {
	dir := filepath.Dir(o.text.File)
	if in.published[dir] == nil {
		here := &published{words: selector.NewVocabulary(english.Typo)}
		elsewhere := map[string]bool{}
		decodedAs(in, func(o *object, slice *resourceapi.ResourceSlice) {
			if filepath.Dir(o.text.File) != dir {
				elsewhere[slice.Name] = true
			}
		})
		for _, slice := range in.snap.Slices {
			if elsewhere[slice.Name] {
				continue
			}
			here.slices = append(here.slices, slice)
			for i := range slice.Spec.Devices {
				here.words.Add(slice.Spec.Driver, &slice.Spec.Devices[i])
			}
		}
		in.published[dir] = here
	}
	return in.published[dir]
}

// each calls find for every object, on all processors, and returns the findings in the order
// of the objects. Each processor has its own find, which may remember things.
func (in *input) each(newFind func() func(*object) []finding) []finding {
	results := make([][]finding, len(in.objects))
	files.OnAllProcessors(len(in.objects), func() func(int) {
		find := newFind()
		return func(i int) { results[i] = find(in.objects[i]) }
	})
	return slices.Concat(results...)
}

// complete reports whether all objects of a resource are known.
func (in *input) complete(resource string) bool { return in.against && in.snap.Gap(resource) == nil }

// spec is the spec of a claim or template, with its namespace.
type spec struct {
	namespace string
	devices   *resourceapi.DeviceClaim
}

// addSpec adds a claim or template for [input.specOf].
func (in *input) addSpec(kind, namespace, name string, devices *resourceapi.DeviceClaim) {
	in.specs[kind+"/"+name] = append(in.specs[kind+"/"+name], spec{namespace, devices})
	in.names[kind+"/"+namespace] = append(in.names[kind+"/"+namespace], name)
}

// specOf returns the spec of the claim or template that a pod names, nil if it is not here;
// elsewhere has the other namespaces with one of that name.
func (in *input) specOf(kind, namespace, name string) (devices *resourceapi.DeviceClaim, elsewhere []string) {
	for _, s := range in.specs[kind+"/"+name] {
		if s.namespace == namespace {
			return s.devices, nil
		}
		elsewhere = append(elsewhere, s.namespace)
	}
	return nil, elsewhere
}

// maxMeant limits how many names may be searched for a similar one.
const maxMeant = 1000

// meant returns the name that was probably meant, empty if none is close, or there are too
// many.
func meant(name string, names []string) string {
	if len(names) > maxMeant {
		return ""
	}
	return english.Typo(name, names)
}

// driversOf lists the drivers of which a device of a class, and of what a request
// adds, has to be; none if that is not known.
func (in *input) driversOf(class string, selectors []resourceapi.DeviceSelector) []string {
	var drivers []string
	if known := in.byClass[class]; known != nil {
		drivers = in.driversIn(known.Spec.Selectors)
	}
	return append(drivers, in.driversIn(selectors)...)
}

func (in *input) driversIn(selectors []resourceapi.DeviceSelector) []string {
	var drivers []string
	for _, s := range selectors {
		if s.CEL == nil {
			continue
		}
		if sel := in.cel.Compile(s.CEL.Expression); sel.Err == nil {
			drivers = append(drivers, sel.Drivers()...)
		}
	}
	return drivers
}

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// Answer is the answer about one target of the manifests.
type Answer struct {
	// Object is the target.
	Object api.ObjectRef
	*api.Explanation
	Err error
}
