// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options select the trials of each case.
type Options struct {
	// Namespace is the namespace that is created for the test.
	Namespace *corev1.Namespace
	// Node is the only node, AllNodes makes a trial on each node where it fits.
	Node     string
	AllNodes bool
	// Repeat is how many trials are made of each case on each node, Parallel limits how
	// many at the same time.
	Repeat, Parallel int
	// TakeLast allows trials after which another claim like it would not fit.
	TakeLast bool
	Pod      PodOptions
}

// Plan lists the trials of a test.
type Plan struct {
	Namespace *corev1.Namespace
	// Groups are trials that may be made at the same time, one group after another.
	Groups []Group
	// Failed are trials that certainly fail.
	Failed []api.Trial
	// Skipped are the trials that are not made.
	Skipped []api.SkippedTrial
}

// Group is the trials of one case.
type Group struct {
	Case     *Case
	Template *resourceapi.ResourceClaimTemplate
	Trials   []Planned
	// Parallel is how many are made at the same time: no more than fit.
	Parallel int
	// Before is the cluster of the predictions.
	Before *cluster.Cluster
}

// Planned is one trial to be made.
type Planned struct {
	Case  *Case
	Round int
	Pod   *corev1.Pod
	// Predicted is the answer of "why" about the pod.
	Predicted *api.Explanation
	// node is the node of the trial, empty for any.
	node string
}

// Name returns a name that is unique in a test.
func (p *Planned) Name() string {
	name := p.Case.Name()
	if p.node != "" {
		name += " on " + p.node
	}
	return fmt.Sprintf("%s, round %d", name, p.Round)
}

