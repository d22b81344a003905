// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

const groupName = resourceapi.GroupName

// object is one object of a text.
type object struct {
	text *files.Text
	// items are the numbers of the items that it is in, in Lists of the text.
	items []int
	json  []byte

	apiVersion, kind, namespace, name string
	// ignored are the codes in its annotation.
	ignored []string
	// decoded is the object in the newest version; nil if it is of a kind that has
	// nothing to do with devices, or cannot be decoded, which err says.
	decoded metav1.Object
	err     error
	// unstorable is why no API server stores the decoded object.
	unstorable error
	// broken has the paths that checks say the API server rejects.
	broken []string
}

// reject notes that a field is said to be rejected, so that it is said once.
func (o *object) reject(path string) { o.broken = append(o.broken, path) }

// rejected reports whether a check has said that the API server rejects a field, or
// something in it or around it.
func (o *object) rejected(path string) bool {
	return slices.ContainsFunc(o.broken, func(known string) bool {
		return path == known || strings.HasPrefix(path, known+".") || strings.HasPrefix(path, known+"[") ||
			strings.HasPrefix(known, path+".") || strings.HasPrefix(known, path+"[")
	})
}

// ref returns the reference to the object.
func (o *object) ref() api.ObjectRef {
	namespace := o.namespace
	if clusterScoped(o.kind) {
		namespace = ""
	}
	return api.Ref(o.kind, namespace, o.name).In(schema.FromAPIVersionAndKind(o.apiVersion, o.kind).Group)
}

// same reports whether two objects of one name are equal but for comments, the order of
// fields, defaults and their version.
func (o *object) same(other *object) bool {
	plain := func(o *object) (value map[string]any) {
		if json.Unmarshal(o.json, &value) != nil {
			return nil
		}
		if metadata, ok := value["metadata"].(map[string]any); ok {
			metadata["namespace"] = o.namespace
		}
		return value
	}
	if reflect.DeepEqual(plain(o), plain(other)) {
		return true
	}
	if _, cut := o.decoded.(*snapshot.Workload); cut || o.err != nil || other.err != nil {
		return false
	}
	return equality.Semantic.DeepEqual(o.decoded, other.decoded)
}

func clusterScoped(kind string) bool {
	switch kind {
	case "DeviceClass", "ResourceSlice", "DeviceTaintRule", api.KindNode, "Namespace", "ResourceClass":
		return true
	default:
		return false
	}
}

// node returns where the object stands in the text; nil if that is not known.
func (o *object) node() *yaml.Node {
	node := o.text.Root()
	for _, i := range o.items {
		if node == nil {
			return nil
		}
		if _, node = childOf(node, "items"); node == nil || node.Kind != yaml.SequenceNode || i >= len(node.Content) {
			return nil
		}
		node = node.Content[i]
	}
	return node
}

// maxListDepth bounds Lists in Lists.
const maxListDepth = 8

// header has the fields of every object.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   objectMeta        `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

type objectMeta struct {
	Name         string            `json:"name"`
	GenerateName string            `json:"generateName"`
	Namespace    string            `json:"namespace"`
	Annotations  map[string]string `json:"annotations"`
}

// objectsOf finds the objects of a text. Objects without a namespace get the
// given one.
func objectsOf(text *files.Text, namespace string, decoder *kinds.Decoder) []*object {
	r := &objectReader{text: text, namespace: namespace, decoder: decoder}
	if text.Found && text.Err == nil && !bytes.HasPrefix(bytes.TrimSpace(text.JSON), []byte("{")) {
		// Other programs have their data in YAML, too.
		return []*object{{text: text}}
	}
	if text.Err != nil {
		return []*object{{text: text, err: text.Err}}
	}
	r.add(text.JSON, nil, metav1.TypeMeta{})
	return r.found
}

type objectReader struct {
	text      *files.Text
	namespace string
	decoder   *kinds.Decoder
	found     []*object
}

// add adds an object, or the items of a List, which may lack a kind.
func (r *objectReader) add(data []byte, items []int, in metav1.TypeMeta) {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		// An unknown object may use these fields for something else.
		var kind metav1.TypeMeta
		if json.Unmarshal(data, &kind) != nil || kind.Kind == "" {
			r.found = append(r.found, &object{text: r.text, items: items, err: notAnObject(data)})
			return
		}
		h = header{APIVersion: kind.APIVersion, Kind: kind.Kind}
	}
	h.APIVersion, h.Kind = cmp.Or(h.APIVersion, in.APIVersion), cmp.Or(h.Kind, in.Kind)
	if of, list := strings.CutSuffix(h.Kind, "List"); list && len(items) < maxListDepth {
		item := metav1.TypeMeta{}
		if of != "" {
			item = metav1.TypeMeta{APIVersion: h.APIVersion, Kind: of}
		}
		for i, data := range h.Items {
			r.add(data, append(slices.Clone(items), i), item)
		}
		return
	}
	o := &object{
		text: r.text, items: items, json: data, apiVersion: h.APIVersion, kind: h.Kind,
		namespace: cmp.Or(h.Metadata.Namespace, r.namespace), name: h.Metadata.Name,
		ignored: checks.Ignored(h.Metadata.Annotations[checks.IgnoreAnnotation]),
	}
	if o.name == "" && h.Metadata.GenerateName != "" {
		o.name = h.Metadata.GenerateName + "xxxxx"
	}
	if h.Kind == "" && h.APIVersion == "" {
		// Values of a chart, or anything else that is no object.
		r.found = append(r.found, o)
		return
	}
	if isPatch(data) {
		r.found = append(r.found, &object{text: r.text})
		return
	}
	o.decoded, o.err = r.decoder.Decode(data, h.APIVersion, h.Kind)
	if o.decoded != nil && !clusterScoped(o.kind) {
		o.decoded.SetNamespace(o.namespace)
	}
	if o.decoded != nil && o.decoded.GetName() == "" {
		o.decoded.SetName(o.name)
	}
	if o.decoded != nil && o.err == nil {
		o.unstorable = kinds.CheckStored(o.decoded, o.apiVersion, o.kind)
	}
	r.found = append(r.found, o)
}

// isPatch reports whether an object is a strategic merge patch of another one, by the
// directives that only patches have.
func isPatch(data []byte) bool {
	return bytes.Contains(data, []byte(`"$patch":`)) || bytes.Contains(data, []byte(`"$setElementOrder/`)) || bytes.Contains(data, []byte(`"$deleteFromPrimitiveList/`))
}

// notAnObject returns why a value cannot be an object of Kubernetes.
func notAnObject(data []byte) error {
	if value := kinds.TypeInWords(data); !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return fmt.Errorf("expected a Kubernetes object, found %s", value)
	}
	_, err := kinds.DecodeAs[header](data)
	return cmp.Or(err, errors.New("expected a Kubernetes object, found one without apiVersion and kind"))
}
