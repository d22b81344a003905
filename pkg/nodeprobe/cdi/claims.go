// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// comparison compares specs with claims.
type comparison struct {
	cluster *node.Cluster
	handed  Handed
	// named lists, by the UID of a claim, the devices named after it; given lists the named
	// devices that come from a driver without the metadata of the helper.
	named, given map[string][]string
	// drivers are the drivers that name devices after claims.
	drivers map[string]bool
	// have are the devices that runtimes find.
	have map[string]bool
	// notRead names what could not be read and may hold more devices, and why; empty if all
	// was read.
	notRead string
	// uncertain says, by device ID, why runtimes may not use a device that was found.
	uncertain map[string]string
}

// compareClaims checks that each claim has the devices that it should have.
func (f *Findings) compareClaims(cluster *node.Cluster, handed Handed) {
	c := &comparison{
		cluster: cluster, handed: handed,
		named: map[string][]string{}, given: map[string][]string{}, drivers: map[string]bool{}, have: map[string]bool{},
		uncertain: map[string]string{},
	}
	if path, reason := f.notRead(); path != "" {
		c.notRead = path + " may have it: " + reason
	}
	for s := range f.Specs {
		for _, d := range f.Specs[s].Devices {
			if d.ShadowedBy != "" || d.ConflictsWith != "" {
				continue
			}
			c.have[d.ID] = true
			if path, reason := f.notReadAfter(f.Specs[s].Path); path != "" {
				c.uncertain[d.ID] = path + " may have it too, and then counts or conflicts: " + reason
			}
			if d.ClaimUID == "" {
				continue
			}
			c.named[d.ClaimUID] = append(c.named[d.ClaimUID], d.ID)
			vendor, class := parser.ParseQualifier(f.Specs[s].Kind)
			if byClaim(class) {
				c.given[d.ClaimUID] = append(c.given[d.ClaimUID], d.ID)
				c.drivers[driverOf(vendor)] = true
			}
		}
	}
	for _, uid := range c.uids() {
		claim := c.claim(uid)
		// CDI has no part in claims without devices that the kubelet remembers.
		if claim.State != ClaimGone || len(c.named[uid]) > 0 {
			f.Claims = append(f.Claims, claim)
		}
	}
	f.Checks = append(f.Checks, claimChecks(f.Claims)...)
}

// uids returns the UIDs of all claims with something to report.
func (c *comparison) uids() []string {
	set := map[string]bool{}
	for uid := range c.named {
		set[uid] = true
	}
	for uid := range c.handed {
		set[uid] = true
	}
	if c.cluster != nil {
		for _, claim := range c.cluster.Claims {
			if c.cluster.Needed(claim) {
				set[string(claim.UID)] = true
			}
		}
	}
	uids := make([]string, 0, len(set))
	for uid := range set {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b string) int {
		return cmp.Or(strings.Compare(nameOf(c.cluster.Claim(a)), nameOf(c.cluster.Claim(b))), strings.Compare(a, b))
	})
	return uids
}

func nameOf(claim *resourceapi.ResourceClaim) string {
	if claim == nil {
		return ""
	}
	return claim.Namespace + "/" + claim.Name
}

// claim judges one claim.
func (c *comparison) claim(uid string) Claim {
	out := Claim{UID: uid}
	claim := c.cluster.Claim(uid)
	if claim != nil {
		out.Namespace, out.Name = claim.Namespace, claim.Name
	}
	handed, prepared := c.handed[uid]
	var devices, missing set
	for _, id := range slices.Concat(c.named[uid], handed) {
		devices.add(id)
		if !c.have[id] {
			missing.add(id)
		}
	}
	out.Devices, out.Missing = devices.items, missing.items
	here := claim != nil && c.cluster.Node != "" && slices.Contains(c.cluster.Claims, claim)
	gap := c.cluster.Missing(snapshot.ResourceClaims, out.Namespace)
	hereGap := cmp.Or(gap, c.cluster.MissingHere(snapshot.ResourcePods, out.Namespace))
	switch {
	case claim == nil && gap == "":
		out.State, out.Reason = ClaimGone, "there is no such claim any more"
	case len(out.Missing) > 0 && c.notRead != "":
		out.State, out.Reason = ClaimUnknown, "the kubelet hands "+node.Sample(out.Missing)+" to the runtime, which is in no spec that could be read, and "+c.notRead
	case len(out.Missing) > 0:
		out.State, out.Reason = ClaimLacksSpec, "the kubelet hands "+node.Sample(out.Missing)+" to the runtime, which finds no spec with it"
	case prepared && handed == nil && !c.runs(claim):
		out.State, out.Reason = ClaimUnknown, "the kubelet has no devices for it: it is not prepared yet, or needs none"
	case prepared && len(handed) == 0:
		out.State = ClaimNeedsNone
	case prepared && c.uncertainty(out.Devices) != "":
		out.State, out.Reason = ClaimUnknown, c.uncertainty(out.Devices)
	case prepared:
		out.State = ClaimHasSpec
	case claim != nil && !here && hereGap == "":
		out.State, out.Reason = ClaimNotHere, "no pod of node "+c.cluster.Node+" uses the claim"
	case !here:
		out.State, out.Reason = ClaimUnknown, "not known whether the claim is used here: "+hereGap
	case c.handed != nil:
		out.State, out.Reason = ClaimUnknown, "the kubelet has not begun to prepare it"
	default:
		out.State, out.Reason = c.unhanded(claim)
	}
	return out
}

