// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's model of dashboards that is tested.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// panel is a panel of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		RefID, Expr string
		Datasource  datasource
	}
}

// datasource names a data source of Grafana.
type datasource struct{ Type, UID string }

// readDashboard returns the dashboard.
func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(configDir, "grafana", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	board := &dashboard{}
	if err := json.Unmarshal(text, board); err != nil {
		t.Fatal(err)
	}
	return board
}

// TestDashboard checks that Grafana can draw the dashboard: each panel is in a place of its own,
// has queries and a description, and asks the data source that the user chose.
func TestDashboard(t *testing.T) {
	board := readDashboard(t)
	if board.UID == "" || board.Title == "" || len(board.Panels) == 0 {
		t.Fatalf("uid %q, title %q, %d panels", board.UID, board.Title, len(board.Panels))
	}
	variables := map[string]string{}
	for _, variable := range board.Templating.List {
		variables[variable.Name] = variable.Type
	}
	if variables["datasource"] != "datasource" {
		t.Errorf("no variable for the data source: %v", variables)
	}
	const width = 24
	taken, ids, titles := map[[2]int]string{}, map[int]bool{}, map[string]bool{}
	for _, p := range board.Panels {
		if p.ID == 0 || ids[p.ID] || titles[p.Title] {
			t.Errorf("panel %q: its id %d or its title is that of another", p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d has no title, no description or no query", p.ID)
		}
		pos := p.GridPos
		if pos.W <= 0 || pos.H <= 0 || pos.X < 0 || pos.X+pos.W > width {
			t.Errorf("panel %q is outside of the grid: %+v", p.Title, pos)
		}
		for x := pos.X; x < pos.X+pos.W; x++ {
			for y := pos.Y; y < pos.Y+pos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		chosen := datasource{Type: "prometheus", UID: "${datasource}"}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Datasource != chosen || p.Datasource != chosen || target.RefID == "" || refs[target.RefID] {
				t.Errorf("panel %q, query %q: data source %v, want %v", p.Title, target.RefID, target.Datasource, chosen)
			}
			refs[target.RefID] = true
			for name := range variables {
				if name != "datasource" && strings.Contains(target.Expr, name+"=\"$"+name+"\"") {
					t.Errorf("panel %q: variable %s may have several values, and is compared with =", p.Title, name)
				}
			}
		}
	}
}
