// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NeedsNode is the message for facts that are only known on the node.
const NeedsNode = "CDI specs are on the node; --node-probe looks at them there"

func check(name api.TrialCheckName, result api.TestResult, format string, args ...any) api.TrialCheck {
	return api.TrialCheck{Check: name, Result: result, Message: fmt.Sprintf(format, args...)}
}

// NotChecked returns a check that could not be made.
func NotChecked(name api.TrialCheckName, reason string) api.TrialCheck {
	return check(name, api.TestUnknown, "%s", reason)
}

// Predicted compares the prediction of "why" for the pod's node with the scheduler's
// allocation. alone is set if no other trial ran at the same time; others is set if claims
// of others changed since the prediction.
func Predicted(r *Record, onNode *api.Explanation, alone, others bool) api.TrialCheck {
	const name = api.CheckPredicted
	devices := r.Devices()
	node := ""
	if r.Pod != nil {
		node = r.Pod.Spec.NodeName
	}
	switch {
	case len(devices) == 0 && others:
		return check(name, api.TestUnknown, "it should fit, but claims of others have changed since")
	case len(devices) == 0:
		return check(name, api.TestFailed, "it should fit, and no devices were allocated")
	case onNode == nil || onNode.Placement == nil:
		if others {
			return check(name, api.TestUnknown, "it should not fit on node %s, but claims of others have changed since", node)
		}
		return check(name, api.TestFailed, "it should not fit on node %s, and it was scheduled there", node)
	}
	got, want := deviceNames(devices), deviceNames(devicesOf(onNode.Placement))
	switch {
	case slices.Equal(got, want):
		return check(name, api.TestPassed, "it fits, with %s", english.JoinAnd(got))
	case others:
		return check(name, api.TestUnknown, "%s was predicted, but claims of others have changed since", english.JoinAnd(want))
	case !alone:
		eligible := eligibleDevices(onNode)
		for _, device := range got {
			if !slices.Contains(eligible, device) {
				return check(name, api.TestFailed, "device %s was not eligible", device)
			}
		}
		return check(name, api.TestPassed, "it fits, with eligible devices; which of them depends on the trials at the same time")
	default:
		failed := check(name, api.TestFailed, "%s was predicted, and %s allocated", english.JoinAnd(want), english.JoinAnd(got))
		failed.Evidence = []api.Evidence{{Object: api.Ref(api.KindPod, r.Pod.Namespace, r.Name), Path: "status.resourceClaimStatuses", Found: strings.Join(got, ", "), Required: strings.Join(want, ", ")}}
		return failed
	}
}

func deviceNames(devices []api.AllocatedDevice) []string {
	names := make([]string, 0, len(devices))
	for i := range devices {
		names = append(names, DeviceName(&devices[i]))
	}
	return names
}

// DeviceName returns DRIVER/POOL/DEVICE.
func DeviceName(d *api.AllocatedDevice) string {
	return cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}.String()
}

func eligibleDevices(e *api.Explanation) []string {
	var names []string
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			names = append(names, e.Claims[i].Requests[j].EligibleDevices...)
		}
	}
	return names
}

// OthersChanged reports whether the allocations of claims in other namespaces than one
// differ between two snapshots.
func OthersChanged(before, after *snapshot.Snapshot, namespace string) bool {
	allocations := func(snap *snapshot.Snapshot) []string {
		var list []string
		for _, claim := range snap.Claims {
			if claim.Namespace != namespace && claim.Status.Allocation != nil {
				list = append(list, string(claim.UID))
			}
		}
		slices.Sort(list)
		return list
	}
	return !slices.Equal(allocations(before), allocations(after))
}

// Exclusive looks for other claims with the devices of a trial.
func Exclusive(r *Record, snap *snapshot.Snapshot) api.TrialCheck {
	const name = api.CheckExclusive
	if gap := snap.Gap(snapshot.ResourceClaims); gap != nil {
		return check(name, api.TestUnknown, "%s", gap.Reason)
	}
	if other, device := sharedWith(r, snap); other != nil {
		failed := check(name, api.TestFailed, "device %s is also allocated to claim %s/%s", device, other.Namespace, other.Name)
		failed.Evidence = []api.Evidence{{Object: api.RefTo(api.KindClaim, other), Path: "status.allocation.devices.results", Found: device, Required: "another device"}}
		return failed
	}
	return check(name, api.TestPassed, "no other claim has %s", english.JoinAnd(deviceNames(r.Devices())))
}