// NewPlan plans the trials of the cases. It fails only if ctx is done.
func NewPlan(ctx context.Context, s *cluster.Cluster, cases []Case, o *Options) (*Plan, error) {
	p := &Plan{Namespace: o.Namespace}
	for i := range cases {
		if err := p.add(ctx, s, &cases[i], i+1, o); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add plans the trials of one case.
func (p *Plan) add(ctx context.Context, s *cluster.Cluster, c *Case, number int, o *Options) error {
	namespace := o.Namespace.Name
	g := Group{Case: c, Template: template(c, namespace, fmt.Sprintf("case-%d", number))}
	first := pod(namespace, fmt.Sprintf("case-%d-1", number), g.Template.Name, o.Node, &o.Pod)
	var err error
	g.Before = s.Amended(s.Snapshot.With(&snapshot.Snapshot{
		Namespaces: []*corev1.Namespace{o.Namespace}, Templates: []*resourceapi.ResourceClaimTemplate{g.Template},
	}))
	e, err := g.ask(ctx, first, "")
	if err != nil {
		return err
	}
	if !p.worthTrying(c, o.Node, e, g.Before) {
		return nil
	}
	room, err := g.room(ctx, first)
	if err != nil {
		return err
	}
	spare := room
	if !o.TakeLast {
		spare--
	}
	if spare < 1 {
		p.skip(c, o.Node, api.SkipLastDevice, "it would take what is left: after it, another claim like it would not fit; --yes takes it")
		return nil
	}
	g.Parallel = min(o.Parallel, spare)
	nodes := []string{o.Node}
	if o.AllNodes {
		nodes = nodesThatFit(e)
		p.skipUnfit(c, g.Before.Snapshot, e)
	}
	made := 0
	for round := range o.Repeat {
		for _, node := range nodes {
			made++
			planned := Planned{Case: c, Round: round + 1, node: node, Predicted: e}
			planned.Pod = pod(namespace, fmt.Sprintf("case-%d-%d", number, made), g.Template.Name, node, &o.Pod)
			g.Trials = append(g.Trials, planned)
		}
	}
	if o.AllNodes {
		if err := g.predictEach(ctx); err != nil {
			return err
		}
	}
	p.Groups = append(p.Groups, g)
	return nil
}

// worthTrying reports whether a trial can be made, and records why not.
func (p *Plan) worthTrying(c *Case, node string, e *api.Explanation, facts *cluster.Cluster) bool {
	switch e.Verdict {
	case api.Error:
		p.Failed = append(p.Failed, api.Trial{
			Name: (&Planned{Case: c, Round: 1, node: node}).Name(), Class: c.Class, File: c.File, Round: 1, Node: node,
			Result: api.TestFailed, Message: e.Summary, Explanation: e,
		})
		return false
	case api.Undetermined:
		p.skip(c, node, api.SkipUndetermined, e.Summary)
		return false
	case api.DoesNotFit, api.Blocked:
		p.skip(c, node, api.SkipNothingFree, e.Summary)
		return false
	case api.Fits, api.Allocated:
	}
	if e.Placement == nil {
		p.skip(c, node, api.SkipUndetermined, "it is not known which devices it would get")
		return false
	}
	for _, device := range devicesOf(e.Placement) {
		id := cluster.DeviceID{Driver: device.Driver, Pool: device.Pool, Device: device.Device}
		if holders := facts.Usage.Holders(id); len(holders) > 0 {
			p.skip(c, node, api.SkipInUse, fmt.Sprintf("it would get a share of device %s, which claim %s/%s uses", id, holders[0].Claim.Namespace, holders[0].Claim.Name))
			return false
		}
	}
	return true
}

// skipUnfit records the nodes that have devices of the drivers, but where it does not fit.
// Nodes without such devices are left out: there can be thousands.
func (p *Plan) skipUnfit(c *Case, snap *snapshot.Snapshot, e *api.Explanation) {
	drivers, publishing := driversOf(devicesOf(e.Placement)), map[string]bool{}
	for _, slice := range snap.Slices {
		if slice.Spec.NodeName != nil && slices.Contains(drivers, slice.Spec.Driver) {
			publishing[*slice.Spec.NodeName] = true
		}
	}
	why := map[string]string{}
	for i := range e.Nodes {
		for _, node := range e.Nodes[i].Names {
			if e.Nodes[i].Verdict != api.Fits && publishing[node] {
				why[node] = e.Nodes[i].Message
			}
		}
	}
	for _, node := range slices.SortedFunc(maps.Keys(why), english.CompareNames) {
		p.skip(c, node, api.SkipNodeUnfit, why[node])
	}
}

func (p *Plan) skip(c *Case, node string, reason api.SkipReason, message string) {
	p.Skipped = append(p.Skipped, api.SkippedTrial{Class: c.Class, File: c.File, Node: node, Reason: reason, Message: message})
}

// ask returns the answer of "why" about a pod, after all pods that wait longer.
func (g *Group) ask(ctx context.Context, pod *corev1.Pod, node string) (*api.Explanation, error) {
	s := g.Before.Amended(g.Before.Snapshot.With(&snapshot.Snapshot{Pods: []*corev1.Pod{pod}}))
	answers, err := explain.ExplainEach(ctx, s, []explain.Options{{Object: api.RefTo(api.KindPod, pod), Node: node}})
	if err != nil {
		return nil, err
	}
	return answers[0].Explanation, answers[0].Err
}

// Predict returns the prediction for the pod of a trial on a node.
func (g *Group) Predict(ctx context.Context, p *Planned, node string) (*api.Explanation, error) {
	if p.Predicted.Placement != nil && p.Predicted.Placement.Node == node {
		return p.Predicted, nil
	}
	return g.ask(ctx, p.Pod, node)
}

// predictEach asks about each node once.
func (g *Group) predictEach(ctx context.Context) error {
	answers := map[string]*api.Explanation{}
	for i := range g.Trials {
		t := &g.Trials[i]
		if answers[t.node] == nil {
			e, err := g.ask(ctx, t.Pod, "")
			if err != nil {
				return err
			}
			answers[t.node] = e
		}
		t.Predicted = answers[t.node]
	}
	return nil
}

// room returns how many claims of the case fit now, on all nodes that a pod may use.
func (g *Group) room(ctx context.Context, one *corev1.Pod) (int, error) {
	anywhere := one.DeepCopy()
	anywhere.ObjectMeta = metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}
	anywhere.Spec.Affinity = nil
	found, err := forecast.CountShape(ctx, g.Before, &forecast.Shape{
		Target: api.RefTo(api.KindPod, one), One: "trial", Several: "trials", Pod: anywhere,
	}, 1)
	if err != nil {
		return 0, err
	}
	return found.Now.AtLeast, nil
}

// nodesThatFit returns the nodes of an answer where it fits.
func nodesThatFit(e *api.Explanation) []string {
	var names []string
	for i := range e.Nodes {
		if e.Nodes[i].Verdict == api.Fits {
			names = append(names, e.Nodes[i].Names...)
		}
	}
	slices.SortFunc(names, english.CompareNames)
	return names
}

func devicesOf(placement *api.Placement) []api.AllocatedDevice {
	var devices []api.AllocatedDevice
	if placement == nil {
		return nil
	}
	for i := range placement.Claims {
		devices = append(devices, placement.Claims[i].Devices...)
	}
	return devices
}

// Objects returns what a test creates, in that order.
func (p *Plan) Objects() []runtime.Object {
	objects := []runtime.Object{p.Namespace}
	for i := range p.Groups {
		objects = append(objects, p.Groups[i].Template)
		for j := range p.Groups[i].Trials {
			objects = append(objects, p.Groups[i].Trials[j].Pod)
		}
	}
	return objects
}

// requestName is the name of the request in claims for a class.
const requestName = "device"

// Case is a claim for trials. Either Class or File is set.
type Case struct {
	// Class is its DeviceClass, File its file, with the name of the object.
	Class, File string
	// Spec is the spec of the claim.
	Spec resourceapi.ResourceClaimSpec
}

// Name returns the name of the class or of the file.
func (c *Case) Name() string { return c.Class + c.File }

// drivers returns the drivers of the devices that the classes of a claim select.
func (c *Case) drivers(ctx context.Context, v *inventory.Inventory, snap *snapshot.Snapshot) ([]string, error) {
	var drivers []string
	for _, name := range classesOf(&c.Spec) {
		class := snap.Class(name)
		if class == nil {
			continue
		}
		ids, _, err := v.Choose(ctx, class.Spec.Selectors)
		if err != nil {
			return nil, fmt.Errorf("select the devices of class %s: %w", name, err)
		}
		for _, id := range ids {
			if !slices.Contains(drivers, id.Driver) {
				drivers = append(drivers, id.Driver)
			}
		}
	}
	return drivers, nil
}

func classesOf(spec *resourceapi.ResourceClaimSpec) []string {
	var classes []string
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			classes = append(classes, request.Exactly.DeviceClassName)
		}
		for j := range request.FirstAvailable {
			classes = append(classes, request.FirstAvailable[j].DeviceClassName)
		}
	}
	return classes
}

