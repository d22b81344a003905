// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Settings are the settings of the DRA driver's kubelet plugin that decide what it
// publishes.
type Settings struct {
	// Node is the name of the node, and so of the pool.
	Node string
	// Split reports whether shared counters have a slice of their own, as from
	// Kubernetes 1.35 on (cmd/gpu-kubelet-plugin/driver.go, lines 577-594).
	Split bool
	// DynamicMIG, ListAttributes and Shares are the feature gates DynamicMIG,
	// DRAListTypeAttributes, and the option --consumable-shares with its gate.
	DynamicMIG     bool
	ListAttributes bool
	Shares         string
}

// Values of --consumable-shares, apart from a number.
const (
	sharesDisabled  = "disabled"
	sharesMemory    = "memory"
	sharesUnlimited = "unlimited"
)

// Feature gates that change the published slices.
const (
	gateDynamicMIG     = "DynamicMIG"
	gateListAttributes = "DRAListTypeAttributes"
	gateShares         = "ConsumableShares"
	gatePassthrough    = "PassthroughSupport"
	gatePartitioning   = "FabricManagerPartitioning"
	gateHealth         = "NVMLDeviceHealthCheck"
	gateMPS            = "MPSSupport"
	gateMetadata       = "DeviceMetadata"
	gateCliques        = "ComputeDomainCliques"
	gateDNSNames       = "IMEXDaemonsWithDNSNames"
)

// Configure reads feature gates and the value of --consumable-shares as the driver does
// (pkg/featuregates/featuregates.go, and cmd/gpu-kubelet-plugin/main.go lines 306-315). It
// fails for values with which the driver would not start, and for gates whose effect cannot
// be computed here.
func (s *Settings) Configure(gates map[string]bool, shares string) error {
	known := []string{
		gateDynamicMIG, gateListAttributes, gateShares, gatePassthrough, gatePartitioning, gateHealth, gateMPS, gateMetadata, gateCliques, gateDNSNames,
		"TimeSlicingSettings", "CrashOnNVLinkFabricErrors", "HostManagedIMEXDaemon",
		// Gates of the Kubernetes library for logs.
		"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions",
	}
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		switch {
		case name == "AllAlpha" || name == "AllBeta":
			return fmt.Errorf("which feature gates %s means depends on the version of the driver: name them one by one", name)
		case !slices.Contains(known, name):
			return fmt.Errorf("the NVIDIA DRA driver has no feature gate %q", name)
		}
	}
	switch {
	case gates[gatePassthrough]:
		return fmt.Errorf("what the driver publishes with %s cannot be known: it depends on the kernel's VFIO drivers", gatePassthrough)
	case gates[gatePartitioning]:
		return fmt.Errorf("what the driver publishes with %s cannot be known: it asks the Fabric Manager", gatePartitioning)
	}
	if gates[gateMetadata] {
		return fmt.Errorf("the driver does not start with %s without %s", gateMetadata, gatePassthrough)
	}
	// Both are on by default.
	isOn := func(name string) bool { on, given := gates[name]; return on || !given }
	if isOn(gateCliques) && !isOn(gateDNSNames) {
		return fmt.Errorf("the driver does not start with %s without %s", gateCliques, gateDNSNames)
	}
	for _, other := range []string{gateHealth, gateMPS} {
		if gates[gateDynamicMIG] && gates[other] {
			return fmt.Errorf("the driver does not start with both %s and %s", gateDynamicMIG, other)
		}
	}
	if shares == "" {
		shares = sharesDisabled
	}
	if shares != sharesDisabled && !gates[gateShares] {
		return fmt.Errorf("the driver does not start with --consumable-shares=%s without its feature gate %s", shares, gateShares)
	}
	if n, err := strconv.Atoi(shares); !slices.Contains([]string{sharesDisabled, sharesMemory, sharesUnlimited}, shares) && (err != nil || n <= 0) {
		return fmt.Errorf("--consumable-shares is %q, and has to be disabled, memory, unlimited or a positive number", shares)
	}
	s.DynamicMIG, s.ListAttributes, s.Shares = gates[gateDynamicMIG], gates[gateListAttributes], shares
	return nil
}