// sharedWith returns another claim with one of the devices of a trial, and the device.
func sharedWith(r *Record, snap *snapshot.Snapshot) (*resourceapi.ResourceClaim, string) {
	devices := deviceNames(r.Devices())
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil || r.Claim != nil && claim.UID == r.Claim.UID {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			device := cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}.String()
			if slices.Contains(devices, device) && !ptr.Deref(result.AdminAccess, false) {
				return claim, device
			}
		}
	}
	return nil, ""
}

// Released checks that the devices of a trial are free again.
func Released(r *Record, snap *snapshot.Snapshot) api.TrialCheck {
	const name = api.CheckReleased
	devices := english.JoinAnd(deviceNames(r.Devices()))
	if r.Claim != nil && r.Claim.Status.Allocation != nil && !r.Reached(api.TrialDeallocated) {
		failed := check(name, api.TestFailed, "claim %s still has %s", r.Claim.Name, devices)
		failed.Evidence = []api.Evidence{{Object: api.RefTo(api.KindClaim, r.Claim), Path: "status.allocation", Found: "set", Required: "none"}}
		return failed
	}
	if other, device := sharedWith(r, snap); other != nil {
		// It was free, or the scheduler would not have allocated it.
		return check(name, api.TestPassed, "device %s was free again, and is allocated to claim %s/%s", device, other.Namespace, other.Name)
	}
	return check(name, api.TestPassed, "%s: free again", devices)
}

// NodeEdits are the edits of a node's CDI specs to a container with the claim of a trial.
type NodeEdits struct {
	Edits []*cdi.Edits
	// Problem says why the edits are not known, or cannot be resolved.
	Problem string
	// Broken is set if the runtime cannot resolve it, either.
	Broken bool
}

// EditsOf returns the edits that the kubelet lets the runtime make for a claim. handed are
// the CDI devices of the kubelet's checkpoint, nil if it could not be read.
func EditsOf(uid string, handed cdi.Handed, found *cdi.Findings) NodeEdits {
	if handed == nil || found == nil {
		return NodeEdits{Problem: "the checkpoint of the kubelet, or the CDI specs, could not be read on the node"}
	}
	ids, known := handed[uid]
	if !known {
		return NodeEdits{Problem: "the checkpoint of the kubelet does not have the claim", Broken: true}
	}
	var of NodeEdits
	for _, id := range ids {
		edits, err := found.Resolve(id)
		if err != nil {
			return NodeEdits{Problem: err.Error(), Broken: true}
		}
		of.Edits = append(of.Edits, edits)
	}
	return of
}

