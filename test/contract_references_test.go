// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"regexp"
	"strings"
	"testing"
)

// plainStrings returns the strings of the contract that look like references and are none, or
// need no api.ObjectRef, by the reason.
func plainStrings() map[string][]string {
	return map[string][]string{
		"the object is in the namespace of the target": {
			"v1alpha1.ChosenAlternative.claim", "v1alpha1.CopyLimit.quota", "v1alpha1.MemberGroup.parent", "v1alpha1.SmallerDevice.claim",
		},
		"the object is in the namespace of the test": {"v1alpha1.Trial.claim", "v1alpha1.Trial.pod"},
		"the name is of an entry in the pod's spec.resourceClaims": {
			"v1alpha1.DeviceRequest.podClaim", "v1alpha1.MemberGroup.claims", "v1alpha1.RequestUse.podClaim",
		},
		"the name is of a device in the pool": {"v1alpha1.Counter.usedBy", "v1alpha1.DeviceCounter.usedBy"},
		"the text names a cluster or files": {
			"v1alpha1.ComparedState.source", "v1alpha1.Diagnosis.source", "v1alpha1.Impact.source", "v1alpha1.LintReport.source", "v1alpha1.Migration.source", "v1alpha1.Overview.source",
			"v1alpha1.Plan.source", "v1alpha1.Sharing.source", "v1alpha1.Status.source", "v1alpha1.TestReport.source", "commands.ServerVersion.source",
		},
		"the word is one of a few": {
			"v1alpha1.AllocatorInfo.featureSource", "v1alpha1.SchedulerMessage.source", "v1alpha1.SelectorTrace.source",
			"commands.GateSetting.source", "commands.Version.versionSource",
		},
		"the object is not of a cluster": {"cdi.Spec.target", "driver.Conformity.source"},
	}
}

var (
	// otherKind matches fields that can name objects of several kinds, or of a kind that the
	// name of the field does not tell.
	otherKind = regexp.MustCompile(`(Consumer|Daemon|Holder|Object|Owner|Parent|ReservedFor|Source|Target|UsedBy)s?$`)
	// namespacedKind matches fields that name objects of a kind with namespaces.
	namespacedKind = regexp.MustCompile(`(Budget|Claim|Job|Pod|PodGroup|Quota|Template|Workload)s?$`)
	// joinedName matches comments of fields with a namespace or a kind before the name.
	joinedName = regexp.MustCompile(`(?i)\b(kind|namespace|pod)/[a-z]`)
)

// TestReferencesAreObjects fails for a string of the contract that should be an
// api.ObjectRef by the rule of docs/json.md.
func TestReferencesAreObjects(t *testing.T) {
	reasons := map[string]string{}
	for reason, fields := range plainStrings() {
		for _, field := range fields {
			reasons[field] = reason
		}
	}
	looked := map[string]bool{}
	for kind := range printed() {
		for of, definition := range schemaOf(t, kind, true).Defs {
			for name, property := range definition.Properties {
				field, text := of+"."+name, property
				if text.Items != nil {
					text = text.Items
				}
				if looked[field] || text.Type != "string" {
					continue
				}
				looked[field] = true
				nameAlone := definition.Properties["namespace"] != nil
				goName := strings.ToUpper(name[:1]) + name[1:]
				if !otherKind.MatchString(goName) && !joinedName.MatchString(property.Description) && (nameAlone || !namespacedKind.MatchString(goName)) {
					continue
				}
				if reasons[field] == "" {
					t.Errorf("%s is a string and looks like a reference to an object: %s", field, property.Description)
				}
				delete(reasons, field)
			}
		}
	}
	for field, reason := range reasons {
		t.Errorf("%s (%s) does not exist, or does not look like a reference", field, reason)
	}
}
