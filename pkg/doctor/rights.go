// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// CodeRights is the code of the check of rights.
const CodeRights = "DRA1106"

// rightsOfHelper returns the verbs that the helper for drivers uses (resourceslice and
// kubeletplugin of k8s.io/dynamic-resource-allocation), by resource.
func rightsOfHelper() []Right {
	var list []Right
	for _, verb := range []string{"list", "watch", "create", "update", "delete"} {
		list = append(list, Right{Resource: "resourceslices", Verb: verb})
	}
	return append(list, Right{Resource: "resourceclaims", Verb: "get"})
}

// Rights lists the rights that the service accounts of drivers need, each once.
func Rights(c *facts.Cluster) []Right {
	var list []Right
	for _, w := range daemonSets(&cluster{cluster: c}) {
		for _, right := range rightsOfHelper() {
			right.Namespace, right.ServiceAccount = w.Namespace, serviceAccount(w)
			if !slices.Contains(list, right) {
				list = append(list, right)
			}
		}
	}
	return list
}

func serviceAccount(w *snapshot.Workload) string {
	return cmp.Or(w.Template.Spec.ServiceAccountName, "default")
}

func findMissingRights(_ context.Context, in *cluster) ([]api.Finding, error) {
	for _, review := range in.opts.Reviews {
		if review.Unknown != "" {
			return []api.Finding{{Severity: api.SeverityUnknown, Message: "not checked: " + review.Unknown}}, nil
		}
	}
	var found []api.Finding
	for _, w := range daemonSets(in) {
		var refused []Right
		for _, review := range in.opts.Reviews {
			if !review.Allowed && review.Namespace == w.Namespace && review.ServiceAccount == serviceAccount(w) {
				refused = append(refused, review.Right)
			}
		}
		if len(refused) > 0 {
			found = append(found, missingRights(in, w, refused))
		}
	}
	return found, nil
}

func missingRights(in *cluster, w *snapshot.Workload, refused []Right) api.Finding {
	account := api.Ref("ServiceAccount", w.Namespace, serviceAccount(w))
	f := api.Finding{Objects: []api.ObjectRef{api.RefTo(w.Kind, w)}}
	var resources, texts, commands []string
	verbs := map[string][]string{}
	for _, right := range refused {
		if verbs[right.Resource] == nil {
			resources = append(resources, right.Resource)
		}
		verbs[right.Resource] = append(verbs[right.Resource], right.Verb)
	}
	role := "dra-driver-" + w.Name
	for _, resource := range resources {
		qualified := resource + "." + resourceapi.GroupName
		texts = append(texts, english.JoinAnd(verbs[resource])+" "+qualified)
		f.Evidence = append(f.Evidence, api.Evidence{
			Object: account, Path: qualified, Found: "may not " + strings.Join(verbs[resource], ", "), Required: strings.Join(verbs[resource], ", "),
		})
		named := shell.Quote(role + "-" + resource)
		commands = append(commands,
			fmt.Sprintf("kubectl create clusterrole %s --verb=%s --resource=%s", named, strings.Join(verbs[resource], ","), qualified),
			fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --serviceaccount=%s", named, named, shell.Quote(w.Namespace+":"+serviceAccount(w))))
	}
	f.Message = fmt.Sprintf("the service account %s of DaemonSet %s may not %s", serviceAccount(w), english.QualifiedName(w), english.JoinAnd(texts))
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "give the service account these rights", Commands: commands}
	names, _ := w.KubeletPlugin()
	if len(lifecycle.Publishing(in.cluster.Snapshot, names)) > 0 && !slices.Contains(resources, "resourceclaims") {
		f.Severity = api.SeverityWarning
		f.Message += "; what it has published is not kept up to date, unless another component does that"
	}
	return f
}
