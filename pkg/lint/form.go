// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// codeUnreadable is the code of texts that cannot be read.
const codeUnreadable = "DRA2001"

func formChecks() []Check {
	return []Check{
		{
			Code: codeUnreadable, Title: "text that is no manifest", Severity: api.SeverityError,
			About:  "A document is not YAML, has a field twice, or has a value of another type than the field. The API server, or kubectl before it, rejects it. The other checks cannot look at it, so that this one is always made. A template in a directory is information: it has to be rendered first.",
			Advice: "Correct the document at the line that is named.",
			find:   unreadable,
		},
		{
			Code: "DRA2002", Title: "kind or version that is gone", Severity: api.SeverityError,
			About:  "The kind is one of the classic form of Dynamic Resource Allocation, which Kubernetes 1.32 removed, or the version of resource.k8s.io is one that no supported Kubernetes serves.",
			Advice: "Write a DeviceClass in place of a ResourceClass, spec.devices of claims in place of parameters, and resource.k8s.io/v1 as the version.",
			find:   gone,
		},
		{
			Code: "DRA2003", Title: "request without exactly", Severity: api.SeverityError,
			About:  "What a request asks for stands directly in the request, as in resource.k8s.io/v1beta1. Since v1beta2 it stands under exactly. The API server drops the fields and then rejects the request, since it asks for nothing.",
			Advice: "Move all fields of the request but its name under exactly. --fix does.",
			find:   flatRequests,
		},
		{
			Code: "DRA2004", Title: "exactly in a version without it", Severity: api.SeverityError,
			About:  "A request of resource.k8s.io/v1beta1 has the field exactly, which came with v1beta2. The API server drops it.",
			Advice: "Write resource.k8s.io/v1 as the version. --fix does.",
			find:   nestedRequests,
		},
		{
			Code: "DRA2005", Title: "claim of a pod under source", Severity: api.SeverityError,
			About:  "resourceClaims of a pod has the names under source, as before Kubernetes 1.31. The API server drops it and then rejects the pod, since it names no claim.",
			Advice: "Move resourceClaimName or resourceClaimTemplateName out of source. --fix does.",
			find:   sources,
		},
		{
			Code: "DRA2006", Title: "unknown field", Severity: api.SeverityError,
			About:  "The version of the object has no such field. kubectl rejects the manifest, and without --validate=strict the API server drops the field: what it asks for does not happen.",
			Advice: "Correct the name, or move the field to where it belongs.",
			find:   unknownFields,
		},
		{
			Code: "DRA2007", Title: "old version", Severity: api.SeverityInfo,
			About:  "resource.k8s.io/v1beta1 and v1beta2 are deprecated since Kubernetes 1.35 and 1.36, and need not be served. resource.k8s.io/v1 is there since 1.34. Where the release of the cluster, or of --kubernetes-version, has removed the version of an object, which is v1beta1 from 1.38 on, and v1beta2 and v1alpha3 from 1.39 on, it is an Error.",
			Advice: "Write resource.k8s.io/v1, in the form that it has. --fix does.",
			find:   oldVersions,
		},
		{
			Code: "DRA2008", Title: "object that is there twice", Severity: api.SeverityError,
			About:  "Two documents of one directory are of the same kind, namespace and name, and differ. The one that is applied last replaces the other, or is rejected where the object cannot change. In two files it is information: they may be alternatives, such as an example and its variant. Equal documents are no finding.",
			Advice: "Rename or remove one of them.",
			find:   duplicates,
		},
		{
			Code: "DRA2009", Title: "value that the API server rejects", Severity: api.SeverityError,
			About:  "A field has a value that the API server does not store: no apiVersion, or one of another kind, a name of another form, a count below one, a list that is too long, two choices where one is needed, a reference to a request that does not exist.",
			Advice: "Correct the field that is named.",
			find:   rejectedValues,
		},
	}
}

func unreadable(in *input) []finding {
	var found []finding
	for _, o := range in.objects {
		var at *kinds.FieldError
		switch {
		case o.err == nil || goneVersion(o):
			continue
		case o.text.Err != nil:
			message := o.err.Error()
			var input *files.InputError
			if errors.As(o.err, &input) {
				message = input.Err.Error()
			}
			f := finding{object: o, at: position{max(o.text.ErrLine, o.text.LinesBefore+1), 1}, message: message, advice: readable(o.text)}
			if o.text.Found && isTemplate(o.text) {
				// A directory may have the templates of a chart beside manifests.
				f.severity, f.message = api.SeverityInfo, "a template, which was not checked"
			}
			found = append(found, f)
		case errors.As(o.err, &at):
			o.reject(at.Path)
			found = append(found, finding{object: o, path: at.Path, message: at.Path + ": " + at.Err.Error(), advice: quoted(o.locate(at.Path).node)})
		default:
			found = append(found, finding{object: o, message: o.err.Error()})
		}
	}
	return found
}

