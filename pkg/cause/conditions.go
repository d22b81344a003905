// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// fromConditions makes causes of the taints of devices, and of the conditions of the cluster
// that remedies change: cordoned nodes, nodes that are not ready, taint rules, incomplete pools.
// Taints by which nodes are set aside for some pods are none.
func (f *finder) fromConditions() {
	f.fromTaints()
	f.fromCordons()
	for _, s := range f.stuck {
		if s.full == nil || s.answer.Verdict == api.Fits {
			continue
		}
		for i := range s.full.Remedies {
			f.fromRemedy(s, &s.full.Remedies[i])
		}
	}
	for _, c := range f.causes.list {
		describeNodes(f.cluster.Snapshot, c)
	}
}

// fromTaints makes causes of the taints that keep claims from devices, and evict pods.
func (f *finder) fromTaints() {
	for i := range f.taints {
		t := &f.taints[i]
		if t.Effect == "None" || len(t.Devices) == 0 {
			continue
		}
		k, on := key{string(api.DeviceTainted), t.Driver + "/" + t.Key}, "driver "+t.Driver
		if t.Rule != "" {
			k.group, on = t.Rule, "DeviceTaintRule "+t.Rule
		}
		c, made := f.causes.get(k)
		if made {
			c.Severity = api.SeverityInfo
			text := inventory.TaintText(t)
			c.Message = fmt.Sprintf("taint %s of %s on %s", text, on, english.Count(len(t.Devices), "device"))
			if t.Rule != "" {
				c.Evidence = append(c.Evidence, api.Evidence{Object: api.Ref("DeviceTaintRule", "", t.Rule), Path: "spec.taint", Found: text})
			}
			if t.Rule == "" {
				c.Severity = api.SeverityWarning
				c.NextStep = &api.NextStep{Actor: api.ActorAdmin, Text: "repair the devices; the driver takes the taint back"}
			}
		}
		c.Devices += len(t.Devices)
		c.began(t.Since)
		if t.Rule != "" {
			rule := api.Ref("DeviceTaintRule", "", t.Rule)
			f.causes.blame(c, rule)
			edit := whatif.NewEdit(rule, "remove", "", nil)
			c.edit(&edit)
			c.NextStep = &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("delete DeviceTaintRule %s if it is no longer needed", t.Rule), Commands: whatif.Commands(f.cluster.Snapshot, c.edits, nil)}
		}
		for _, device := range t.Devices {
			if t.Rule == "" {
				f.causes.blame(c, api.Ref(api.KindDevice, "", device))
			}
		}
		adopt(f.exam.Diagnosis, c, t)
		for j := range t.Pods {
			if p := &t.Pods[j]; p.Evicted {
				c.Severity = api.SeverityError
				c.safe++
				if s := f.byRef[api.Ref(api.KindPod, p.Namespace, p.Name)]; s != nil {
					c.suffer(s)
				}
			}
		}
	}
}

// fromCordons makes a cause of the cordoned nodes with devices.
func (f *finder) fromCordons() {
	var names []string
	var c *cause
	for _, node := range f.exam.Inventory.ClosedNodes(f.exam.Inventory.Usage()) {
		stored := f.cluster.Snapshot.Node(node.Name)
		if !node.Cordoned || stored == nil {
			continue
		}
		c, _ = f.causes.get(key{NodeCordoned, ""})
		names = append(names, node.Name)
		f.causes.blame(c, api.Ref(api.KindNode, "", node.Name))
		c.Devices += node.Devices.Free
		c.edits = append(c.edits, whatif.Uncordon(stored)...)
		c.began(&metav1.Time{Time: cluster.Cordoned(stored).Since})
	}
	if c == nil {
		return
	}
	c.Severity = api.SeverityWarning
	c.Message = fmt.Sprintf("%s %s cordoned: %s", english.Count(len(names), "node"), english.Plural(len(names), "is", "are"), english.Sample(names, 3))
	c.NextStep = &api.NextStep{Actor: api.ActorAdmin, Text: "uncordon " + english.Sample(names, 3), Commands: whatif.Commands(f.cluster.Snapshot, c.edits, nil)}
}

// adopt gives the cause of a taint the evidence and the next step of doctor's finding about it.
func adopt(d *api.Diagnosis, c *cause, t *api.Taint) {
	for i := range d.Findings {
		finding := &d.Findings[i]
		about := slices.ContainsFunc(finding.Evidence, func(e api.Evidence) bool {
			return e.Found == inventory.TaintText(t) && (slices.Contains(c.Objects, e.Object) || e.Object == api.Ref("Driver", "", t.Driver))
		})
		switch doctor.RepeatsOf(finding.Code) {
		case doctor.RepeatsRule:
			if about = slices.Contains(finding.Objects, api.Ref("DeviceTaintRule", "", t.Rule)); about {
				c.Severity, c.Message = finding.Severity, finding.Message
			}
		case doctor.RepeatsTaint:
		case doctor.RepeatsNothing, doctor.RepeatsPods, doctor.RepeatsDevices:
			about = false
		}
		if !about {
			continue
		}
		c.Findings = append(c.Findings, finding.Code)
		c.Evidence = append(c.Evidence, finding.Evidence...)
		if c.NextStep != nil && len(c.NextStep.Commands) == 0 && finding.Remedy != nil {
			c.NextStep.Commands = finding.Remedy.Commands
		}
	}
}

