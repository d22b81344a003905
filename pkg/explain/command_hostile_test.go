// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// TestHostileCommands writes each command that can be printed with hostile words in
// every position, and gives it to a shell with a kubectl that records its
// arguments: nothing else runs, and the words arrive as they were.
func TestHostileCommands(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	for n, word := range []string{"x$(touch pwned)", "x`touch pwned`", "x;touch pwned", "x' ;touch pwned; '", "x\" ;touch pwned; \"", "x\ntouch pwned\n", "x|touch pwned", "x>pwned", "--all", "*", "~", "x\\", "$HOME", "!!", "x&"} {
		// A slash separates the parts of an object's name.
		snap, edits, pods := hostile(strings.ReplaceAll(word, "/", ""))
		for object, of := range edits {
			t.Run(fmt.Sprintf("%d/%s", n, object), func(t *testing.T) {
				dir := t.TempDir()
				stub := "#!/bin/sh\nprintf '%s\\0' \"$@\" >> " + filepath.Join(dir, "arguments") + "\n[ -t 0 ] || cat >/dev/null\n"
				if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(stub), 0o755); err != nil {
					t.Fatal(err)
				}
				commands := whatif.Commands(snap, of, pods)
				cmd := exec.CommandContext(t.Context(), bash)
				cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
				cmd.Dir = t.TempDir()
				cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/nowhere"}
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v: %s\n%s", err, out, strings.Join(commands, "\n"))
				}
				if files, err := os.ReadDir(cmd.Dir); err != nil || len(files) > 0 {
					t.Errorf("something else ran: %v %v\n%s", files, err, strings.Join(commands, "\n"))
				}
				if len(commands) == 0 {
					return
				}
				text, err := os.ReadFile(filepath.Join(dir, "arguments"))
				if err != nil {
					t.Fatal(err)
				}
				arguments := strings.Split(string(text), "\x00")
				if !slices.ContainsFunc(arguments, func(a string) bool {
					return a == word || strings.HasSuffix(a, "/"+word) || strings.HasPrefix(a, word+"=")
				}) {
					t.Errorf("%q is no argument: %q", word, arguments)
				}
			})
		}
	}
}

// hostile returns edits of each kind of object, with a word as each name, kind, label and
// value.
func hostile(word string) (*snapshot.Snapshot, map[string][]api.Edit, []api.RemedyPod) {
	value, _ := json.Marshal(word)
	made := func(name, apiVersion, kind string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: word, Name: word + name, UID: "u", Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: word, UID: "o", Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{
				Containers:     []corev1.Container{{Name: word}},
				NodeSelector:   map[string]string{word: word},
				ResourceClaims: []corev1.PodResourceClaim{{Name: word, ResourceClaimTemplateName: &word}},
			},
			Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: word, ResourceClaimName: &word}}},
		}
	}
	bare := made("-bare", "v1", "Pod", nil)
	bare.OwnerReferences = nil
	trainer := &snapshot.Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: word + "/" + word, Kind: word}, ObjectMeta: metav1.ObjectMeta{Namespace: word, Name: word},
		Template: corev1.PodTemplateSpec{Spec: bare.Spec},
	}
	snap := &snapshot.Snapshot{
		Claims:    []*resourceapi.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: word, Name: word}}},
		Workloads: []*snapshot.Workload{trainer},
		Pods: []*corev1.Pod{
			bare, made("-job", "batch/v1", "Job", map[string]string{"controller-uid": word}), made("-set", "apps/v1", "StatefulSet", nil),
			made("-custom", word+"/"+word, word, nil), made("-deployed", "apps/v1", "Deployment", nil),
		},
	}
	var pods []api.RemedyPod
	for _, pod := range snap.Pods {
		pods = append(pods, api.RemedyPod{Namespace: pod.Namespace, Name: pod.Name, Changed: true})
	}
	edit := func(kind, namespace, op, path string, from []byte) api.Edit {
		e := api.Edit{Object: api.Ref(kind, namespace, word), Op: op, Path: path, From: from}
		if op != "remove" {
			e.Value = value
		}
		return e
	}
	selected := "/spec/template/spec/nodeSelector/" + whatif.PointerToken(word)
	taint, _ := json.Marshal(corev1.Taint{Key: word, Effect: "NoSchedule"})
	edits := map[string][]api.Edit{
		"template":   {edit(api.KindTemplate, word, "replace", "/spec/spec/devices/requests/0/exactly/deviceClassName", nil)},
		"claim":      {edit(api.KindClaim, word, "replace", "/spec/devices/requests/0/exactly/deviceClassName", nil)},
		"pod":        {edit(api.KindPod, word, "replace", "/spec/nodeSelector", nil)},
		"no pod":     {edit(api.KindPod, word, "remove", "", nil)},
		"class":      {edit("DeviceClass", "", "replace", "/spec/selectors/0/cel/expression", nil)},
		"no rule":    {edit("DeviceTaintRule", "", "remove", "", nil)},
		"label":      {{Object: api.Ref("Namespace", "", word), Op: "add", Path: "/metadata/labels/" + whatif.PointerToken(word), Value: value}},
		"cordon":     {edit(api.KindNode, "", "remove", "/spec/unschedulable", nil)},
		"node taint": {edit(api.KindNode, "", "remove", "/spec/taints/0", taint)},
		"deployment": {edit("Deployment", word, "remove", selected, nil)},
		"job":        {edit("Job", word, "remove", selected, nil)},
		"stateful":   {edit("StatefulSet", word, "remove", selected, nil)},
		"custom":     {edit(word, word, "remove", selected, nil)},
	}
	return snap, edits, pods
}
