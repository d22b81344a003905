// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
)

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageScript string

// textWidth is the width of text that is set as it is, in characters; mostQueued is how many pods of
// the queue a page lists.
const (
	textWidth  = 100
	mostQueued = 200
)

// style returns the rules of the page and of its drawings.
func style() string { return drawing.Style + pageCSS }

// page has what page.templ writes.
type page struct {
	*Content
	// Live is true for a page that is served.
	Live bool
	// Script is the program of the page.
	Script string
	// connects has the directive of the policy for connections of the script.
	connects string

	causes  []causeArticle
	answers []*row
}

// Write writes the page as a file of its own.
func (c *Content) Write(w io.Writer) error {
	return (&page{Content: c, Script: pageScript}).write(w)
}

// write writes the page, with everything escaped that a browser obeys or does not show.
func (p *page) write(w io.Writer) error {
	var err error
	if p.causes, err = p.causeList(); err != nil {
		return err
	}
	if p.answers, err = p.rows(); err != nil {
		return err
	}
	return writeHTML(w, whole(p))
}

func writeHTML(w io.Writer, c templ.Component) error {
	var b strings.Builder
	if err := c.Render(context.Background(), &b); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if _, err := io.WriteString(w, render.EscapeLines(b.String())); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// pods lists the pods with claims, for the form of a page that is served.
func (p *page) pods() []string {
	var names []string
	for i := range p.Queue.Pods {
		names = append(names, p.Queue.Pods[i].Namespace+"/"+p.Queue.Pods[i].Name)
	}
	return names
}

// policy returns the content security policy: nothing is loaded, and only this style and this script
// are used.
func (p *page) policy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(style()) + "; script-src " + hash(p.Script) + "; base-uri 'none'; form-action 'none'" + p.connects
}

// title names the page.
func (p *page) title() string { return "Devices of " + p.Status.Source }

// taken says when the cluster was like that, which release it is, and which pods are shown.
func (p *page) taken() string {
	text := p.Snap.Now().UTC().Format("2006-01-02 15:04:05 MST")
	if p.Snap.ServerVersion != "" {
		text += ", Kubernetes " + p.Snap.ServerVersion
	}
	if p.Status.Namespace != "" {
		text += ", pods of namespace " + p.Status.Namespace
	}
	return text
}

// headline says in one line how pods are.
func (p *page) headline() string { return render.StatusTotal(p.Status) }

// section is a part of the page.
type section struct {
	ID, Name string
	Count    int
}

// sections lists the parts of the page.
func (p *page) sections() []section {
	list := []section{{"status", "Status", 0}, {"capacity", "Capacity", 0}, {"causes", "Causes", len(p.Causes)}, {"waiting", "Waiting", len(p.Waiting) + p.More}}
	for _, s := range []struct {
		section
		there bool
	}{
		{section{"queue", "Queue", len(p.Queue.Pods)}, len(p.Queue.Pods) > 0},
		{section{"nodes", "Nodes", 0}, true},
		{section{"partitions", "Partitions", 0}, len(p.Pools) > 0},
		{section{"usage", "Usage", 0}, len(p.Usage) > 0},
		{section{"history", "History", 0}, len(p.Histories) > 0},
	} {
		if s.there {
			list = append(list, s.section)
		}
	}
	return list
}

// capacityRow is a class in the table of capacity.
type capacityRow struct {
	Name, Text string
	Bar        string
	Idle       []string
}

// capacity lists the classes, or the drivers where there are none.
func (p *page) capacity() []capacityRow {
	rows := make([]capacityRow, 0, len(p.Status.Capacity))
	for i := range p.Status.Capacity {
		c := &p.Status.Capacity[i]
		rows = append(rows, capacityRow{
			Name: c.Class + c.Driver, Text: render.CapacityText(c), Idle: render.IdleTexts(c),
			Bar: drawing.Bar(c.Devices.Allocated+c.Devices.Shared, c.Devices.Total, render.Plain),
		})
	}
	return rows
}

