// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// WithOldValues returns edits with the previous value of each field, if the snapshot has
// it. Whole objects and statuses are left out: they are large, and nobody puts them back.
func WithOldValues(snap *snapshot.Snapshot, edits []api.Edit) []api.Edit {
	filled := slices.Clone(edits)
	documents := map[api.ObjectRef]any{}
	for i := range filled {
		e := &filled[i]
		prefix := ""
		document, known := documents[e.Object]
		if !known {
			document, prefix = storedDocument(snap, e.Object)
			if prefix != "" {
				document = DocumentAt(document, prefix)
			}
		}
		if !strings.HasPrefix(e.Path, "/status") && e.Path != "" && e.Op != "test" && !inserts(e) && !Scales(*e) {
			if value, ok := LookUp(document, PointerTokens(e.Path)); ok && value != nil {
				// The value was read from JSON.
				e.From, _ = asWritten(value)
			}
		}
		// The next edit applies to the result of this one.
		if changed, ok := EditDocument(document, *e); ok {
			document = changed
		}
		documents[e.Object] = document
	}
	return filled
}

// inserts reports whether an edit adds an element before another one of a list.
func inserts(e *api.Edit) bool {
	return e.Op == "add" && KindOf(e) == EditAlternatives
}

// storedDocument returns an object of the snapshot as plain JSON. For a workload it is the
// spec of its pods alone, at the returned path.
func storedDocument(snap *snapshot.Snapshot, object api.ObjectRef) (document any, path string) {
	namespace, name := object.Namespace, object.Name
	switch object.Kind {
	case api.KindClaim:
		return PlainJSON(findIn(snap.Claims, namespace, name)), ""
	case api.KindTemplate:
		return PlainJSON(findIn(snap.Templates, namespace, name)), ""
	case api.KindPod:
		return PlainJSON(findIn(snap.Pods, namespace, name)), ""
	case "DeviceClass":
		return PlainJSON(findIn(snap.Classes, namespace, name)), ""
	case "DeviceTaintRule":
		return PlainJSON(findIn(snap.TaintRules, namespace, name)), ""
	case api.KindPodGroup:
		return PlainJSON(findIn(snap.PodGroups, namespace, name)), ""
	case "Namespace":
		return PlainJSON(findIn(snap.Namespaces, namespace, name)), ""
	case "ResourceSlice":
		return PlainJSON(findIn(snap.Slices, namespace, name)), ""
	case api.KindNode:
		return PlainJSON(findIn(snap.Nodes, namespace, name)), ""
	}
	if w := storedWorkload(snap, object); w != nil {
		return PlainJSON(&w.Template.Spec), StoredWorkload(w).PodSpecPath()
	}
	for _, pod := range snap.Pods {
		if m, made := WorkloadOf(snap, pod); made && m.ObjectRef == object {
			return PlainJSON(m.PodSpec(pod)), m.PodSpecPath()
		}
	}
	return nil, ""
}

// findIn looks an object up; nil if there is none.
func findIn[T any, P apiObject[T]](list []P, namespace, name string) P {
	at := slices.IndexFunc(list, func(o P) bool { return o.GetNamespace() == namespace && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return list[at]
}

// PlainJSON returns the JSON form of an object, nil if there is none.
func PlainJSON[T any](from *T) any {
	if from == nil {
		return nil
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil
	}
	var document any
	if json.Unmarshal(text, &document) != nil {
		return nil
	}
	return document
}

// DocumentAt puts a document below a path of keys.
func DocumentAt(document any, path string) any {
	for _, key := range slices.Backward(PointerTokens(path)) {
		document = map[string]any{key: document}
	}
	return document
}

// JoinPointer reverses PointerTokens, without the first slash.
func JoinPointer(words []string) string {
	escaped := make([]string, 0, len(words))
	for _, word := range words {
		escaped = append(escaped, PointerToken(word))
	}
	return strings.Join(escaped, "/")
}

// ListIndex reads the index of an item of a list.
func ListIndex(word string, length int) (int, bool) {
	at, err := strconv.Atoi(word)
	return at, err == nil && at >= 0 && at < length
}

// LookUp follows the words of a JSON pointer.
func LookUp(document any, words []string) (any, bool) {
	for _, word := range words {
		switch at := document.(type) {
		case map[string]any:
			value, ok := at[word]
			if !ok {
				return nil, false
			}
			document = value
		case []any:
			i, ok := ListIndex(word, len(at))
			if !ok {
				return nil, false
			}
			document = at[i]
		default:
			return nil, false
		}
	}
	return document, true
}

// EditDocument makes an edit in plain JSON.
func EditDocument(document any, e api.Edit) (any, bool) {
	if e.Path == "" {
		return document, false
	}
	from, ok := document.(map[string]any)
	if !ok {
		return document, false
	}
	to, err := Edited(&from, []api.Edit{e}, "")
	if err != nil {
		return document, false
	}
	return *to, true
}
