// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// withOldValues returns edits with what each field had before it, if the
// snapshot has it. Whole objects and statuses are left out: they are large, and
// nobody puts them back.
func withOldValues(snap *snapshot.Snapshot, edits []api.Edit) []api.Edit {
	filled := slices.Clone(edits)
	documents := map[string]any{}
	for i := range filled {
		e := &filled[i]
		prefix := ""
		document, known := documents[e.Object]
		if !known {
			document, prefix = storedDocument(snap, e.Object)
			if prefix != "" {
				document = documentAt(document, prefix)
			}
		}
		if !strings.HasPrefix(e.Path, "/status") && e.Path != "" && e.Op != "test" {
			if value, ok := lookUp(document, pointerTokens(e.Path)); ok && value != nil {
				// It was read from JSON.
				e.From, _ = asWritten(value)
			}
		}
		// The next edit is about what this one leaves.
		if changed, ok := editedDocument(document, *e); ok {
			document = changed
		}
		documents[e.Object] = document
	}
	return filled
}

// storedDocument is an object of the snapshot as plain JSON. Of a workload it is
// the spec of its pods alone, which is at the path that is returned.
func storedDocument(snap *snapshot.Snapshot, object string) (document any, path string) {
	kind, namespace, name := parseObject(object)
	switch kind {
	case KindClaim:
		return plainJSON(findIn(snap.Claims, namespace, name)), ""
	case KindTemplate:
		return plainJSON(findIn(snap.Templates, namespace, name)), ""
	case KindPod:
		return plainJSON(findIn(snap.Pods, namespace, name)), ""
	case "DeviceClass":
		return plainJSON(findIn(snap.Classes, namespace, name)), ""
	case "DeviceTaintRule":
		return plainJSON(findIn(snap.TaintRules, namespace, name)), ""
	case "Namespace":
		return plainJSON(findIn(snap.Namespaces, namespace, name)), ""
	case "ResourceSlice":
		return plainJSON(findIn(snap.Slices, namespace, name)), ""
	case KindNode:
		return plainJSON(findIn(snap.Nodes, namespace, name)), ""
	}
	for _, w := range snap.Workloads {
		if w.Kind == kind && w.Namespace == namespace && w.Name == name {
			return plainJSON(&w.Template.Spec), workloadMaker(w).podSpecPath()
		}
	}
	for _, pod := range snap.Pods {
		if m, made := makerOf(snap, pod); made && m.object() == object {
			return plainJSON(m.podSpec(pod)), m.podSpecPath()
		}
	}
	return nil, ""
}

// findIn looks an object up; nil if it is not there.
func findIn[T any, P apiObject[T]](list []P, namespace, name string) P {
	at := slices.IndexFunc(list, func(o P) bool { return o.GetNamespace() == namespace && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return list[at]
}

// plainJSON is what an object looks like in JSON, nil if there is none.
func plainJSON[T any](from *T) any {
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

// documentAt puts a document below a path of keys.
func documentAt(document any, path string) any {
	for _, key := range slices.Backward(pointerTokens(path)) {
		document = map[string]any{key: document}
	}
	return document
}

// pointerTokens takes a JSON pointer (RFC 6901) apart.
func pointerTokens(pointer string) []string {
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, word := range words {
		words[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
	}
	return words
}

// joinPointer is the reverse, without the first slash.
func joinPointer(words []string) string {
	escaped := make([]string, 0, len(words))
	for _, word := range words {
		escaped = append(escaped, pointerToken(word))
	}
	return strings.Join(escaped, "/")
}

// index reads the index of an item of a list.
func index(word string, length int) (int, bool) {
	at, err := strconv.Atoi(word)
	return at, err == nil && at >= 0 && at < length
}

// lookUp follows the words of a JSON pointer.
func lookUp(document any, words []string) (any, bool) {
	for _, word := range words {
		switch at := document.(type) {
		case map[string]any:
			value, ok := at[word]
			if !ok {
				return nil, false
			}
			document = value
		case []any:
			i, ok := index(word, len(at))
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

// editedDocument makes an edit in plain JSON.
func editedDocument(document any, e api.Edit) (any, bool) {
	if e.Path == "" {
		return document, false
	}
	from, ok := document.(map[string]any)
	if !ok {
		return document, false
	}
	to, err := edited(&from, []api.Edit{e}, "")
	if err != nil {
		return document, false
	}
	return *to, true
}