// causeArticle has causes that read the same.
type causeArticle struct {
	*render.CauseLine
	Class    string
	Messages []string
	Text     string
}

// causeList lists the causes.
func (p *page) causeList() ([]causeArticle, error) {
	list := make([]causeArticle, 0, len(p.Causes))
	for i := range p.Causes {
		line := &p.Causes[i]
		a := causeArticle{CauseLine: line, Class: "unsure"}
		if line.Causes[0].Severity == api.SeverityError {
			a.Class = "bad"
		}
		for _, c := range line.Causes {
			a.Messages = append(a.Messages, c.Message)
		}
		text, err := asText(line.Write)
		if err != nil {
			return nil, err
		}
		a.Text = text
		list = append(list, a)
	}
	return list, nil
}

// noCauses says that there are none, as far as that is known.
func (p *page) noCauses() string {
	if len(p.Status.NotChecked) > 0 {
		return "No cause was found; not everything could be checked."
	}
	return "Nothing is wrong."
}

// asText returns what a renderer writes for a page of text.
func asText(write func(w io.Writer, opts render.Options) error) (string, error) {
	var b strings.Builder
	err := write(&b, render.Options{Width: textWidth, Commands: true})
	return strings.TrimRight(b.String(), "\n"), err
}

// figure is a drawing with a name.
type figure struct{ Name, Text, SVG string }

func figureOf(d *drawing.Drawing) figure {
	return figure{Name: d.Title(), SVG: d.SVG()}
}

// fix is something that helps.
type fix struct{ Who, Text, Where, Code string }

// row is the answer for objects that do not run.
type row struct {
	ID, Name, Class, Verdict, Summary, Facts, Text string
	Causes                                         []int
	Drawings                                       []figure
	Fixes                                          []fix
}

// rows lists the answers.
func (p *page) rows() ([]*row, error) {
	_, numbers := cause.Same(p.Status.Causes)
	rows := make([]*row, 0, len(p.Waiting))
	for i, r := range p.Waiting {
		a, err := rowOf(r.First)
		if err != nil {
			return nil, err
		}
		a.ID, a.Name, a.Summary = "waiting-"+strconv.Itoa(i+1), r.Namespace+"/"+r.Name, r.Summary
		var facts []string
		if r.AgeSeconds > 0 {
			facts = append(facts, "for "+duration.HumanDuration(time.Duration(r.AgeSeconds)*time.Second))
		}
		if r.Stage != "" {
			facts = append(facts, "stage "+string(r.Stage))
		}
		a.Facts = strings.Join(facts, ", ")
		for _, c := range r.Causes {
			if n := numbers[c]; !slices.Contains(a.Causes, n) {
				a.Causes = append(a.Causes, n)
			}
		}
		rows = append(rows, a)
	}
	return rows, nil
}

// rowOf shows one explanation.
func rowOf(e *api.Explanation) (*row, error) {
	text, err := asText(func(w io.Writer, opts render.Options) error { return explanation.Full(w, e, opts) })
	if err != nil {
		return nil, err
	}
	a := &row{Verdict: english.Sentence(render.Words(e.Verdict)), Class: classOf(render.VerdictMark(e.Verdict)), Summary: e.Summary, Text: text}
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			a.Drawings = append(a.Drawings, figureOf(drawing.Funnel(&e.Claims[i].Requests[j])))
		}
	}
	for _, f := range explanation.FixesOf(e) {
		code := f.Diff
		if code == "" {
			code = strings.Join(f.Commands, "\n")
		}
		if strings.HasPrefix(f.Text, f.Who+" ") {
			// "wait until" says it.
			f.Who = ""
		}
		a.Fixes = append(a.Fixes, fix{f.Who, f.Text, f.Where, strings.TrimRight(code, "\n")})
	}
	return a, nil
}

