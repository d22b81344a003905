// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeConformanceMarkdown writes the test of a driver as a Markdown document to publish.
// The same results give the same document: it has no date and no durations.
func writeConformanceMarkdown(w io.Writer, c *driver.Conformance) error {
	var d markdown
	d.line("# Conformance of DRA driver %s", d.code(c.Driver))
	d.line("%s.", conformanceCounts(c))
	d.software(cmp.Or(c.Software, &driver.Software{}))
	d.results(c.Results)
	d.untried(c.Results)
	d.evidence(c.Results)
	if _, err := io.WriteString(w, d.String()); err != nil {
		return fmt.Errorf("print Markdown: %w", err)
	}
	return nil
}

// conformanceCounts counts the results of requirements in words.
func conformanceCounts(c *driver.Conformance) string {
	counts := map[string]int{}
	for i := range c.Results {
		counts[resultWord(&c.Results[i])]++
	}
	text := english.Count(len(c.Results), "requirement") + ":"
	for i, word := range []string{resultMet, resultBroken, resultNotKnown, resultNotTried} {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d %s", counts[word], word)
	}
	return text
}

// Results of requirements in words.
const (
	resultMet      = "met"
	resultBroken   = "broken"
	resultNotKnown = "not known"
	resultNotTried = "not tried"
)

// resultWord returns the result of a requirement in words.
func resultWord(r *driver.Conformity) string {
	switch {
	case r.Needs != "":
		return resultNotTried
	case r.State == node.OK:
		return resultMet
	case r.State == node.Problem:
		return resultBroken
	default:
		return resultNotKnown
	}
}

// toTry returns how to give what a requirement needs.
func toTry(need driver.Need) string {
	switch need {
	case driver.NeedDriver:
		return "Start the driver, so that it registers and answers."
	case driver.NeedPrepared:
		return "Let the driver meet `conform/prepare`."
	case driver.NeedUnprepared:
		return "Let the driver meet `conform/unprepare`."
	case driver.NeedSecond:
		return "Name a second claim with devices of the driver."
	case driver.NeedUnallocated:
		return "Name a claim without devices with `--unallocated`."
	case driver.NeedForeign:
		return "Name a claim with devices of another driver with `--foreign`."
	case driver.NeedRestart:
		return "Give a command that restarts the driver with `--restart-command`."
	case driver.NeedStop:
		return "Give a command that stops the driver with `--stop-command`."
	case driver.NeedCluster:
		return "Run it on the node, with a kubeconfig of the cluster and without `--snapshot`."
	default:
		return ""
	}
}

// markdown collects the blocks of a Markdown document.
type markdown struct{ strings.Builder }

// line adds a block of one line.
func (d *markdown) line(format string, args ...any) {
	if d.Len() > 0 {
		d.WriteByte('\n')
	}
	d.WriteString(fmt.Sprintf(format, args...) + "\n")
}

// table adds a table. Its cells are Markdown.
func (d *markdown) table(rows ...[]string) {
	for i, row := range rows {
		text := "| " + strings.Join(row, " | ") + " |"
		if i > 0 {
			d.WriteString(text + "\n")
			continue
		}
		d.line("%s", text)
		d.WriteString(strings.Repeat("|---", len(row)) + "|\n")
	}
}

// text returns foreign text without a meaning for Markdown and HTML.
func (d *markdown) text(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	).Replace(render.Escape(s))
}

// code returns a name as code, or as text if it cannot be code in a table.
func (d *markdown) code(s string) string {
	if s = render.Escape(s); s == "" || strings.ContainsAny(s, "`|") {
		return d.text(s)
	}
	return "`" + s + "`"
}

// codes returns several names as code.
func (d *markdown) codes(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = d.code(name)
	}
	return strings.Join(all, ", ")
}

// software adds the versions.
func (d *markdown) software(s *driver.Software) {
	const unknown = "not known"
	d.line("## Versions")
	d.table(
		[]string{"what", "version"},
		[]string{"images of the driver's pod", cmp.Or(d.codes(s.Images), unknown+": no pod of the cluster has the process that serves the driver's endpoint, or this could not be found out")},
		[]string{"services of the driver", cmp.Or(d.codes(s.Services), unknown)},
		[]string{"Kubernetes", cmp.Or(d.text(s.Kubernetes), unknown)},
		[]string{"kubelet", cmp.Or(d.text(s.Kubelet), unknown)},
		[]string{"container runtime", cmp.Or(d.text(s.ContainerRuntime), unknown)},
		[]string{"operating system", cmp.Or(d.text(s.OperatingSystem), unknown)},
		[]string{"kubectl-dra", cmp.Or(d.text(s.Program), unknown)},
	)
}

// results adds a line for each requirement.
func (d *markdown) results(results []driver.Conformity) {
	rows := [][]string{{"requirement", "result", "what was found", "required by"}}
	for i := range results {
		r := &results[i]
		rows = append(rows, []string{d.code(r.Name), resultWord(r), d.text(r.Message), d.text(r.Source)})
	}
	d.line("## Results")
	d.table(rows...)
}

// untried adds the requirements that were not tried, and how to try them.
func (d *markdown) untried(results []driver.Conformity) {
	rows := [][]string{{"requirement", "how to try it"}}
	for i := range results {
		if r := &results[i]; r.Needs != "" {
			rows = append(rows, []string{d.code(r.Name), toTry(r.Needs)})
		}
	}
	if len(rows) == 1 {
		return
	}
	d.line("## Not tried")
	d.table(rows...)
}

// evidence adds the calls for each requirement and their replies.
func (d *markdown) evidence(results []driver.Conformity) {
	rows := [][]string{{"requirement", "call", "claim", "reply"}}
	for i := range results {
		r := &results[i]
		for j := range r.Exchanges {
			e := &r.Exchanges[j]
			for k := range e.Claims {
				claim := &e.Claims[k]
				rows = append(rows, []string{
					d.code(r.Name), d.code(e.Service + "/" + e.Method), d.code(claim.Namespace+"/"+claim.Name) + ", UID " + d.code(claim.UID), d.reply(e, claim),
				})
			}
		}
	}
	if len(rows) == 1 {
		return
	}
	d.line("## Calls")
	d.line("Each call of the driver that prepared or unprepared claims, in its order, with the reply for each claim.")
	d.table(rows...)
}

// reply returns what a driver replied for a claim.
func (d *markdown) reply(e *driver.Exchange, claim *driver.ClaimReply) string {
	switch {
	case e.Error != "":
		return "the call fails: " + d.text(e.Error)
	case claim.Error != "":
		return "error: " + d.text(claim.Error)
	case !claim.Replied:
		return "none"
	case len(claim.Devices) == 0:
		return "no error, no devices"
	}
	devices := make([]string, 0, len(claim.Devices))
	for i := range claim.Devices {
		device := &claim.Devices[i]
		text := d.code(device.Pool + "/" + device.Device)
		if device.ShareID != "" {
			text += ", share " + d.code(device.ShareID)
		}
		if len(device.Requests) > 0 {
			text += " for " + d.codes(device.Requests)
		}
		for k := range device.CDI {
			text += ", CDI " + d.code(device.CDI[k].ID)
		}
		devices = append(devices, text)
	}
	return strings.Join(devices, "; ")
}
