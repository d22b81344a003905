// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"strings"

	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// topology returns the place of a PCI device in the machine, by the library that drivers
// use for the standard attributes. A missing value has its reason.
func topology(host *node.Host, busID string) (root string, numa *int, gone []Missing) {
	sys, err := host.Here("/sys")
	if err != nil {
		return "", nil, []Missing{{Value: "pcieRoot", Reason: err.Error()}, {Value: "numaNode", Reason: err.Error()}}
	}
	from := deviceattribute.WithFSFromRoot(sys)
	if attribute, err := deviceattribute.GetPCIeRootAttributeByPCIBusID(busID, from); err != nil {
		lacks(&gone, "pcieRoot", err.Error())
	} else {
		root = *attribute.Value.StringValue
	}
	attribute, err := deviceattribute.GetNUMANodeAttributeByPCIBusID(busID, deviceattribute.ScalarAttribute, from)
	if err != nil {
		// The library has one error for no node and for no file, and continues as drivers
		// should do then.
		reason, _, _ := strings.Cut(err.Error(), ";")
		lacks(&gone, "numaNode", reason)
		return root, nil, gone
	}
	n := int(*attribute.Value.IntValue)
	return root, &n, gone
}