// readable says how to make a manifest of a text that is none.
func readable(text *files.Text) string {
	switch {
	case slices.Contains([]string{".md", ".markdown"}, strings.ToLower(filepath.Ext(text.File))):
		return "manifests in a document are not looked at: put them into files of their own"
	case isTemplate(text):
		return "a template is no manifest yet: render it first, such as with helm template CHART | kubectl dra lint -"
	default:
		return ""
	}
}

func isTemplate(text *files.Text) bool { return bytes.Contains(text.Data, []byte("{{")) }

// quoted says that a value is a word which YAML takes for a boolean, if it is; kubectl
// reads YAML 1.1.
func quoted(node *yaml.Node) string {
	words := []string{"y", "yes", "on", "n", "no", "off"}
	if node == nil || node.Kind != yaml.ScalarNode || node.Style != 0 || !slices.Contains(words, strings.ToLower(node.Value)) {
		return ""
	}
	return fmt.Sprintf("write %q: without quotes it is a boolean", node.Value)
}

// successors returns the kinds in place of the classic ones.
func successors() map[string]string {
	return map[string]string{
		"ResourceClass":           "DeviceClass replaced it in Kubernetes 1.31",
		"ResourceClassParameters": "spec.config of DeviceClass replaced it in Kubernetes 1.31",
		"ResourceClaimParameters": "spec.devices of ResourceClaim replaced it in Kubernetes 1.31",
		"PodSchedulingContext":    "the scheduler allocates without it since Kubernetes 1.32",
	}
}

// goneVersion reports whether an object is of a kind or version of resource.k8s.io
// that is not served any more.
func goneVersion(o *object) bool {
	version, resource := strings.CutPrefix(o.apiVersion, groupName+"/")
	if !resource {
		return false
	}
	if _, classic := successors()[o.kind]; classic {
		return true
	}
	switch o.kind {
	case "ResourceSlice", "DeviceClass", api.KindClaim, api.KindTemplate:
		return !slices.Contains([]string{"v1", "v1beta1", "v1beta2"}, version)
	case "DeviceTaintRule":
		return !slices.Contains([]string{"v1", "v1beta2", "v1alpha3"}, version)
	default:
		return false
	}
}

func gone(in *input) []finding {
	var found []finding
	for _, o := range in.objects {
		if !goneVersion(o) {
			continue
		}
		f := finding{object: o, path: "apiVersion", message: fmt.Sprintf("%s of %s is not served by any supported Kubernetes", o.kind, o.apiVersion)}
		f.found, f.required = o.apiVersion, groupName+"/v1"
		if successor := successors()[o.kind]; successor != "" {
			f.path = "kind"
			f.message = fmt.Sprintf("%s of %s is gone", o.kind, o.apiVersion)
			f.found, f.required = o.kind, ""
			f.advice = successor
		} else {
			f.advice = "write it for " + groupName + "/v1"
		}
		o.reject(f.path)
		found = append(found, f)
	}
	return found
}

// rawRequests calls for each request of a claim or template as it is written.
func rawRequests(o *object, each func(path string, request map[string]json.RawMessage)) {
	type spec struct {
		Devices struct {
			Requests []map[string]json.RawMessage `json:"requests"`
		} `json:"devices"`
	}
	path, requests := "spec.devices.requests", []map[string]json.RawMessage(nil)
	switch o.kind {
	case api.KindClaim:
		var claim struct {
			Spec spec `json:"spec"`
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(o.json, &claim) != nil {
			return
		}
		requests = claim.Spec.Devices.Requests
	case api.KindTemplate:
		var template struct {
			Spec struct {
				Spec spec `json:"spec"`
			} `json:"spec"`
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(o.json, &template) != nil {
			return
		}
		path, requests = "spec.spec.devices.requests", template.Spec.Spec.Devices.Requests
	}
	for i, request := range requests {
		each(indexed(path, i), request)
	}
}

// ofExactly returns the fields that a request has under exactly.
func ofExactly() []string {
	return []string{"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes"}
}

// flat lists the fields of a request that belong under exactly.
func flat(request map[string]json.RawMessage) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(request)), func(name string) bool { return !slices.Contains(ofExactly(), name) })
}

// nested returns a request with these fields under exactly.
func nested(request map[string]json.RawMessage, fields []string) map[string]any {
	out, exactly := map[string]any{}, map[string]any{}
	for name, value := range request {
		if slices.Contains(fields, name) {
			exactly[name] = value
		} else {
			out[name] = value
		}
	}
	out["exactly"] = exactly
	return out
}

