// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// maxXIDs limits how many errors are kept of each GPU: the last ones, errors of the GPU
// before errors of applications.
const maxXIDs = 20

// addXIDs gives each GPU its errors from the kernel log. NVML reports an XID only while
// somebody listens; earlier ones are in the log alone.
func addXIDs(gpus []GPU, host *node.Host) {
	if len(gpus) == 0 {
		return
	}
	lines, err := kernelLog(host)
	if err != nil {
		for i := range gpus {
			lacks(&gpus[i].Missing, "xids", "NVML reports them only while they happen, and the kernel log cannot be read: "+err.Error())
		}
		return
	}
	found := parseXIDs(lines)
	for i := range gpus {
		slot, _, _ := strings.Cut(gpus[i].PCIBusID, ".")
		gpus[i].XIDs = found[slot]
	}
}

// parseXIDs finds the errors by PCI domain, bus and device ("0000:3b:00") in
// lines such as "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.".
func parseXIDs(lines []string) map[string][]XID {
	pattern := regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F:]{1,32})\): ([0-9]{1,5}),? ?(.*)`)
	found := map[string][]XID{}
	for _, line := range lines {
		parts := pattern.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		code, err := strconv.Atoi(parts[2])
		if err != nil {
			continue
		}
		slot := strings.ToLower(parts[1])
		found[slot] = append(found[slot], XID{Code: code, Message: parts[3]})
		if len(found[slot]) > maxXIDs {
			// Errors of applications that fail because of a GPU must not push out the GPU's
			// error.
			oldest := max(slices.IndexFunc(found[slot], XID.ofApplication), 0)
			found[slot] = slices.Delete(found[slot], oldest, oldest+1)
		}
	}
	return found
}

// ofApplication reports whether a program on a healthy GPU can cause the error, by the list
// of the NVIDIA DRA driver (xidsToSkip, cmd/gpu-kubelet-plugin/device_health.go).
func (x XID) ofApplication() bool { return slices.Contains([]int{13, 31, 43, 45, 68, 109}, x.Code) }
