// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func pluginChecks() []Check {
	return []Check{{
		Code: "DRA1213", Title: "devices that a device plugin hands out, too", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceNodes},
		About:  "A driver publishes devices of a node, and on the same node a device plugin offers what by its name is the same hardware: driver gpu.example.com and the extended resource example.com/gpu. Neither knows what the other has handed out, so that two pods can get one device. Resources of another name are not found; where a DeviceClass has the name of the resource, DRA1305 says so.",
		Advice: "Run either the device plugin or the DRA driver on a node.",
		find:   findPluginHardware,
	}}
}

// findPluginHardware groups the nodes of one driver.
func findPluginHardware(_ context.Context, in *cluster) ([]api.Finding, error) {
	served := map[corev1.ResourceName]bool{}
	for _, class := range in.cluster.Snapshot.Classes {
		if name := class.Spec.ExtendedResourceName; name != nil {
			served[corev1.ResourceName(*name)] = true
		}
	}
	published := publishedFor(in)
	var found []api.Finding
	for _, driver := range slices.Sorted(maps.Keys(published)) {
		f := api.Finding{}
		offered := map[string]bool{}
		for _, node := range in.cluster.Snapshot.Nodes {
			if !published[driver][node.Name] {
				continue
			}
			o, before := api.RefTo(api.KindNode, node), len(f.Evidence)
			for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
				quantity := node.Status.Allocatable[name]
				if quantity.IsZero() || served[name] || !facts.SameHardware(driver, string(name)) {
					continue
				}
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "status.allocatable[" + string(name) + "]", Found: quantity.String()})
				offered[string(name)] = true
			}
			if len(f.Evidence) > before {
				f.Objects = append(f.Objects, o)
			}
		}
		if len(f.Objects) == 0 {
			continue
		}
		f.Message = fmt.Sprintf("a device plugin offers %s on %s where driver %s publishes devices: if these are the same hardware, as their names suggest, both can hand out one device",
			english.JoinAnd(slices.Sorted(maps.Keys(offered))), english.Count(len(f.Objects), "node"), driver)
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "compare the hardware of both; if it is the same, run either the device plugin or the DRA driver on these nodes"}
		found = append(found, f)
	}
	return found, nil
}
