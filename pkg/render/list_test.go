// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// exampleTables returns tables of the example cluster by name.
func exampleTables(t *testing.T) map[string]*metav1.Table {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.New(snap)
	v := inventory.New(c)
	pools, err := v.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	classes, err := v.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := v.NodeList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(forecast.AddPlaceable(t.Context(), c, classes), forecast.AddPlaceableOn(t.Context(), c, nodes)); err != nil {
		t.Fatal(err)
	}
	return map[string]*metav1.Table{
		"nodes": tables.Nodes(refs(nodes)), "usage": tables.Usage(refs(v.UsageBy(inventory.UsageOf{By: "owner"})), "owner"),
		"pools": tables.Pools(refs(pools)), "classes": tables.Classes(refs(classes)), "claims": tables.Claims(refs(v.Claims()), true),
		"devices": tables.Devices(refs(v.Devices()), nil), "slices": tables.Slices(refs(v.Slices())), "taints": tables.Taints(refs(v.Taints()), snap.Now()),
	}
}

func refs[T any](list []T) []*T {
	all := make([]*T, 0, len(list))
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// TestList draws lists for terminals: each line fits, and the text is in the golden files.
func TestList(t *testing.T) {
	for name, table := range exampleTables(t) {
		for _, width := range []int{80, 200} {
			t.Run(fmt.Sprint(name, "-", width), func(t *testing.T) {
				out := drawList(t, table, 12, width)
				for line := range strings.Lines(out) {
					if got := ansi.StringWidth(strings.TrimSuffix(line, "\n")); got > width {
						t.Errorf("a line takes %d of %d columns: %s", got, width, line)
					}
				}
				golden.Assert(t, out, fmt.Sprintf("list-%s-%d.golden", name, width))
			})
		}
	}
}

func drawList(t *testing.T, table *metav1.Table, limit, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := render.List(&out, table, render.ListOptions{Limit: limit, Hint: "--limit 0 shows all"}, render.Options{Width: width}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestListHidesNothing looks for each cell of a table on a narrow terminal: on the line of
// its row, below it, or below the table.
func TestListHidesNothing(t *testing.T) {
	for name, table := range exampleTables(t) {
		text := " " + strings.Join(strings.FieldsFunc(drawList(t, table, 0, 80), func(r rune) bool { return r == ' ' || r == '\n' }), " ") + " "
		for i, column := range table.ColumnDefinitions {
			for _, row := range table.Rows {
				if cell := fmt.Sprint(row.Cells[i]); column.Priority == 0 && cell != "-" && !strings.Contains(text, cell) {
					t.Errorf("%s lacks %s %s", name, column.Name, cell)
				}
			}
		}
	}
}

// TestListOfOne expects all values of the only item, for which no column has other values.
func TestListOfOne(t *testing.T) {
	pool := &api.Pool{Driver: "gpu.example.com", Name: "node-1", State: api.PoolStateUsable, Slices: 1, Declared: 1, Devices: api.DeviceCounts{Total: 8, Free: 8}}
	out := drawList(t, tables.Pools([]*api.Pool{pool}), 0, 200)
	if !strings.Contains(out, "gpu.example.com  node-1  Usable  1/1         8     8") || strings.Contains(out, "In all") {
		t.Errorf("got\n%s", out)
	}
}

// TestListFitsHeight counts the rows that a terminal has no room for, and shows the first ones or
// the last ones.
func TestListFitsHeight(t *testing.T) {
	for name, table := range exampleTables(t) {
		for len(table.Rows) < 60 {
			table.Rows = append(table.Rows, table.Rows...)
		}
		for _, height := range []int{24, 30} {
			for _, tail := range []bool{false, true} {
				var out bytes.Buffer
				if err := render.List(&out, table, render.ListOptions{Last: tail, Hint: "--limit 0 shows all"}, render.Options{Width: 160, Height: height}); err != nil {
					t.Fatal(err)
				}
				// The total and the prompt come below.
				if lines := strings.Count(out.String(), "\n"); lines < height-8 || lines > height-2 {
					t.Errorf("%s: %d lines on a terminal of %d:\n%s", name, lines, height, out.String())
				}
				if !strings.Contains(out.String(), " more (--limit 0 shows all)\n") {
					t.Errorf("%s does not say that rows are left out:\n%s", name, out.String())
				}
			}
		}
	}
}

// TestListOfTheLast shows the end of a list that was sorted.
func TestListOfTheLast(t *testing.T) {
	var pools []*api.Pool
	for i := range 60 {
		pools = append(pools, &api.Pool{Driver: "gpu.example.com", Name: fmt.Sprintf("node-%02d", i), State: api.PoolStateUsable})
	}
	var out bytes.Buffer
	if err := render.List(&out, tables.Pools(pools), render.ListOptions{Last: true, Hint: "all"}, render.Options{Width: 160, Height: 12}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "POOL") || !strings.HasSuffix(lines[1], " more (all)") || strings.Contains(out.String(), "node-00") || !strings.Contains(out.String(), "node-58\nnode-59") {
		t.Errorf("got\n%s", out.String())
	}
}
