// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// noteDropped compares an object with the manifest that kubectl applied.
func noteDropped(object metav1.Object, applied string) {
	gates := snapshot.GatedFields(object)
	if gates == nil {
		return
	}
	var manifest metav1.TypeMeta
	if json.Unmarshal([]byte(applied), &manifest) != nil {
		return
	}
	// Older versions have the same fields in other places.
	intended, err := DecodeResource([]byte(applied), manifest.GroupVersionKind().Version, manifest.Kind)
	if err != nil || intended == nil {
		return
	}
	var dropped []string
	compareFields(asJSON(intended)["spec"], asJSON(object)["spec"], "spec", func(path string) {
		if gates.Of(path) != "" {
			dropped = append(dropped, path)
		}
	})
	if len(dropped) > 0 {
		slices.Sort(dropped)
		snapshot.Annotate(object, snapshot.DroppedFieldsAnnotation, dropped)
	}
}

func asJSON(object any) map[string]any {
	var fields map[string]any
	if encoded, err := json.Marshal(object); err == nil {
		_ = json.Unmarshal(encoded, &fields)
	}
	return fields
}

// compareFields reports the fields of objects that only the wanted one has.
// Lists are compared if they have the same length.
func compareFields(wanted, stored any, path string, missing func(path string)) {
	switch wanted := wanted.(type) {
	case map[string]any:
		stored, ok := stored.(map[string]any)
		if !ok {
			return
		}
		for name, value := range wanted {
			if found, ok := stored[name]; ok {
				compareFields(value, found, path+"."+name, missing)
			} else {
				missing(path + "." + name)
			}
		}
	case []any:
		stored, ok := stored.([]any)
		if !ok || len(stored) != len(wanted) {
			return
		}
		for i := range wanted {
			compareFields(wanted[i], stored[i], fmt.Sprintf("%s[%d]", path, i), missing)
		}
	}
}