func flatRequests(in *input) []finding {
	return in.each(func() func(*object) []finding { return flatRequestsOf })
}

func flatRequestsOf(o *object) (found []finding) {
	if o.err != nil || o.apiVersion != groupName+"/v1" && o.apiVersion != groupName+"/v1beta2" {
		return nil
	}
	rawRequests(o, func(path string, request map[string]json.RawMessage) {
		fields := flat(request)
		if len(fields) == 0 {
			return
		}
		f := finding{
			object: o, path: path, at: o.keyOf(path + "." + fields[0]),
			message:  fmt.Sprintf("in %s, this belongs under exactly: %s", o.apiVersion, strings.Join(fields, ", ")),
			required: "exactly", found: strings.Join(fields, ", "), advice: "move it under exactly",
		}
		if request["exactly"] == nil && request["firstAvailable"] == nil {
			f.fix = []edit{{"replace", path, nested(request, fields)}}
		}
		o.reject(path)
		found = append(found, f)
	})
	return found
}

func nestedRequests(in *input) []finding {
	var found []finding
	for _, o := range in.objects {
		if o.err != nil || o.apiVersion != groupName+"/v1beta1" {
			continue
		}
		plain := true
		var paths []string
		rawRequests(o, func(path string, request map[string]json.RawMessage) {
			if request["exactly"] != nil {
				paths = append(paths, path)
			}
			plain = plain && len(flat(request)) == 0
		})
		for i, path := range paths {
			f := finding{
				object: o, path: path, at: o.keyOf(path + ".exactly"), message: "requests of " + o.apiVersion + " have no field exactly",
				found: o.apiVersion, required: groupName + "/v1", advice: "write " + groupName + "/v1 as the version",
			}
			if i == 0 && plain {
				f.fix = []edit{{"replace", "apiVersion", groupName + "/v1"}}
			}
			o.reject(path)
			found = append(found, f)
		}
	}
	return found
}

func sources(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		if !bytes.Contains(p.json, []byte(`"source"`)) {
			continue
		}
		for i := range p.spec.ResourceClaims {
			path := indexed(p.path+".resourceClaims", i)
			node := p.locate(path + ".source").node
			if node == nil {
				continue
			}
			f := finding{
				object: p.object, path: path, at: p.keyOf(path + ".source"), message: "the claim stands under source, which is gone since Kubernetes 1.31",
				advice: "move what is in source out of it", found: "source",
			}
			var entry map[string]any
			if whole := p.locate(path).node; whole != nil && whole.Decode(&entry) == nil {
				source, _ := entry["source"].(map[string]any)
				delete(entry, "source")
				for name, value := range source {
					entry[name] = value
				}
				if len(source) == 1 {
					f.fix = []edit{{"replace", path, entry}}
				}
			}
			p.reject(path)
			found = append(found, f)
		}
	}
	return found
}

func unknownFields(in *input) []finding {
	return in.each(func() func(*object) []finding {
		schemas := kinds.Schemas{}
		return func(o *object) (found []finding) {
			if o.decoded == nil || o.err != nil {
				return nil
			}
			for unknown := range schemas.Unknown(o.json, o.apiVersion, o.kind, o.rejected) {
				o.reject(unknown.Path)
				found = append(found, finding{object: o, path: unknown.Path, at: o.keyOf(unknown.Path), message: unknown.Path + ": " + unknown.Err.Error()})
			}
			return found
		}
	})
}

func oldVersions(in *input) []finding {
	var found []finding
	for _, o := range in.objects {
		removed, release := removedIn(o), in.release()
		if o.decoded == nil || o.err != nil || removed == 0 || removed > release && !hasUpgrade(o) {
			continue
		}
		f := finding{object: o, path: "apiVersion", found: o.apiVersion, advice: "write it for a version that the release serves"}
		if strings.HasPrefix(o.apiVersion, groupName+"/") {
			f.required, f.advice = groupName+"/v1", "write "+groupName+"/v1"
		}
		if f.message = fmt.Sprintf("%s is deprecated, and Kubernetes 1.%d removes it: %s/v1 is there since Kubernetes 1.34", o.apiVersion, removed, groupName); removed <= release {
			f.severity, f.message = api.SeverityError, fmt.Sprintf("Kubernetes 1.%d does not serve %s of %s: 1.%d removed it", release, o.kind, o.apiVersion, removed)
		}
		if hasUpgrade(o) && len(o.broken) == 0 {
			f.fix = upgrade(o)
		}
		found = append(found, f)
	}
	return found
}