// OfClasses returns the cases for classes: a claim for one device each. No names stand for
// all classes; classes that select no device are skipped then. With a driver, the devices
// have to be of that driver.
func OfClasses(ctx context.Context, s *cluster.Cluster, names []string, driver string) (cases []Case, skipped []api.SkippedTrial, err error) {
	all := len(names) == 0
	for _, class := range s.Snapshot.Classes {
		if all {
			names = append(names, class.Name)
		}
	}
	v := inventory.New(s)
	for _, name := range names {
		request := &resourceapi.ExactDeviceRequest{DeviceClassName: name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
		if driver != "" {
			request.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
		}
		c := Case{Class: name, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: requestName, Exactly: request}},
		}}}
		drivers, err := c.drivers(ctx, v, s.Snapshot)
		switch {
		case err != nil:
			return nil, nil, err
		case len(drivers) == 0:
			skipped = append(skipped, api.SkippedTrial{Class: name, Reason: api.SkipNoDevices, Message: "the class selects no device of the cluster"})
		case driver != "" && !slices.Contains(drivers, driver):
			if !all {
				skipped = append(skipped, api.SkippedTrial{Class: name, Reason: api.SkipNoDevices, Message: "the class selects no device of driver " + driver})
			}
		default:
			cases = append(cases, c)
		}
	}
	return cases, skipped, nil
}

// OfManifests returns the cases for the claims and templates of files. It fails for a claim
// that must not be tried.
func OfManifests(objects *snapshot.Snapshot, file string) ([]Case, error) {
	var cases []Case
	add := func(kind, name string, spec *resourceapi.ResourceClaimSpec) error {
		for i := range spec.Devices.Requests {
			if exactly := spec.Devices.Requests[i].Exactly; exactly != nil && exactly.AdminAccess != nil && *exactly.AdminAccess {
				return fmt.Errorf("read %s %s in %s: spec.devices.requests[%d].exactly.adminAccess: true gives access to devices that others use", kind, name, file, i)
			}
		}
		cases = append(cases, Case{File: file + " (" + name + ")", Spec: *cluster.Defaulted(&resourceapi.ResourceClaim{Spec: *spec.DeepCopy()}).Spec.DeepCopy()})
		return nil
	}
	for _, claim := range objects.Claims {
		if err := add(api.KindClaim, claim.Name, &claim.Spec); err != nil {
			return nil, err
		}
	}
	for _, template := range objects.Templates {
		if err := add(api.KindTemplate, template.Name, &template.Spec.Spec); err != nil {
			return nil, err
		}
	}
	return cases, nil
}