// InContainer compares the two containers with the edits of the node. of is nil if nobody
// looked at the node.
func InContainer(r *Record, with, without *Contents, of *NodeEdits) []api.TrialCheck {
	added := with.Added(without)
	brings := "the claim brings nothing that a container shows"
	if len(added) > 0 {
		brings = "the claim brings " + english.Sample(added, 5)
	}
	switch {
	case of == nil:
		return []api.TrialCheck{
			check(api.CheckContainer, api.TestUnknown, "not compared: %s; %s", NeedsNode, brings),
			check(api.CheckIsolation, api.TestUnknown, "not compared: %s", NeedsNode),
		}
	case of.Problem != "":
		result := api.TestUnknown
		if of.Broken {
			result = api.TestFailed
		}
		return []api.TrialCheck{check(api.CheckContainer, result, "%s", of.Problem), check(api.CheckIsolation, api.TestUnknown, "not compared: %s", of.Problem)}
	case len(of.Edits) == 0:
		return []api.TrialCheck{
			check(api.CheckContainer, api.TestPassed, "the driver gives the container no CDI devices"),
			check(api.CheckIsolation, api.TestPassed, "the driver gives the container no CDI devices"),
		}
	}
	object := api.Ref(api.KindPod, r.Pod.Namespace, r.Name)
	container := check(api.CheckContainer, api.TestPassed, "it has what the CDI specs of the node say: %s", english.Sample(added, 5))
	lacking, unseen := with.Differences(object, of.Edits)
	if len(lacking) > 0 {
		container = check(api.CheckContainer, api.TestFailed, "it lacks what the CDI specs of the node say: %s", lacking[0].Path)
		container.Evidence = lacking
	} else if len(unseen) > 0 {
		container.Message += "; not seen: " + english.JoinAnd(unseen)
	}
	isolation := check(api.CheckIsolation, api.TestPassed, "a container that does not name the claim has none of it")
	if intruding := without.Intruding(object, of.Edits); len(intruding) > 0 {
		isolation = check(api.CheckIsolation, api.TestFailed, "a container that does not name the claim has %s", intruding[0].Path)
		isolation.Evidence = intruding
	}
	return []api.TrialCheck{container, isolation}
}

// LeftOnNode looks for leftovers of a deleted claim. handed and found are nil if they could
// not be read.
func LeftOnNode(uid, node string, handed cdi.Handed, found *cdi.Findings) api.TrialCheck {
	const name = api.CheckNode
	if handed == nil || found == nil {
		return check(name, api.TestUnknown, "the checkpoint of the kubelet, or the CDI specs, could not be read on node %s", node)
	}
	var left []api.Evidence
	object := api.Ref(api.KindNode, "", node)
	if ids, known := handed[uid]; known {
		left = append(left, api.Evidence{Object: object, Path: "checkpoint of the kubelet", Found: strings.TrimSpace("claim " + uid + " " + strings.Join(ids, " ")), Required: "no such claim"})
	}
	for i := range found.Specs {
		spec := &found.Specs[i]
		for j := range spec.Devices {
			if device := &spec.Devices[j]; device.ClaimUID == uid {
				left = append(left, api.Evidence{Object: object, Path: spec.Path, Found: device.ID, Required: "no CDI device of a claim that is gone"})
			}
		}
	}
	if len(left) > 0 {
		failed := check(name, api.TestFailed, "of the claim, which is gone, %s is left on node %s", left[0].Path, node)
		failed.Evidence = left
		return failed
	}
	return check(name, api.TestPassed, "nothing of the claim is left in the kubelet's checkpoint and the CDI specs of node %s", node)
}

// ClaimUID returns the UID of the claim of a trial, empty before it exists.
func (r *Record) ClaimUID() string {
	if r.Claim == nil {
		return ""
	}
	return string(r.Claim.UID)
}

// Node returns the node of the pod, empty if it was not bound.
func (r *Record) Node() string {
	if r.Pod == nil {
		return ""
	}
	return r.Pod.Spec.NodeName
}

// Left returns the object that still exists after the pod was deleted: the pod, or else the
// claim.
func (r *Record) Left(namespace string) api.ObjectRef {
	if r.Claim != nil && (r.podGone || r.Pod == nil) {
		return api.RefTo(api.KindClaim, r.Claim)
	}
	return api.Ref(api.KindPod, namespace, r.Name)
}

// NodeProblem is a problem that node-probe found.
type NodeProblem struct{ Check, Path, Message string }

// OnNode returns the check with node-probe's problems on the node of a failed trial.
func OnNode(node string, problems []NodeProblem) api.TrialCheck {
	const name = api.CheckNode
	if len(problems) == 0 {
		return check(name, api.TestPassed, "node-probe finds no problem on node %s", node)
	}
	failed := check(name, api.TestFailed, "node-probe on node %s: %s", node, problems[0].Message)
	for _, problem := range problems {
		failed.Evidence = append(failed.Evidence, api.Evidence{Object: api.Ref(api.KindNode, "", node), Path: strings.TrimSpace(problem.Check + " " + problem.Path), Found: problem.Message})
	}
	return failed
}
