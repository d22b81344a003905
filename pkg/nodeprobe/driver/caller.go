// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// CallOptions configure calls of drivers.
//
// +k8s:deepcopy-gen=false
type CallOptions struct {
	// Look says how sockets are found.
	Look Options
	// Timeout limits one call; 0 means DefaultCallTimeout.
	Timeout time.Duration
	// Resolve looks up CDI names; nil if nobody can.
	Resolve Resolver
}

func (o CallOptions) timeout() time.Duration { return cmp.Or(o.Timeout, DefaultCallTimeout) }

// caller makes the calls of one order to one driver.
type caller struct {
	order  *Order
	opts   CallOptions
	host   *node.Host
	plugin *Plugin
	done   *Preparation
	// unanswered is set if a driver may still work on a call that timed out.
	unanswered bool
}
