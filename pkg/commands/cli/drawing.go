// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
)

// Formats of drawings.
const (
	FormatSVG     = "svg"
	FormatDOT     = "dot"
	FormatMermaid = "mermaid"
)

// drawer prints objects as drawings.
type drawer struct{ format string }

// PrintObj draws an object. It fails with a usage error for objects without a drawing.
func (d drawer) PrintObj(object runtime.Object, w io.Writer) error {
	switch o := object.(type) {
	case *api.Explanation:
		return drawing.Explanation(o).Write(w)
	case *api.ExplanationList:
		list := make([]*api.Explanation, 0, len(o.Items))
		for i := range o.Items {
			list = append(list, &o.Items[i])
		}
		return drawing.Explanations(list).Write(w)
	case *api.History:
		return drawing.History(o).Write(w)
	case *api.Plan:
		return drawing.Plan(o).Write(w)
	case *api.Impact:
		return drawing.Impact(o).Write(w)
	case *api.Fit:
		return drawing.Fit(o).Write(w)
	case *api.FitShapes:
		return drawing.FitShapes(o).Write(w)
	case *api.List:
		return d.trees(o, w)
	default:
		return Usagef("Choose another format.", "-o %s: there is no drawing of this answer", d.format)
	}
}

func (d drawer) trees(list *api.List, w io.Writer) error {
	roots := make([]api.Branch, 0, len(list.Items))
	for _, item := range list.Items {
		if root, ok := item.Object.(*api.Branch); ok {
			roots = append(roots, *root)
		}
	}
	switch d.format {
	case FormatDOT:
		return drawing.DOT(w, roots)
	case FormatMermaid:
		return drawing.Mermaid(w, roots)
	default:
		return drawing.Tree("What belongs to what", roots).Write(w)
	}
}
