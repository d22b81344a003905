// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// inCell is how many things a cell of a table names.
const inCell = 3

// someOf names the first few of a list and counts the rest.
func someOf(names []string, total int) string {
	shown := names[:min(len(names), inCell)]
	text := strings.Join(shown, ",")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf("+%d", more)
	}
	return text
}

func holderTexts(holders []inventory.Holder) string {
	var claims []string
	for _, h := range holders {
		claim := h.Namespace + "/" + h.Claim
		if h.AdminAccess {
			claim += "(admin)"
		}
		if !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return someOf(claims, len(claims))
}

func podTexts(holders []inventory.Holder) string {
	var pods []string
	for _, h := range holders {
		pods = append(pods, h.Pods...)
	}
	slices.Sort(pods)
	pods = slices.Compact(pods)
	return someOf(pods, len(pods))
}

func taintTexts(taints []inventory.DeviceTaint) string {
	texts := make([]string, 0, len(taints))
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		texts = append(texts, text+":"+t.Effect)
	}
	return strings.Join(texts, ",")
}

func capacityTexts(list []inventory.Capacity) string {
	texts := make([]string, 0, len(list))
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%s=%s/%s", lastPart(c.Name), c.Used, c.Total))
	}
	return strings.Join(texts, ",")
}

func counterTexts(list []inventory.Counter) string {
	texts := make([]string, 0, len(list))
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%s/%s=%s/%s", c.CounterSet, c.Name, c.Used, c.Total))
	}
	return strings.Join(texts, ",")
}

func partitionTexts(p *inventory.Pool) string {
	texts := make([]string, 0, len(p.Partitions))
	for _, partition := range p.Partitions {
		if partition.MoreFit != nil {
			texts = append(texts, fmt.Sprintf("%d x %s", *partition.MoreFit, partition.Type))
		}
	}
	return strings.Join(texts, "; ")
}

func networkTexts(d *inventory.Device) string {
	var texts []string
	for _, h := range d.Holders {
		if text := networkText(h.Status); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ",")
}

func claimNetworkTexts(c *inventory.Claim) string {
	var texts []string
	for _, r := range c.Requests {
		for _, d := range r.Devices {
			if text := networkText(d.Status); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, ",")
}

func networkText(status *inventory.DeviceStatus) string {
	if status == nil {
		return ""
	}
	text := status.Interface
	for _, ip := range status.IPs {
		text += " " + ip
	}
	return strings.TrimSpace(text)
}

func requestTexts(c *inventory.Claim) string {
	texts := make([]string, 0, len(c.Requests))
	for _, r := range c.Requests {
		switch {
		case len(r.DeviceClasses) > 0:
			texts = append(texts, r.Name+"="+strings.Join(r.DeviceClasses, "|"))
		case r.Mode == "All":
			texts = append(texts, r.Name+"=all "+r.DeviceClass)
		default:
			texts = append(texts, fmt.Sprintf("%s=%dx%s", r.Name, max(r.Count, 1), r.DeviceClass))
		}
	}
	return strings.Join(texts, ",")
}

// deviceTexts names the devices of a claim, those of one pool together.
func deviceTexts(c *inventory.Claim) string {
	var pools []string
	devices := map[string][]string{}
	for _, r := range c.Requests {
		for _, d := range r.Devices {
			if devices[d.Pool] == nil {
				pools = append(pools, d.Pool)
			}
			devices[d.Pool] = append(devices[d.Pool], d.Device)
		}
	}
	texts := make([]string, 0, len(pools))
	for _, pool := range pools {
		texts = append(texts, pool+":"+strings.Join(collapse(devices[pool]), ","))
	}
	return strings.Join(texts, " ")
}

func flagTexts(c *inventory.Claim) string {
	var names []string
	for _, f := range c.Flags {
		if !slices.Contains(names, string(f.Name)) {
			names = append(names, string(f.Name))
		}
	}
	return strings.Join(names, ",")
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// eviction says when the next pod goes.
func eviction(t *inventory.Taint, now time.Time) string {
	left, due := t.Due(now)
	switch {
	case due && left <= 0:
		return "now"
	case due:
		return "in " + duration.HumanDuration(left)
	default:
		return ""
	}
}

func taintedPods(t *inventory.Taint) []string {
	names := make([]string, 0, len(t.Pods))
	for _, p := range t.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

func ruleStatus(t *inventory.Taint) string {
	texts := make([]string, 0, len(t.Conditions))
	for _, c := range t.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s: %s", c.Type, c.Status, c.Message))
	}
	return strings.Join(texts, "; ")
}
