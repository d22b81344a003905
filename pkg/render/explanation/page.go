// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import "github.com/kubectl-dra/kubectl-dra/pkg/render"

// page is the page of an explanation.
type page struct {
	*render.Page
	// oneNode is set if all devices are on one node, so that their names tell more than its
	// name.
	oneNode bool
}

// newPage makes an empty page.
func newPage(opts render.Options) *page { return &page{Page: render.NewPage(opts)} }
