// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Conform tests a driver with claims that nobody uses, see [ConformOrder]. It changes the
// node, and unprepares whatever it had prepared, even if ctx ends in the middle of it. Each
// error of the driver is the result of the requirement that it breaks; requirements that
// depend on it are not tested then.
//
// It only fails if ctx ends; the results until then are in the answer, too.
func Conform(ctx context.Context, host *node.Host, driver string, opts ConformOptions) (*Conformance, error) {
	c := &conformer{
		host: host, opts: &opts, out: &Conformance{
			TypeMeta: typeMeta("DriverConformance"), Driver: driver, Software: softwareOf(host, &opts), Claims: []Claim{}, Results: []Conformity{},
		},
		driver: &testedDriver{host: host, name: driver, opts: &opts, open: map[Claim]bool{}},
	}
	for _, claim := range opts.Claims {
		c.out.Claims = append(c.out.Claims, claimOf(claim))
	}
	defer func() { c.out.Results = append(c.out.Results, c.driver.cleanUp(context.WithoutCancel(ctx))...) }()
	// A driver that is told to unprepare what it is about to prepare may keep it.
	calling, stop := outlasting(ctx, lastAnswer)
	defer stop()
	for _, r := range c.requirements() {
		c.driver.exchanges = nil
		v := r.try(calling)
		if err := ctx.Err(); err != nil {
			return c.out, err
		}
		c.out.Results = append(c.out.Results, Conformity{
			Name: r.name, State: v.state, Message: v.message, Source: r.source, Needs: v.needs, Exchanges: c.driver.exchanges,
		})
	}
	return c.out, nil
}

// requirement is a rule for drivers.
type requirement struct {
	name, source string
	try          func(context.Context) verdict
}

// requirements returns all of them, each after its dependencies.
func (c *conformer) requirements() []requirement {
	return []requirement{
		{conformRegistration, kep + ", kubelet plugin registration", c.registration},
		{conformVersions, kep + ", and validateSupportedServices of the kubelet", c.versions},
		{conformGetInfo, protoInfo, c.getInfo},
		{conformSlices, kep + ", and " + resourceAPI, c.slices},
		{conformHealth, "KEP-4680, and k8s.io/kubelet/pkg/apis/dra-health/v1/api.proto", c.health},
		{conformPrepare, protoPrepare, c.prepare},
		{conformCDI, kep + ", CDI devices", c.cdi},
		{conformTwice, helper + "DRAPlugin.PrepareResourceClaims", c.prepareTwice},
		{conformReplaced, helper + "getResourceClaims", c.prepareReplaced},
		{conformUnallocated, helper + "getResourceClaims", c.prepareUnallocated},
		{conformForeign, helper + "DRAPlugin.PrepareResourceClaims", c.prepareForeign},
		{conformErrors, protoPrepare, c.errorsPerClaim},
		{conformRestart, helper + "DRAPlugin.UnprepareResourceClaims", c.restart},
		{conformUnprepare, protoRevert, c.unprepare},
		{conformGone, helper + "DRAPlugin.UnprepareResourceClaims", c.unprepareTwice},
		{conformUnknown, helper + "DRAPlugin.UnprepareResourceClaims", c.unprepareUnknown},
		{conformSeveral, protoPrepare, c.several},
		{conformGeneration, resourceAPI + ", ResourcePool.generation", c.generation},
		{conformStop, helper + "Helper.Stop", c.stop},
	}
}
