// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// QuotaRaise is a ResourceQuota that refuses an object, with the limit that would be
// enough.
type QuotaRaise struct {
	Namespace, Name string
	// Hard is the limit that would be enough; empty if the quota allows enough by now.
	Hard corev1.ResourceList
	// Some is set if it allows some, Used if some of that is used.
	Some, Used bool
}

// NewQuotaRaise returns how to raise a quota so that the needed amount of a resource fits.
func NewQuotaRaise(namespace, name string, of corev1.ResourceName, used, hard, need resource.Quantity) *QuotaRaise {
	sum := used.DeepCopy()
	sum.Add(need)
	q := &QuotaRaise{Namespace: namespace, Name: name, Hard: corev1.ResourceList{of: sum}}
	q.note(used, hard)
	return q
}

func (q *QuotaRaise) note(used, hard resource.Quantity) {
	q.Some, q.Used = q.Some || !hard.IsZero(), q.Used || !used.IsZero()
}

// Steps returns the next steps. Asking for less, or deleting something, does not help where
// the quota allows none, or where nothing is counted.
func (q *QuotaRaise) Steps() []api.NextStep {
	if len(q.Hard) == 0 {
		return []api.NextStep{{Actor: api.ActorUser, Text: fmt.Sprintf("ResourceQuota %s allows it by now: have the controller try again at once", q.Name)}}
	}
	var steps []api.NextStep
	user := api.NextStep{Actor: api.ActorUser, Commands: []string{"kubectl describe " + shell.KubectlObjects("resourcequota", q.Namespace, q.Name)}}
	switch {
	case q.Used:
		user.Text = fmt.Sprintf("ask for less, or delete what ResourceQuota %s counts in namespace %s and nobody needs", q.Name, q.Namespace)
		steps = append(steps, user)
	case q.Some:
		user.Text = fmt.Sprintf("ask for no more than ResourceQuota %s allows", q.Name)
		steps = append(steps, user)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"hard": q.Hard}})
	if err != nil {
		return steps
	}
	return append(steps, api.NextStep{
		Actor: api.ActorAdmin, Text: fmt.Sprintf("raise ResourceQuota %s in namespace %s", q.Name, q.Namespace),
		Commands: []string{merge("resourcequota", q.Namespace, q.Name, string(patch))},
	})
}
