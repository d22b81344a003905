// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// String returns "claim ml/train was allocated gpu-01/gpu-0", or "3 claims of ml were
// allocated 12 devices".
func (e *Event) String() string {
	one, many := e.Code.words(english.Count(e.devices, "device"))
	kind := string(e.Code.Kind())
	if e.Count == 1 {
		return kind + " " + e.name + " " + one + e.detail
	}
	if e.Namespace != "" {
		many = "of " + e.Namespace + " " + many
	}
	return english.Count(e.Count, kind) + " " + many
}

// words say what happened to one object, and to several that have so many devices together.
func (c EventCode) words(devices string) (one, many string) {
	switch c {
	case ClaimCreated, RuleCreated:
		return "was created", "were created"
	case ClaimDeleted, RuleDeleted:
		return "was deleted", "were deleted"
	case ClaimReleased:
		return "was deleted, ", "were deleted, and " + devices + " were released"
	case ClaimAllocated:
		return "was allocated ", "were allocated " + devices
	case ClaimDeallocated:
		return "was deallocated", "were deallocated, " + devices
	case PodUnhealthy:
		return "has an unhealthy device", "have unhealthy devices"
	case PodHealthy:
		return "has healthy devices again", "have healthy devices again"
	case NodeDeleted:
		return "was deleted", "were deleted"
	case NodeCordoned:
		return "was cordoned", "were cordoned"
	case NodeUncordoned:
		return "was uncordoned", "were uncordoned"
	case NodeBecameNotReady:
		return "became not ready", "became not ready"
	case NodeBecameReady:
		return "became ready", "became ready"
	case SlicePublished:
		return "was published", "were published, " + devices
	case SliceRemoved:
		return "was removed", "were removed, " + devices
	case SliceRenewed:
		return "is at generation ", "have another generation, " + devices
	default:
		return string(c), string(c)
	}
}

// allocatedText names the device of an allocated claim, or counts them.
func allocatedText(claim *resourceapi.ResourceClaim) string {
	results := claim.Status.Allocation.Devices.Results
	if len(results) == 1 {
		return results[0].Pool + "/" + results[0].Device
	}
	return english.Count(len(results), "device")
}

// releasedText says that the devices of a claim are free.
func releasedText(claim *resourceapi.ResourceClaim) string {
	n := len(claim.Status.Allocation.Devices.Results)
	if n == 1 {
		return "its device was released"
	}
	return "its " + english.Count(n, "device") + " were released"
}
