// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// sharingMost limits how many kinds of devices, or settings, are shown without Wide.
const sharingMost = 3

// Sharing draws in which ways devices of a class can be shared. With Wide, all kinds of devices and all
// settings are shown, and with Commands a command that applies the manifest of each way.
func Sharing(w io.Writer, s *api.Sharing, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, sharingTotal(s))
	manifests := 0
	for i := range s.Ways {
		way := &s.Ways[i]
		p.Blank()
		writeSharingWay(p, s, way)
		if way.Manifest != "" {
			manifests++
		}
		if opts.Commands && way.Manifest != "" {
			p.Blank()
			p.Verbatim(0, "kubectl apply -f - <<'EOF'\n"+way.Manifest+"EOF\n")
		}
	}
	p.Assumptions(s.Assumptions)
	if manifests > 0 && !opts.Commands {
		p.Blank()
		p.Field("More", fmt.Sprintf("--commands prints %s with two pods", english.Plural(manifests, "a manifest", "a manifest for each way")))
	}
	return p.Print(w)
}

func sharingTotal(s *api.Sharing) string {
	if s.Devices == 0 {
		return fmt.Sprintf("Class %s selects no devices now", s.Class)
	}
	ways := 0
	var gates []string
	for i := range s.Ways {
		switch way := &s.Ways[i]; {
		case way.Available && way.Method != api.DriverSettings:
			ways++
		case way.FeatureGate != "":
			gates = append(gates, way.FeatureGate)
		}
	}
	devices := fmt.Sprintf("%s of %s", english.Count(s.Devices, "device"), english.JoinAnd(s.Drivers))
	if s.Tainted > 0 {
		devices += fmt.Sprintf(" (%d tainted)", s.Tainted)
	}
	text := fmt.Sprintf("Class %s: %s can be shared in %d %s", s.Class, devices, ways, english.Plural(ways, "way", "ways"))
	if len(gates) > 0 {
		text += " while feature " + english.Plural(len(gates), "gate ", "gates ") + english.JoinAnd(gates) + english.Plural(len(gates), " is off", " are off")
	}
	return text
}

// writeSharingWay draws one way: its name, what it does with these devices, and whether it fits now.
func writeSharingWay(p *Page, s *api.Sharing, way *api.SharingWay) {
	mark, title := Cell{Text: "✗", Width: 1, Mark: Faint}, map[api.SharingMethod]string{
		api.SharedClaim: "One claim for several pods", api.SharedCapacity: "Several claims on one device",
		api.SharedPartitions: "Partitions of one device", api.DriverSettings: "Settings of the driver",
	}[way.Method]
	switch {
	case way.Available && way.Method == api.DriverSettings:
		mark.Text, mark.Mark = "?", Unsure
	case way.Available && cmp.Or(way.Verdict, api.Fits) == api.Fits:
		mark.Text, mark.Mark = "✓", Good
	case way.Available:
		mark.Text, mark.Mark = "!", Unsure
	}
	p.Row(0, mark, Cell{Text: title, Mark: Strong})
	say := func(text string) { p.Row(2+1, Cell{Text: english.Sentence(text)}) }
	if !way.Available {
		text := way.Reason
		if len(way.OtherClasses) > 0 {
			text += fmt.Sprintf("; for that, the driver has devices in %s %s", english.Plural(len(way.OtherClasses), "class", "classes"), english.JoinAnd(way.OtherClasses))
		}
		say(text)
		return
	}
	for _, text := range sharingTexts(p, s, way) {
		say(text)
	}
	for _, note := range way.Notes {
		say(note)
	}
	if text := sharingVerdict(way); text != "" {
		say(text)
	}
}

