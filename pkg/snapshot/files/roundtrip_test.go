// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// oddTexts returns texts that the API server stores where it takes any text, and that mean
// something else in YAML or in JSON, or are not allowed there.
func oddTexts() []string {
	texts := []string{
		"", " ", "\n", "\t", "\r", "\r\n", " a", "a ", "a\n", "\na", "a\n\n", "  a\n b", "---", "a\n---\nb", "...\n", "- a", "a: b", "a #b", "# a", "%YAML",
		"y", "no", "on", "null", "~", "<<", "=", "true", "1", "1.0", "1e3", "0x10", "0o7", "010", "1_000", "12:30:45", "2026-09-01", "+.inf", ".nan", "-0",
		"{", "[", "}", "]", ",", "\"", "'", "\\", "\\u0000", "&a", "*a", "!a", "|", ">", "@", "`", "?", "? a", ":", "-", "{{a}}", "<a&b>",
		"\x00", "\x01", "\x1b[31m", "\x7f", "\u0080", "\u0085", "a\u0085b", "\u009b", "\u00a0", "\u00ad", "\u2028", "\u2029", "\ufeff", "\ufffd", "\ufffe", "\uffff",
		"\U0001F600", "\U0001fffe", "\U0010ffff", "\U000e0001", "é", "日本", "a\u0085\u2028\n\x7f", strings.Repeat("long words ", 100), strings.Repeat("x", 2000),
	}
	for r := range rune(0x100) {
		texts = append(texts, fmt.Sprintf("a%cb", r))
	}
	return texts
}

// randomText puts odd texts together.
func randomText(random *rand.Rand, odd []string) string {
	var text strings.Builder
	for range 1 + random.IntN(4) {
		text.WriteString(odd[random.IntN(len(odd))])
	}
	return text.String()
}

// randomParameters makes a JSON object.
func randomParameters(random *rand.Rand, odd []string) []byte {
	numbers := []any{0, -1, 1 << 53, json.Number("9223372036854775807"), json.Number("18446744073709551615"), json.Number("1e30"), 0.1, 1e-9, json.Number("1.0"), true, nil}
	var value func(depth int) any
	value = func(depth int) any {
		switch random.IntN(5) {
		case 0:
			return numbers[random.IntN(len(numbers))]
		case 1:
			if depth > 0 {
				list := []any{}
				for range random.IntN(3) {
					list = append(list, value(depth-1))
				}
				return list
			}
		case 2:
			if depth > 0 {
				object := map[string]any{}
				for range random.IntN(3) {
					object[randomText(random, odd)] = value(depth - 1)
				}
				return object
			}
		}
		return randomText(random, odd)
	}
	encoded, err := json.Marshal(map[string]any{randomText(random, odd): value(4), "b": value(2)})
	if err != nil {
		panic(err)
	}
	return encoded
}

// storedCluster returns a text wherever the API server stores any text.
func storedCluster(text func() string, parameters func() []byte) *snapshot.Snapshot {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "ml", Annotations: map[string]string{"example.com/a": text(), "example.com/b": text()}}
	}
	clusterMeta := func(name string) metav1.ObjectMeta {
		m := meta(name)
		m.Namespace = ""
		return m
	}
	opaque := func() *resourceapi.OpaqueDeviceConfiguration {
		return &resourceapi.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: parameters()}}
	}
	config := resourceapi.DeviceConfiguration{Opaque: opaque()}
	model := text()
	if characters := []rune(model); len(characters) > resourceapi.DeviceAttributeMaxValueLength {
		model = string(characters[:resourceapi.DeviceAttributeMaxValueLength])
	}
	s := &snapshot.Snapshot{
		Release: snapshot.Release{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{"DRADeviceTaints": {Enabled: true, Source: snapshot.GateFromMetrics}}},
		Gaps:    []snapshot.Gap{{Resource: snapshot.ResourceMetrics, Reason: text()}, {Resource: snapshot.ResourceClaims, Reason: text(), LeftOut: true}},
		Nodes: []*corev1.Node{{
			ObjectMeta: clusterMeta("node-1"),
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: text()}}},
		}},
		Namespaces: []*corev1.Namespace{{ObjectMeta: clusterMeta("ml")}},
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: clusterMeta("gpu.example.com"), Spec: resourceapi.DeviceClassSpec{
			Config:    []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: config}},
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: text()}}},
		}}},
		Slices: []*resourceapi.ResourceSlice{{ObjectMeta: clusterMeta("slice-1"), Spec: resourceapi.ResourceSliceSpec{
			Driver: "gpu.example.com", Pool: resourceapi.ResourcePool{Name: "node-1", ResourceSliceCount: 1}, NodeName: new("node-1"),
			Devices: []resourceapi.Device{{Name: "gpu-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &model}}}},
		}}},
		Claims: []*resourceapi.ResourceClaim{{
			ObjectMeta: meta("claim"),
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
				Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: "gpu.example.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
				}}},
				Config: []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: config}},
			}},
			Status: resourceapi.ResourceClaimStatus{Devices: []resourceapi.AllocatedDeviceStatus{{
				Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-0", Data: &runtime.RawExtension{Raw: parameters()},
				Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Message: text()}},
			}}},
		}},
		Pods: []*corev1.Pod{{ObjectMeta: meta("train-0"), Status: corev1.PodStatus{
			Message: text(), ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: text()}}}},
		}}},
		Events: []*corev1.Event{{ObjectMeta: meta("train-0.1"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "train-0"}, Message: text()}},
	}
	for _, claim := range s.Claims {
		kinds.Strip(claim)
	}
	for _, class := range s.Classes {
		kinds.Strip(class)
	}
	return s
}

