// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// fromFindings makes causes of doctor's findings. Findings about pods and taints, which are
// causes by themselves, are left out. Findings about claims and templates of pods that have
// another cause add nothing to it but their codes.
func (f *finder) fromFindings() {
	for i := range f.exam.Diagnosis.Findings {
		finding := &f.exam.Diagnosis.Findings[i]
		if finding.Severity != api.SeverityError && finding.Severity != api.SeverityWarning {
			continue
		}
		switch repeats := doctor.RepeatsOf(finding.Code); {
		case repeats != doctor.RepeatsNothing && repeats != doctor.RepeatsDevices:
		case f.isSymptom(finding):
			f.symptoms = append(f.symptoms, finding)
		default:
			f.fromFinding(finding)
		}
	}
}

// isSymptom reports whether a finding follows from something else, if its pods have another cause:
// all its objects are claims, templates and pods, or a class selects nothing.
func (f *finder) isSymptom(finding *api.Finding) bool {
	return doctor.RepeatsOf(finding.Code) == doctor.RepeatsDevices || len(finding.Objects) > 0 && !slices.ContainsFunc(finding.Objects, func(o api.ObjectRef) bool {
		return o.Kind != api.KindClaim && o.Kind != api.KindTemplate && f.byRef[o] == nil
	})
}

// fromFinding makes a cause of a finding, or adds it to the cause of findings like it.
func (f *finder) fromFinding(finding *api.Finding) {
	var at []api.ObjectRef
	var affected []*stuck
	for _, o := range finding.Objects {
		if s := f.byRef[o]; s != nil {
			affected = append(affected, s)
		} else {
			at = append(at, o)
		}
	}
	c, made := f.causes.get(key{finding.Code, groupOf(f.cluster.Snapshot, at)})
	if made {
		c.Severity, c.Message, c.NextStep, c.Findings = finding.Severity, finding.Message, finding.Remedy, []string{finding.Code}
	} else {
		c.others++
	}
	c.Evidence = append(c.Evidence, finding.Evidence...)
	f.causes.blame(c, at...)
	if finding.Severity == api.SeverityError {
		affected = append(affected, f.users(at)...)
	}
	if pointing := pointing(f.stuck, finding); len(pointing) > 0 {
		c.Severity, affected = api.SeverityError, append(affected, pointing...)
	}
	for _, s := range affected {
		c.suffer(s)
	}
}

// fromSymptoms adds findings about classes that select nothing, or findings about claims and
// templates, to the causes of their pods. Where there are none, the finding is a cause.
func (f *finder) fromSymptoms(classes bool) {
	for _, finding := range f.symptoms {
		known := false
		if (doctor.RepeatsOf(finding.Code) == doctor.RepeatsDevices) != classes {
			continue
		}
		affected := f.users(finding.Objects)
		for _, o := range finding.Objects {
			if s := f.byRef[o]; s != nil {
				affected = append(affected, s)
			}
		}
		for _, s := range affected {
			for _, c := range s.causes {
				known = true
				if !slices.Contains(c.Findings, finding.Code) {
					c.Findings = append(c.Findings, finding.Code)
				}
			}
		}
		if known {
			continue
		}
		if c := f.causes.byObject[finding.Objects[0]]; c != nil && !classes {
			c.Findings = append(c.Findings, finding.Code)
			continue
		}
		f.fromFinding(finding)
	}
}

// groupOf returns what the objects of findings like one have in common: the driver of slices and
// pools, the workload of pods, the namespace of claims, nothing for nodes. Other objects are
// apart.
func groupOf(snap *snapshot.Snapshot, at []api.ObjectRef) string {
	if len(at) == 0 {
		return ""
	}
	first := at[0]
	switch first.Kind {
	case api.KindNode:
		return ""
	case api.KindClaim:
		return first.Namespace
	case "Pool":
		driver, _, _ := strings.Cut(first.Name, "/")
		return driver
	case "ResourceSlice":
		for _, slice := range snap.Slices {
			if slice.Name == first.Name {
				return slice.Spec.Driver
			}
		}
	case api.KindPod:
		if pod := snap.Pod(first.Namespace, first.Name); pod != nil {
			if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
				return pod.Namespace + "/" + owner.Name
			}
		}
	}
	return first.String()
}

// pointing returns the pods that wait and whose answers name an object of a finding as the reason,
// or as what may be behind it if a node has no devices for them at all.
func pointing(waiting []*stuck, finding *api.Finding) []*stuck {
	isNamed := func(e api.Evidence) bool {
		return slices.Contains(finding.Objects, e.Object) || e.Object.Kind == "Pool" && slices.ContainsFunc(finding.Evidence, func(other api.Evidence) bool { return other.Object == e.Object })
	}
	var list []*stuck
	for _, s := range waiting {
		if s.full == nil || s.answer.Verdict == api.Fits {
			continue
		}
		points := false
		for i := range s.full.Claims {
			for j := range s.full.Claims[i].Requests {
				points = points || slices.ContainsFunc(s.full.Claims[i].Requests[j].Rejected, func(r api.Rejection) bool {
					return r.Code == s.answer.Code && slices.ContainsFunc(r.Evidence, isNamed)
				})
			}
		}
		if s.answer.Code == api.NodeNotReachable {
			points = points || slices.ContainsFunc(s.full.Hints, func(h api.Hint) bool { return slices.ContainsFunc(h.Evidence, isNamed) })
		}
		if points {
			list = append(list, s)
		}
	}
	return list
}

// users returns the pods that do not run and use an object: a claim or a template, a class that
// they ask for, or a node that is not ready.
func (f *finder) users(objects []api.ObjectRef) []*stuck {
	var list []*stuck
	for _, s := range f.stuck {
		if slices.ContainsFunc(objects, func(o api.ObjectRef) bool { return f.uses(s, o) }) {
			list = append(list, s)
		}
	}
	return list
}

func (f *finder) uses(s *stuck, o api.ObjectRef) bool {
	if s.pod == nil || s.answer != nil && s.answer.Verdict == api.Fits {
		return false
	}
	switch o.Kind {
	case api.KindClaim, api.KindTemplate:
		if o.Namespace != s.pod.Namespace {
			return false
		}
		for _, entry := range s.pod.Spec.ResourceClaims {
			if o.Kind == api.KindTemplate && entry.ResourceClaimTemplateName != nil && *entry.ResourceClaimTemplateName == o.Name {
				return true
			}
		}
		for _, pc := range f.cluster.Claims.OfPod(s.pod) {
			if o.Kind == api.KindClaim && pc.Claim != nil && pc.Claim.Name == o.Name {
				return true
			}
		}
	case "DeviceClass":
		return s.answer != nil && slices.Contains(classesOf(f.exam.Inventory, s), o.Name)
	case api.KindNode:
		return s.blocked != nil && s.blocked.Code == api.NodeNotReady && s.pod.Spec.NodeName == o.Name
	}
	return false
}

// classesOf lists the classes that the requests of a pod name.
func classesOf(in *inventory.Inventory, s *stuck) []string {
	var classes []string
	for _, ask := range in.Asks(s.pod) {
		classes = append(classes, ask.Classes...)
	}
	return classes
}