// hasUpgrade reports whether [upgrade] knows how to write an object for v1.
func hasUpgrade(o *object) bool {
	version, resource := strings.CutPrefix(o.apiVersion, groupName+"/")
	return resource && o.decoded != nil && (version == "v1beta1" || version == "v1beta2") && o.kind != "DeviceTaintRule"
}

// removedIn returns the minor release that no longer serves the version of an object, by
// what k8s.io/api says of it; 0 if it does not say.
func removedIn(o *object) int {
	version, err := schema.ParseGroupVersion(o.apiVersion)
	if err != nil {
		return 0
	}
	typed, err := scheme.Scheme.New(version.WithKind(o.kind))
	if err != nil {
		return 0
	}
	lifecycle, ok := typed.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ok {
		return 0
	}
	_, minor := lifecycle.APILifecycleRemoved()
	return minor
}

// release returns the minor release that manifests are for: the newest known one, unless
// another one is named.
func (in *input) release() int {
	if minor, known := snapshot.MinorVersion(in.snap.ServerVersion); known {
		return max(minor, snapshot.OldestMinor)
	}
	return snapshot.NewestMinor
}

// upgrade returns what it takes to write an object of a beta version for v1.
func upgrade(o *object) []edit {
	edits := []edit{{"replace", "apiVersion", groupName + "/v1"}}
	if o.apiVersion != groupName+"/v1beta1" {
		return edits
	}
	rawRequests(o, func(path string, request map[string]json.RawMessage) {
		if fields := flat(request); len(fields) > 0 {
			edits = append(edits, edit{"replace", path, nested(request, fields)})
		}
	})
	if o.kind != "ResourceSlice" {
		return edits
	}
	var slice struct {
		Spec struct {
			Devices []map[string]json.RawMessage `json:"devices"`
		} `json:"spec"`
	}
	if json.Unmarshal(o.json, &slice) != nil {
		return nil
	}
	for i, device := range slice.Spec.Devices {
		var basic map[string]json.RawMessage
		if json.Unmarshal(device["basic"], &basic) != nil || basic == nil {
			continue
		}
		delete(device, "basic")
		maps.Copy(device, basic)
		edits = append(edits, edit{"replace", indexed("spec.devices", i), device})
	}
	return edits
}

func duplicates(in *input) []finding {
	var found []finding
	type place struct {
		directory string
		of        api.ObjectRef
	}
	first := map[place]*object{}
	for _, o := range in.objects {
		if o.name == "" || o.decoded == nil || strings.HasSuffix(o.name, "xxxxx") {
			continue
		}
		// Another directory may have patches for the object, or its other variants.
		at := place{filepath.Dir(o.text.File), o.ref()}
		before := first[at]
		if before == nil {
			first[at] = o
			continue
		}
		if o.same(before) {
			continue
		}
		f := finding{
			object: o, path: "metadata.name", found: o.name, message: fmt.Sprintf("%s is also in %s:%d, and differs", o.ref(), before.text.File, before.locate("metadata.name").line),
			advice: "rename or remove one of them",
		}
		if o.text.File != before.text.File {
			f.severity = api.SeverityInfo
			f.advice = "rename or remove one of them, or apply them one at a time"
		}
		found = append(found, f)
	}
	return found
}

func rejectedValues(in *input) []finding {
	return in.each(func() func(*object) []finding { return rejectedValuesOf })
}

func rejectedValuesOf(o *object) (found []finding) {
	if expected := kinds.ExpectedVersion(o.apiVersion, o.kind); o.err == nil && o.kind != "" && expected != "" && !o.rejected("apiVersion") {
		f := finding{object: o, path: "apiVersion", found: cmp.Or(o.apiVersion, "none"), required: expected}
		f.message = fmt.Sprintf("apiVersion: expected %s, found %s", expected, f.found)
		f.advice = "write apiVersion: " + expected
		o.reject(f.path)
		found = append(found, f)
	}
	if o.decoded == nil || o.err != nil {
		return found
	}
	problems := kinds.Rejected(o.decoded, o.apiVersion)
	var stored *kinds.FieldError
	if errors.As(o.unstorable, &stored) {
		problems = append(problems, stored)
	}
	for _, problem := range problems {
		if o.rejected(problem.Path) {
			continue
		}
		// More may be wrong with the object around it, and has been said.
		if problem.Path != "" {
			o.reject(problem.Path)
		}
		found = append(found, finding{object: o, path: problem.Path, message: o.locate(problem.Path).path + ": " + problem.Err.Error()})
	}
	if o.name == "" {
		found = append(found, finding{object: o, path: "metadata.name", message: "expected a name, found none"})
	}
	return found
}