func classOf(m render.Mark) string {
	switch m {
	case render.Good:
		return "good"
	case render.Bad:
		return "bad"
	case render.Unsure:
		return "unsure"
	default:
		return ""
	}
}

// moreRows counts the answers that are left out.
func (p *page) moreRows() string {
	return english.Count(p.More, "more answer") + ": kubectl dra why -A"
}

// queued is a pod in the queue.
type queued struct{ Position, Priority, Pod, Outcome, Node, Class string }

// queueRows lists the queue in its order.
func (p *page) queueRows() []queued {
	var rows []queued
	for i := range p.Queue.Pods[:min(len(p.Queue.Pods), mostQueued)] {
		pod := &p.Queue.Pods[i]
		q := queued{Position: "-", Priority: strconv.Itoa(int(pod.Priority)), Pod: pod.Namespace + "/" + pod.Name, Outcome: render.Words(pod.Outcome), Node: pod.Node, Class: classOf(render.OutcomeMark(pod.Outcome))}
		if pod.Position > 0 {
			q.Position = strconv.Itoa(pod.Position)
		}
		rows = append(rows, q)
	}
	return rows
}

// queueTotal counts the pods of the queue by their outcome, and says what could change the order.
func (p *page) queueTotal() string {
	return render.PlanTotal(p.Queue) + ". Not modeled, and could change order or nodes: " + p.Queue.NotModeled + "."
}

// moreQueue counts the pods of the queue that are left out.
func (p *page) moreQueue() string {
	if n := len(p.Queue.Pods) - mostQueued; n > 0 {
		return english.Count(n, "more pod") + ": kubectl dra plan -o wide"
	}
	return ""
}

// nodeRow is a node with devices.
type nodeRow struct {
	Name, State, Class, Say, Look string
	Key, Keys, ByClass            string
	Used, Total, Free             int
	Pods, Trouble                 int
}

// nodeRows lists the nodes with devices.
func (p *page) nodeRows() []nodeRow {
	var rows []nodeRow
	for i := range p.Nodes {
		n := &p.Nodes[i]
		c := &n.Devices
		if c.Total+c.Gone == 0 {
			continue
		}
		r := nodeRow{Name: n.Name, State: n.State, Used: c.Allocated + c.Shared, Total: c.Total, Free: c.Free, Pods: n.Pods}
		var look []string
		if n.Cordoned {
			look = append(look, "cordoned")
		}
		look = append(look, n.Taints...)
		for j := range n.Problems {
			look = append(look, n.Problems[j].Message)
		}
		r.Look, r.Trouble = strings.Join(look, "; "), len(look)
		r.Say = fmt.Sprintf("%s: %d of %d in use", n.Name, r.Used, r.Total)
		r.Class = "u" + strconv.Itoa(level(r.Used, r.Total))
		if r.Trouble > 0 {
			r.Class += " t"
			r.Say += "; " + r.Look
		}
		if n.State != "" && n.State != "Ready" || c.Total == c.Unusable {
			r.Class += " x"
			r.Say += "; " + n.State
			r.Trouble++
		}
		keys := make([]string, 0, len(p.Keys))
		for _, key := range p.Keys {
			keys = append(keys, n.Labels[key])
		}
		if len(keys) > 0 {
			r.Key = cmp.Or(keys[0], "none")
		}
		classes := make([]string, 0, len(n.Classes))
		for j := range n.Classes {
			k := &n.Classes[j]
			classes = append(classes, fmt.Sprintf("%s %d/%d", k.Class, k.Devices.Allocated+k.Devices.Shared, k.Devices.Total))
		}
		r.Keys, r.ByClass = strings.Join(keys, "|"), strings.Join(classes, "|")
		rows = append(rows, r)
	}
	return rows
}

// nodeGroup is a part of the map.
type nodeGroup struct {
	Title string
	Rows  []*nodeRow
}

