// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Words writes a code of the API, such as DoesNotFit, in words: "does not fit".
func Words[T ~string](code T) string {
	var b strings.Builder
	for i, r := range string(code) {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// OutlookWords says when a target fits: "after others end". It is empty for no condition.
func OutlookWords(c api.Condition) string {
	switch c {
	case api.LowerPrioritiesGone:
		return "after lower priorities end"
	case api.ClaimsReleased:
		return "after others end"
	case api.HardwareAlone:
		return "on open, empty nodes"
	case api.OneMoreNode:
		return "with one more node"
	case api.MoreNodes:
		return "with more nodes"
	case api.Never:
		return "never here"
	default:
		return Words(c)
	}
}

// Age writes how many seconds something has lasted, as kubectl does.
func Age(seconds int64) string {
	return duration.HumanDuration(time.Duration(seconds) * time.Second)
}

// Actor returns how somebody who can act is called: "you", "admin", or "wait" for nobody.
func Actor(name string) string {
	switch name {
	case api.ActorUser:
		return "you"
	case api.ActorAdmin:
		return "admin"
	case api.ActorNobody:
		return "wait"
	default:
		return name
	}
}

// AtMost writes a count, with a sign in front if it may be lower.
func AtMost(n int, bound bool) string { return Bounded(n, UpperBound(bound)) }

// AtLeast writes a count, with a sign in front if it may be higher.
func AtLeast(n int, bound bool) string { return Bounded(n, LowerBound(bound)) }

// UpperBound returns the bound of a count that may be lower.
func UpperBound(bound bool) api.Bound {
	if bound {
		return api.BoundAtMost
	}
	return ""
}

// LowerBound returns the bound of a count that may be higher.
func LowerBound(bound bool) api.Bound {
	if bound {
		return api.BoundAtLeast
	}
	return ""
}

// Bounded writes a count, with a sign if it is uncertain.
func Bounded(n int, bound api.Bound) string {
	text := strconv.Itoa(n)
	switch bound {
	case api.BoundAtMost:
		return "≤" + text
	case api.BoundAtLeast:
		return "≥" + text
	case api.BoundUnknown:
		return text + "?"
	default:
		return text
	}
}

// PlaceableBound returns the bound of a count of claims that can be placed.
func PlaceableBound(count *api.CopyCount, freeIsUpperBound, devicesAreLowerBounds bool) api.Bound {
	sure := count.AtMost != nil && *count.AtMost == count.AtLeast
	switch {
	case freeIsUpperBound && sure:
		return api.BoundAtMost
	case freeIsUpperBound:
		return api.BoundUnknown
	default:
		return LowerBound(!sure || devicesAreLowerBounds)
	}
}

// looks reports whether a command changes nothing.
func looks(command string) bool {
	return slices.ContainsFunc([]string{"kubectl get ", "kubectl describe ", "kubectl logs ", "kubectl dra "}, func(begin string) bool { return strings.HasPrefix(command, begin) }) &&
		!strings.HasPrefix(command, "kubectl dra taints ") && !strings.Contains(command, " | ")
}

// evidenceLine returns a fact in one line: the object, the field, the value found and the
// value required.
func evidenceLine(fact *api.Evidence) string {
	text := fact.Object.String()
	if fact.Path != "" {
		text += " " + fact.Path
	}
	if fact.Found != "" {
		text += ": " + fact.Found
	}
	if fact.Required != "" {
		text += " (required: " + fact.Required + ")"
	}
	return text
}

// NetworkText returns the network interface of a device with its addresses, empty for none.
func NetworkText(status *api.DeviceStatus) string {
	if status == nil {
		return ""
	}
	text := status.Interface
	for _, ip := range status.IPs {
		text += " " + ip
	}
	if status.HardwareAddress != "" {
		text += " " + status.HardwareAddress
	}
	return strings.TrimSpace(text)
}

// DataText returns the driver's own data about a device, empty for none. It has at most 10
// KiB, as the API server accepts it, and is shown in full.
func DataText(status *api.DeviceStatus) string {
	if status == nil || len(status.Data) == 0 {
		return ""
	}
	return "data " + string(status.Data)
}

// OddConditions returns the unexpected conditions of a device; said writes one.
func OddConditions(status *api.DeviceStatus, said func(*metav1.Condition) string) []string {
	if status == nil {
		return nil
	}
	var texts []string
	for i := range status.Conditions {
		if c := &status.Conditions[i]; slices.Contains(status.Odd, c.Type) {
			texts = append(texts, said(c))
		}
	}
	return texts
}
