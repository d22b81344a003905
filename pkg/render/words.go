// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"time"
	"unicode"

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
