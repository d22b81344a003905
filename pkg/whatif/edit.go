// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Uncordon returns the edits that let pods onto a node again, without the taint of a cordoned
// node.
func Uncordon(node *corev1.Node) []api.Edit {
	ref := api.Ref(api.KindNode, "", node.Name)
	edits := []api.Edit{NewEdit(ref, "replace", "/spec/unschedulable", false)}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Key == corev1.TaintNodeUnschedulable {
			edits = append(edits, NewEdit(ref, "remove", fmt.Sprintf("/spec/taints/%d", i), nil))
		}
	}
	return edits
}

// PointerToken escapes a word of a JSON pointer (RFC 6901).
func PointerToken(word string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(word)
}

// patchOf writes the edits of one object as a JSON patch, without the prefix of their
// paths.
func patchOf(edits []api.Edit, prefix string) ([]byte, error) {
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}
	operations := make([]operation, 0, len(edits))
	for _, e := range edits {
		path, ok := strings.CutPrefix(e.Path, prefix)
		if !ok {
			return nil, fmt.Errorf("edit %s: %s is not below %s", e.Object, e.Path, prefix)
		}
		operations = append(operations, operation{e.Op, path, e.Value})
	}
	return asWritten(operations)
}

// Edited returns a copy of an object with edits made. The argument is not modified.
func Edited[T any](from *T, edits []api.Edit, prefix string) (*T, error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	text, err := patchOf(edits, prefix)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	to := new(T)
	return to, json.Unmarshal(after, to)
}

// Amend returns a snapshot with edits made to its objects, and with feature gates turned
// on. The argument is not modified.
func Amend(snap *snapshot.Snapshot, edits []api.Edit, gates ...string) (*snapshot.Snapshot, error) {
	amended := *snap
	if len(gates) > 0 {
		amended.Gates = maps.Clone(snap.Gates)
		if amended.Gates == nil {
			amended.Gates = map[string]snapshot.Gate{}
		}
		for _, gate := range gates {
			amended.Gates[gate] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
		}
	}
	for len(edits) > 0 {
		object := edits[0].Object
		var of []api.Edit
		of, edits = split(edits, func(e api.Edit) bool { return e.Object == object })
		if err := amendObject(&amended, object, of); err != nil {
			return nil, fmt.Errorf("edit %s: %w", object, err)
		}
	}
	return &amended, nil
}

// split divides edits into matching ones and the others, in their order.
func split(edits []api.Edit, match func(api.Edit) bool) (matching, others []api.Edit) {
	for _, e := range edits {
		if match(e) {
			matching = append(matching, e)
		} else {
			others = append(others, e)
		}
	}
	return matching, others
}

func amendObject(snap *snapshot.Snapshot, object api.ObjectRef, edits []api.Edit) error {
	namespace, name := object.Namespace, object.Name
	switch object.Kind {
	case api.KindClaim:
		return amendIn(&snap.Claims, namespace, name, edits)
	case api.KindTemplate:
		return amendIn(&snap.Templates, namespace, name, edits)
	case api.KindPod:
		return amendIn(&snap.Pods, namespace, name, edits)
	case "DeviceClass":
		return amendIn(&snap.Classes, namespace, name, edits)
	case "DeviceTaintRule":
		return amendIn(&snap.TaintRules, namespace, name, edits)
	case api.KindPodGroup:
		return amendIn(&snap.PodGroups, namespace, name, edits)
	case "Namespace":
		return amendIn(&snap.Namespaces, namespace, name, edits)
	case "ResourceSlice":
		return amendIn(&snap.Slices, namespace, name, edits)
	case api.KindNode:
		return amendIn(&snap.Nodes, namespace, name, edits)
	default:
		return amendWorkload(snap, object, edits)
	}
}

// errNoObject means that the snapshot lacks the object of an edit.
var errNoObject = errors.New("there is no such object")

// apiObject is a pointer to an object of the API.
type apiObject[T any] interface {
	*T
	metav1.Object
}

func amendIn[T any, P apiObject[T]](list *[]P, namespace, name string, edits []api.Edit) error {
	at := slices.IndexFunc(*list, func(o P) bool { return o.GetNamespace() == namespace && o.GetName() == name })
	if at < 0 {
		return errNoObject
	}
	*list = slices.Clone(*list)
	if last := edits[len(edits)-1]; last.Op == "remove" && last.Path == "" {
		*list = slices.Delete(*list, at, at+1)
		return nil
	}
	to, err := Edited((*T)((*list)[at]), edits, "")
	if err != nil {
		return err
	}
	(*list)[at] = to
	return nil
}

// amendWorkload edits the relevant parts of a workload: the spec of its pods, and their
// number.
func amendWorkload(snap *snapshot.Snapshot, object api.ObjectRef, edits []api.Edit) error {
	for _, e := range edits {
		if ReplacesPods(e) {
			if err := replace(snap, object, e); err != nil {
				return err
			}
		}
	}
	at := slices.Index(snap.Workloads, storedWorkload(snap, object))
	if at < 0 {
		// A live snapshot has no workloads but its target. The pods are edited, too.
		return nil
	}
	w := *snap.Workloads[at]
	counts, edits := split(edits, Scales)
	if err := scale(&w, counts); err != nil {
		return err
	}
	spec, err := Edited(&w.Template.Spec, edits, StoredWorkload(&w).PodSpecPath())
	if err != nil {
		return err
	}
	w.Template.Spec = *spec
	snap.Workloads = slices.Clone(snap.Workloads)
	snap.Workloads[at] = &w
	return nil
}

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