// sharingTexts says how devices are shared.
func sharingTexts(p *Page, s *api.Sharing, way *api.SharingWay) []string {
	var texts []string
	switch way.Method {
	case api.SharedClaim:
		where := "on the node of the device"
		switch {
		case s.SeveralNodes == s.Devices:
			where = "on any node that reaches the device"
		case s.SeveralNodes > 0:
			where = fmt.Sprintf("on the node of the device, or for %s on any node that reaches it", english.Count(s.SeveralNodes, "device"))
		}
		return []string{fmt.Sprintf("up to %d pods that name one ResourceClaim use its device, %s, and so do containers of one pod; nothing limits what each takes", way.MostPods, where)}
	case api.SharedCapacity:
		for i := range way.Kinds {
			texts = append(texts, sharedCapacityText(&way.Kinds[i]))
		}
		if way.Devices < s.Devices {
			texts = append([]string{fmt.Sprintf("%d of %s %s allowMultipleAllocations", way.Devices, english.Count(s.Devices, "device"), english.Plural(way.Devices, "has", "have"))}, texts...)
		}
	case api.SharedPartitions:
		counts := make([]string, 0, len(way.Kinds))
		for i := range way.Kinds {
			kind := &way.Kinds[i]
			counts = append(counts, fmt.Sprintf("%s (%s)", kind.Profile, english.Between(kind.Claims.AtLeast, kind.Claims.AtMost)))
		}
		by := "the counters that each takes"
		if attribute := way.Kinds[0].Attribute; attribute != "" {
			by = "the values of attribute " + attribute
		}
		return []string{fmt.Sprintf("one device divides into %s: %s, with how many fit", english.JoinOr(counts), by)}
	case api.DriverSettings:
		for i := range way.Settings {
			texts = append(texts, settingText(&way.Settings[i]))
		}
	}
	if more := len(texts) - sharingMost; more > 0 && !p.Opts.Wide {
		texts = append(texts[:sharingMost], fmt.Sprintf("%d more: -o wide", more))
	}
	if way.Method == api.DriverSettings {
		texts = append(texts, "what they mean is the driver's, and is not verified")
	}
	return texts
}

// sharedCapacityText says how many claims a device of a kind takes.
func sharedCapacityText(kind *api.SharedDevices) string {
	text := fmt.Sprintf("%s of %s", english.Count(kind.Devices, "device"), kind.Driver)
	if len(kind.Capacity) == 0 {
		return text + fmt.Sprintf(" without capacity: each takes %s claims", english.Between(kind.Claims.AtLeast, kind.Claims.AtMost))
	}
	var has, defaults, smallest []string
	for _, q := range kind.Capacity {
		has = append(has, q.Name+" "+q.Value)
		defaults = append(defaults, q.Name+" "+q.Default)
		if q.Smallest != "" {
			text := q.Name + " " + q.Smallest
			if q.AnyAmount {
				text = "half of " + q.Name + " (any amount is allowed)"
			}
			smallest = append(smallest, text)
		}
	}
	text += fmt.Sprintf(" with %s: each takes %s by default (%s)", english.JoinAnd(has), claimCount(&kind.Claims), strings.Join(defaults, ", "))
	if kind.SmallestClaims != nil {
		text += fmt.Sprintf(", %s if they ask for %s", english.Between(kind.SmallestClaims.AtLeast, kind.SmallestClaims.AtMost), english.JoinAnd(smallest))
	}
	return text
}

// claimCount counts claims.
func claimCount(c *api.CopyCount) string {
	if c.AtMost != nil && *c.AtMost == 1 {
		return "1 claim"
	}
	return english.Between(c.AtLeast, c.AtMost) + " claims"
}

// settingText shows parameters and who has them.
func settingText(s *api.DriverSetting) string {
	names := make([]string, 0, len(s.Objects))
	for _, object := range s.Objects {
		names = append(names, object.Title())
	}
	return fmt.Sprintf("%s for %s, in %s", s.Parameters, s.Driver, SomeOf(names, s.Count))
}

// sharingVerdict returns the verdict on the pods of a manifest, and the number of claims that fit.
func sharingVerdict(way *api.SharingWay) string {
	switch way.Verdict {
	case "":
		return ""
	case api.Fits:
		text := fmt.Sprintf("two such pods fit now; %s of %s %s room for one", english.Thousands(way.Nodes), english.Count(way.NodeCount, "node"), english.Plural(way.Nodes, "has", "have"))
		if way.Now != nil {
			text += fmt.Sprintf(", and %s fit", claimCount(way.Now))
			if then := english.Between(way.Released.AtLeast, way.Released.AtMost); then != english.Between(way.Now.AtLeast, way.Now.AtMost) {
				text += fmt.Sprintf(", %s once all claims are released", then)
			}
		}
		return text
	case api.Undetermined:
		return "whether two such pods fit now is not known: " + way.Summary
	default:
		return "two such pods do not fit now: " + way.Summary
	}
}
