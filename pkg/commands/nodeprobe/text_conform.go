// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeConformance draws the test of a driver: a line for each requirement, and its source,
// if it is broken or with -o wide.
func writeConformance(w io.Writer, c *driver.Conformance, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, fmt.Sprintf("Driver %s: %s", c.Driver, checkCounts(c.Checks())))
	if c.Endpoint != "" {
		p.Text(2, render.Faint, "endpoint "+c.Endpoint)
	}
	p.Blank()
	names := make([]string, len(c.Results))
	for i := range c.Results {
		names[i] = strings.TrimPrefix(c.Results[i].Name, "conform/")
	}
	width := render.Widest(render.Unlimited, names...)
	for i := range c.Results {
		r := &c.Results[i]
		p.Row(0, nodeSign(r.State), render.Cell{Text: names[i], Width: width}, render.Cell{Text: r.Message})
		if r.State == node.Problem || opts.Wide {
			p.Row(markWidth+render.ColumnGap+width+render.ColumnGap, render.Cell{Text: "required by " + r.Source, Mark: render.Faint})
		}
	}
	return p.write(w)
}