// fromRemedy adds a pod to the cause that a remedy mends, if it changes one condition of the
// cluster.
func (f *finder) fromRemedy(s *stuck, r *api.Remedy) {
	if r.Actor == api.ActorUser || len(r.Edits) == 0 {
		return
	}
	kind := whatif.KindOf(&r.Edits[0])
	var c *cause
	for i := range r.Edits {
		e := &r.Edits[i]
		if whatif.KindOf(e) != kind && (kind != whatif.EditNodeCordon || whatif.KindOf(e) != whatif.EditNodeTaint) {
			return
		}
	}
	switch e := &r.Edits[0]; kind {
	case whatif.EditNodeCordon:
		c = f.causes.byKey[key{NodeCordoned, ""}]
	case whatif.EditNodeTaint:
		if c = f.nodeTaint(e); c == nil {
			return
		}
	case whatif.EditDeviceTaint:
		c = f.causes.byObject[taintedDevice(f.cluster.Snapshot.Slices, e)]
	case whatif.EditTaintRule, whatif.EditPoolSlices, whatif.EditClassSelector:
		c = f.causes.byObject[e.Object]
	case whatif.EditNamespaceLabel:
		c, _ = f.causes.get(key{string(api.AdminAccessDenied), e.Object.Name})
		f.causes.blame(c, e.Object)
		c.Message = fmt.Sprintf("namespace %s does not allow admin access", e.Object.Name)
	default:
		// It is a change of what pods ask, or something to wait for.
	}
	if c == nil {
		return
	}
	for i := range r.Edits {
		c.edit(&r.Edits[i])
	}
	if c.NextStep == nil || kind == whatif.EditClassSelector {
		// Doctor does not propose another selector.
		c.NextStep = &api.NextStep{Actor: r.Actor, Text: r.Change, Commands: r.Commands}
	}
	c.Severity = api.SeverityError
	c.suffer(s)
}

// Codes of causes that are no reason codes of devices.
const (
	// NodeCordoned means that nodes are cordoned.
	NodeCordoned = "NodeCordoned"
	// NodePressure means that nodes have a taint that Kubernetes sets for a shortage.
	NodePressure = "NodePressure"
)

// nodeTaint returns the cause of a taint of a node that Kubernetes itself sets; nil for others.
func (f *finder) nodeTaint(e *api.Edit) *cause {
	var taint corev1.Taint
	var taints []corev1.Taint
	if json.Unmarshal(e.From, &taint) != nil || taint.Key == "" {
		if json.Unmarshal(e.From, &taints) != nil || len(taints) != 1 {
			return nil
		}
		taint = taints[0]
	}
	var k key
	switch {
	case taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable:
		k = key{string(api.NodeNotReady), ""}
	case strings.HasPrefix(taint.Key, "node.kubernetes.io/"):
		k = key{NodePressure, taint.Key}
	default:
		return nil
	}
	if c := f.causes.byObject[e.Object]; c != nil {
		return c
	}
	c, _ := f.causes.get(k)
	f.causes.blame(c, e.Object)
	return c
}

// taintedDevice returns the device whose taint in a slice an edit removes.
func taintedDevice(published []*resourceapi.ResourceSlice, e *api.Edit) api.ObjectRef {
	words := whatif.PointerTokens(e.Path)
	at := 0
	if len(words) < 3 {
		return api.ObjectRef{}
	}
	if _, err := fmt.Sscan(words[2], &at); err != nil {
		return api.ObjectRef{}
	}
	for _, slice := range published {
		if slice.Name == e.Object.Name && at < len(slice.Spec.Devices) {
			return api.Ref(api.KindDevice, "", slice.Spec.Driver+"/"+slice.Spec.Pool.Name+"/"+slice.Spec.Devices[at].Name)
		}
	}
	return api.ObjectRef{}
}

// describeNodes writes the message and the next step of a cause about nodes.
func describeNodes(snap *snapshot.Snapshot, c *cause) {
	if c.Message != "" {
		return
	}
	names := make([]string, 0, len(c.Objects))
	for _, o := range c.Objects {
		names = append(names, o.Name)
		if node := snap.Node(o.Name); c.Code == string(api.NodeNotReady) && node != nil {
			if down := cluster.NotReady(node); down != nil {
				c.began(&metav1.Time{Time: down.Since})
			}
		}
	}
	nodes := english.Count(len(names), "node")
	switch c.Code {
	case string(api.NodeNotReady):
		c.Message = fmt.Sprintf("%s %s not ready: %s", nodes, english.Plural(len(names), "is", "are"), english.Sample(names, 3))
		c.NextStep = &api.NextStep{Actor: api.ActorAdmin, Text: "find out why the kubelet does not report", Commands: []string{"kubectl describe node " + names[0]}}
	case NodePressure:
		c.Message = fmt.Sprintf("taint %s is on %s: %s", c.key.group, nodes, english.Sample(names, 3))
		c.NextStep = &api.NextStep{Actor: api.ActorAdmin, Text: "see the conditions of the node", Commands: []string{"kubectl describe node " + names[0]}}
	}
}
