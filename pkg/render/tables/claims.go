// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Claims lists ResourceClaims, with their namespaces if asked for. What the flags
// mean, and the network data, is in [ClaimDetails]. Most clusters have no
// ComputeDomains, and then there is no column for them.
func Claims(items []*api.Claim, namespaces bool) *metav1.Table {
	columns := ClaimColumns(namespaces)
	if !slices.ContainsFunc(items, func(c *api.Claim) bool { return len(c.ComputeDomains) > 0 }) {
		columns = slices.DeleteFunc(columns, func(c render.Column[api.Claim]) bool { return c.Name == domainColumn })
	}
	return render.NewTable(items, columns)
}

const domainColumn = "Compute domain"

// ClaimColumns returns the columns of [Claims].
func ClaimColumns(namespaces bool) []render.Column[api.Claim] {
	columns := []render.Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "State", Cell: func(c *api.Claim) string { return string(c.State) }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Devices", Cell: deviceTexts},
		{Name: "Node", Cell: func(c *api.Claim) string { return c.Scope }},
		{Name: "Pods", Cell: func(c *api.Claim) string { return render.SomeOf(c.Pods, c.PodCount) }},
		{Name: "Flags", Cell: flagTexts},
		{Name: "Alignment", Wide: true, Cell: alignmentCell},
		{Name: domainColumn, Wide: true, Cell: domainCell},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
	}
	if namespaces {
		columns = append([]render.Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return columns
}

// PendingClaims lists claims without devices and why they have none.
func PendingClaims(items []*api.Claim, namespaces bool) *metav1.Table {
	columns := []render.Column[api.Claim]{
		{Name: "Name", Key: true, Cell: func(c *api.Claim) string { return c.Name }},
		{Name: "Stage", Cell: func(c *api.Claim) string { return c.Stage }},
		{Name: "Requests", Cell: requestTexts},
		{Name: "Pods", Cell: func(c *api.Claim) string { return render.SomeOf(c.Pods, c.PodCount) }},
		ages(func(c *api.Claim) (int64, *metav1.Time) { return c.AgeSeconds, c.Created }),
		{Name: "Why", Cell: func(c *api.Claim) string { return render.Words(c.Code) }},
		{Name: "Outlook", Cell: func(c *api.Claim) string { return render.OutlookWords(c.Outlook) }},
		{Name: "Reason", Cell: func(c *api.Claim) string { return c.Reason }},
	}
	if namespaces {
		columns = append([]render.Column[api.Claim]{{Name: "Namespace", Key: true, Cell: func(c *api.Claim) string { return c.Namespace }}}, columns...)
	}
	return render.NewTable(items, columns)
}

// PodColumns returns the columns of a list of pods with claims.
func PodColumns() []render.Column[inventory.Pod] {
	return []render.Column[inventory.Pod]{
		{Name: "Namespace", Cell: func(p *inventory.Pod) string { return p.Namespace }},
		{Name: "Name", Cell: func(p *inventory.Pod) string { return p.Name }},
		{Name: "Phase", Cell: func(p *inventory.Pod) string { return string(p.Status.Phase) }},
		{Name: "Node", Cell: func(p *inventory.Pod) string { return p.Spec.NodeName }},
		{Name: "Claims", Cell: func(p *inventory.Pod) string { return render.SomeOf(p.Claims, len(p.Claims)) }},
		ages(func(p *inventory.Pod) (int64, *metav1.Time) { return p.AgeSeconds, &p.CreationTimestamp }),
	}
}