// packed makes a .tar.gz of one file.
func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	if err := archive.WriteHeader(&tar.Header{Name: "snapshot.yaml", Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// requireSaves saves in every form that can be read, and loads again.
func requireSaves(t *testing.T, want *snapshot.Snapshot) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"a.json", "b.yaml", "c.json.gz", "d.yaml.gz"} {
		path := filepath.Join(dir, name)
		if err := files.Save(t.Context(), want, path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
		if name == "b.yaml" {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(dir, "e.tar.gz")
			if err := os.WriteFile(archive, packed(t, content), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, archive)
		}
	}
	for _, path := range append(paths, dir) {
		got, err := files.Load(t.Context(), []string{path}, files.Options{})
		if err != nil {
			t.Fatalf("load %s: %v", filepath.Base(path), err)
		}
		testsnapshot.Equal(t, want, got)
	}
}

// TestStoredTextsSurvive saves and loads whatever the API server may store.
func TestStoredTextsSurvive(t *testing.T) {
	odd := oddTexts()
	for i := 0; i < len(odd); {
		next := func() string { i++; return odd[(i-1)%len(odd)] }
		parameters := func() []byte {
			encoded, err := json.Marshal(map[string]any{next(): next(), next(): []any{next()}})
			if err != nil {
				t.Fatal(err)
			}
			return encoded
		}
		requireSaves(t, storedCluster(next, parameters))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		requireSaves(t, storedCluster(
			func() string { return randomText(random, odd) },
			func() []byte { return randomParameters(random, odd) },
		))
	}
}

// TestMarshalYAML reads the output with kubectl's parser.
func TestMarshalYAML(t *testing.T) {
	for _, text := range append(oddTexts(), "a\u202eb", "xhidden: a\u202eb\x01hidden:202E", "two\nlines\u2066\n", "\u200b", "a\u00a0b \u2028\ufeff", `\x01hidden:\u`+"\u200f") {
		encoded, err := files.MarshalYAML(map[string]string{"text": text, "key " + text: "a"})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got map[string]string
		if err := yaml.Unmarshal(encoded, &got); err != nil || got["text"] != text || got["key "+text] != "a" {
			t.Errorf("%q: written as\n%s\nread as %q: %v", text, encoded, got, err)
		}
		if bytes.ContainsFunc(encoded, func(r rune) bool { return r != '\n' && r <= 0xffff && !unicode.IsPrint(r) }) {
			t.Errorf("%q: a character that a terminal obeys or does not show is left in %q", text, encoded)
		}
	}
}

// TestImpossibleReferencesSurvive saves what the API server stores without a
// look at the form of the names.
func TestImpossibleReferencesSurvive(t *testing.T) {
	s := storedCluster(func() string { return "a" }, func() []byte { return []byte("{}") })
	const impossible = "x$(touch pwned)"
	claim, event := s.Claims[0], s.Events[0]
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: impossible, Name: "a", UID: "b"}, {APIVersion: "v1", Kind: "Pod", Name: "train-0", UID: "c"}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: impossible, Name: "a", UID: "d"}}
	event.InvolvedObject.Kind = impossible
	kinds.Strip(claim)
	kinds.Strip(event)
	if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].Kind != "Pod" || claim.Status.ReservedFor[0].Resource != "unknown" || claim.Status.ReservedFor[0].UID != "d" {
		t.Errorf("got %v, %v", claim.OwnerReferences, claim.Status.ReservedFor)
	}
	requireSaves(t, s)
}
