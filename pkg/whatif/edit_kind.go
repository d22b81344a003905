// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// EditKind is the kind of field that an edit changes. Each kind is tried on a real cluster
// (test/remedies_controlplane_test.go).
type EditKind string

// Kinds of edits.
const (
	// Of claims and of their templates.
	EditDeviceCount      EditKind = "DeviceCount"
	EditAllocationMode   EditKind = "AllocationMode"
	EditSelector         EditKind = "Selector"
	EditCapacity         EditKind = "Capacity"
	EditConstraint       EditKind = "Constraint"
	EditDeviceToleration EditKind = "DeviceToleration"
	EditDeviceClassName  EditKind = "DeviceClassName"
	EditRequest          EditKind = "Request"
	EditAlternatives     EditKind = "Alternatives"
	EditAdminAccess      EditKind = "AdminAccess"
	// Of pods and of their templates.
	EditNodeSelector  EditKind = "NodeSelector"
	EditNodeAffinity  EditKind = "NodeAffinity"
	EditPodToleration EditKind = "PodToleration"
	EditPodResources  EditKind = "PodResources"
	EditPodRemoval    EditKind = "PodRemoval"
	// Of other objects.
	EditClassSelector  EditKind = "ClassSelector"
	EditTaintRule      EditKind = "TaintRule"
	EditNamespaceLabel EditKind = "NamespaceLabel"
	EditNodeCordon     EditKind = "NodeCordon"
	EditNodeTaint      EditKind = "NodeTaint"
	EditAllocation     EditKind = "Allocation"
	EditPoolSlices     EditKind = "PoolSlices"
	EditDeviceTaint    EditKind = "DeviceTaint"
)

// EditKinds lists all kinds of edits.
func EditKinds() []EditKind {
	return []EditKind{
		EditDeviceCount, EditAllocationMode, EditSelector, EditCapacity, EditConstraint, EditDeviceToleration, EditDeviceClassName, EditRequest, EditAlternatives, EditAdminAccess,
		EditNodeSelector, EditNodeAffinity, EditPodToleration, EditPodResources, EditPodRemoval,
		EditClassSelector, EditTaintRule, EditNamespaceLabel, EditNodeCordon, EditNodeTaint, EditAllocation, EditPoolSlices, EditDeviceTaint,
	}
}

// KindOf returns the kind of field that the edit changes; empty if it is unknown.
func KindOf(e *api.Edit) EditKind {
	words := PointerTokens(e.Path)
	whole := e.Path == "" && e.Op == "remove"
	switch e.Object.Kind {
	case api.KindClaim:
		if e.Path == "/status/allocation" {
			return EditAllocation
		}
		return claimEditKind(words, 1)
	case api.KindTemplate:
		return claimEditKind(words, 2)
	case "DeviceClass":
		return EditClassSelector
	case "DeviceTaintRule":
		return EditTaintRule
	case "ResourceSlice":
		if slices.Contains(words, "taints") {
			return EditDeviceTaint
		}
		return EditPoolSlices
	case "Namespace":
		return EditNamespaceLabel
	case api.KindNode:
		if strings.HasPrefix(e.Path, "/spec/taints") {
			return EditNodeTaint
		}
		return EditNodeCordon
	case api.KindPod:
		if whole {
			return EditPodRemoval
		}
		return podEditKind(words[1:])
	}
	if e.Object.Namespace == "" {
		return ""
	}
	for i, word := range words {
		if i > 0 && word == "spec" && words[i-1] == "template" {
			return podEditKind(words[i+1:])
		}
	}
	return ""
}

// claimEditKind returns the kind for a path below the spec of a claim, which has the given
// number of words above it.
func claimEditKind(words []string, above int) EditKind {
	if len(words) < above+2 || words[above] != "devices" {
		return ""
	}
	words = words[above+1:]
	if words[0] == "constraints" {
		return EditConstraint
	}
	if len(words) == 2 {
		return EditRequest
	}
	for _, word := range words[2:] {
		switch word {
		case "count":
			return EditDeviceCount
		case "allocationMode":
			return EditAllocationMode
		case "selectors":
			return EditSelector
		case "capacity":
			return EditCapacity
		case "tolerations":
			return EditDeviceToleration
		case "deviceClassName":
			return EditDeviceClassName
		case "adminAccess":
			return EditAdminAccess
		}
	}
	if words[2] == "firstAvailable" {
		return EditAlternatives
	}
	return ""
}

// podEditKind returns the kind for a path below the spec of a pod.
func podEditKind(words []string) EditKind {
	if len(words) == 0 {
		return ""
	}
	switch words[0] {
	case "nodeSelector":
		return EditNodeSelector
	case "affinity":
		return EditNodeAffinity
	case "tolerations":
		return EditPodToleration
	case "containers", "initContainers", "resources":
		return EditPodResources
	default:
		return ""
	}
}

// NewEdit returns an operation on an object. A nil value is none.
func NewEdit(object api.ObjectRef, op, path string, value any) api.Edit {
	e := api.Edit{Object: object, Op: op, Path: path}
	if value != nil {
		// Values are strings, numbers and types of the API.
		e.Value, _ = asWritten(value)
	}
	return e
}

// asWritten encodes a value as JSON for people to read and paste: without escapes for
// characters that are only special in HTML, such as > in a selector.
func asWritten(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// PointerTokens splits a JSON pointer (RFC 6901).
func PointerTokens(pointer string) []string {
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, word := range words {
		words[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
	}
	return words
}