// groupsOf groups nodes by the first label that they can be grouped by. The script groups them
// by others, with the same titles.
func groupsOf(rows []nodeRow) []nodeGroup {
	by := map[string][]*nodeRow{}
	for i := range rows {
		by[rows[i].Key] = append(by[rows[i].Key], &rows[i])
	}
	groups := make([]nodeGroup, 0, len(by))
	for _, key := range slices.SortedFunc(maps.Keys(by), english.CompareNames) {
		g := nodeGroup{Rows: by[key]}
		used, total, trouble := 0, 0, 0
		for _, r := range g.Rows {
			used, total = used+r.Used, total+r.Total
			if r.Trouble > 0 {
				trouble++
			}
		}
		if key != "" {
			g.Title = fmt.Sprintf("%s: %s, %d of %d in use", key, english.Count(len(g.Rows), "node"), used, total)
			if trouble > 0 {
				g.Title += fmt.Sprintf(", %d with trouble", trouble)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// level returns the step of the color scale for a part of a whole, from 0 to 5.
func level(used, total int) int {
	switch {
	case used <= 0 || total <= 0:
		return 0
	case used >= total:
		return 5
	default:
		return min(4, 1+4*used/total)
	}
}

// nodesTotal counts the nodes.
func (p *page) nodesTotal() string {
	with := 0
	for i := range p.Nodes {
		if c := &p.Nodes[i].Devices; c.Total+c.Gone > 0 {
			with++
		}
	}
	text := fmt.Sprintf("%s with devices of their own", english.Count(with, "node"))
	if n := len(p.Nodes) - with; n > 0 {
		text += ", " + strconv.Itoa(n) + " without"
	}
	return text + "."
}

// classes lists the DeviceClasses.
func (p *page) classes() []string {
	var names []string
	for i := range p.Status.Capacity {
		if name := p.Status.Capacity[i].Class; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// poolDrawings draws the pools with partitions.
func (p *page) poolDrawings() []figure {
	var list []figure
	for i := range p.Pools {
		pool := &p.Pools[i]
		f := figureOf(drawing.Partitions(&pool.Pool, pool.Items))
		f.Name = "Pool " + pool.Driver + "/" + pool.Name
		var texts []string
		for _, part := range pool.Partitions {
			text := fmt.Sprintf("%s: %d of %d allocated", part.Type, part.Allocated, part.Devices)
			if part.MoreFit != nil {
				text += fmt.Sprintf(", %s fit", render.AtMost(*part.MoreFit, part.MoreFitIsUpperBound)+" more")
			}
			texts = append(texts, text)
		}
		f.Text = strings.Join(texts, "; ")
		list = append(list, f)
	}
	return list
}

// partitionLegend draws what the colors of partitions mean.
func partitionLegend() string { return drawing.PartitionLegend().SVG() }

// usageRow is a namespace that uses devices or waits for them.
type usageRow struct {
	Name                string
	Used, Idle, Waiting int
	Bar                 string
}

// usageRows lists the namespaces.
func (p *page) usageRows() []usageRow {
	total := 0
	for i := range p.Usage {
		total += p.Usage[i].Used
	}
	var rows []usageRow
	for i := range p.Usage {
		u := &p.Usage[i]
		rows = append(rows, usageRow{u.Name, u.Used, u.Idle, u.Waiting, drawing.Bar(u.Used, total, render.Plain)})
	}
	return rows
}

// historyDrawings draws the histories.
func (p *page) historyDrawings() []figure {
	var list []figure
	for _, h := range p.Histories {
		list = append(list, figureOf(drawing.History(h)))
	}
	return list
}

// unknown lists the checks that were not made, and the assumptions.
func (p *page) unknown() []string {
	var list []string
	for _, text := range p.Status.NotChecked {
		list = append(list, "Not checked: "+text)
	}
	return append(list, p.Status.Assumptions...)
}

// data returns the snapshot in the page.
func (p *page) data() string { return base64.StdEncoding.EncodeToString(p.Snapshot) }