// unhanded judges a claim whose devices the kubelet does not report, by what its drivers do
// for other claims.
func (c *comparison) unhanded(claim *resourceapi.ResourceClaim) (ClaimState, string) {
	uid := string(claim.UID)
	if given := c.given[uid]; len(given) > 0 && c.uncertainty(given) != "" {
		return ClaimUnknown, c.uncertainty(given)
	} else if len(given) > 0 {
		return ClaimHasSpec, ""
	}
	for i := range claim.Status.Allocation.Devices.Results {
		driver := claim.Status.Allocation.Devices.Results[i].Driver
		switch {
		case c.drivers[driver] && c.notRead != "":
			return ClaimUnknown, "no spec of driver " + driver + " that could be read is for it, and " + c.notRead
		case c.drivers[driver] && c.runs(claim):
			return ClaimLacksSpec, "driver " + driver + " has specs for other claims, and none for this one, whose pod runs"
		case c.drivers[driver]:
			return ClaimUnknown, "driver " + driver + " has no spec for it, perhaps not yet: its pod does not run"
		}
	}
	return ClaimUnknown, "the kubelet's state could not be read, and its driver names no specs after claims"
}

// uncertainty returns why runtimes may not use one of the devices; empty if they do.
func (c *comparison) uncertainty(devices []string) string {
	for _, id := range devices {
		if reason := c.uncertain[id]; reason != "" {
			return "runtimes perhaps do not use " + id + " as it was found: " + reason
		}
	}
	return ""
}

// runs reports whether a pod runs here with the claim, so that it is prepared.
func (c *comparison) runs(claim *resourceapi.ResourceClaim) bool {
	return c.cluster != nil && claim != nil && slices.ContainsFunc(c.cluster.Pods, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && node.ReservedFor(claim, pod)
	})
}

// claimChecks sums up the claims.
func claimChecks(claims []Claim) []node.Check {
	var checks []node.Check
	good := 0
	var unknowns node.Unknowns
	for i := range claims {
		c := &claims[i]
		who := "claim " + c.UID
		if c.Name != "" {
			who = fmt.Sprintf("claim %s/%s", c.Namespace, c.Name)
		}
		switch c.State {
		case ClaimHasSpec, ClaimNeedsNone:
			good++
		case ClaimLacksSpec, ClaimGone, ClaimNotHere:
			check := node.Bad(checkClaims, "", "%s: %s", who, c.Reason)
			if c.State != ClaimLacksSpec {
				check.Message += ", and its devices are still here"
				check.Found = node.Sample(c.Devices)
			}
			checks = append(checks, check)
		case ClaimUnknown:
			unknowns.Add(who, c.Reason)
		}
	}
	checks = append(checks, unknowns.Checks(checkClaims)...)
	if good > 0 {
		checks = append(checks, node.Good(checkClaims, "", "%s with all the devices that they need", english.Count(good, "claim")))
	}
	return checks
}

// uidLength is the length of a claim's UID.
const uidLength = 36

// claimUID says after which claim a device is named. Drivers do it in these
// ways:
//
//   - <UID>-<device> of class claim, in a file that ends in _<UID>: the NVIDIA
//     driver (CreateClaimSpecFile, cmd/gpu-kubelet-plugin/cdi.go), and those
//     made from dra-example-driver;
//   - <UID>_<request> of class metadata, in a file with _<UID>_: the upstream
//     helper (writeCDISpec, kubeletplugin/metadata.go).
//
// The name of a device may also be a UUID of its own, as for a mediated
// device is. So the class or the file must say too that it is about a claim.
func claimUID(file, class, name string) string {
	if len(name) < uidLength || !isUID(name[:uidLength]) {
		return ""
	}
	uid, rest := name[:uidLength], name[uidLength:]
	if rest != "" && rest[0] != '-' && rest[0] != '_' {
		return ""
	}
	file = strings.TrimSuffix(path.Base(file), path.Ext(file))
	switch {
	case class == "claim", class == "metadata", strings.HasSuffix(file, "_"+uid), strings.Contains(file, "_"+uid+"_"):
		return uid
	default:
		return ""
	}
}

// isUID reports whether text is a UUID in lower case.
func isUID(text string) bool {
	if len(text) != uidLength {
		return false
	}
	for i := range len(text) {
		c := text[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// byClaim reports whether the driver itself gives devices of this vendor and class to a
// claim; other devices are metadata that the helper adds.
func byClaim(class string) bool { return class != "metadata" }

// driverOf returns the driver of a vendor: its own name, or the name with k8s. in front.
func driverOf(vendor string) string { return strings.TrimPrefix(vendor, "k8s.") }
