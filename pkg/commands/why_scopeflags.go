// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// scopeFlags limit a question to one node or one device.
type scopeFlags struct {
	node, device string
}

func (n *scopeFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.node, "node", "", "Explain only this `NODE`: all that is in the way there.")
	cmd.Flags().StringVar(&n.device, "device", "", "Explain only this `DEVICE`: DRIVER/POOL/DEVICE, or POOL/DEVICE or DEVICE if there is only one.")
}

func (n *scopeFlags) validate(cmd *cobra.Command, hasTarget bool) error {
	for _, name := range []string{"node", "device"} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		value := cmd.Flags().Lookup(name).Value.String()
		switch {
		case !hasTarget:
			return cli.Usagef(cli.HelpHint(cmd), "--%s needs a target or -f", name)
		case value == "":
			return cli.Usagef(cli.HelpHint(cmd), "--%s is empty", name)
		case name == "device" && slices.Contains(strings.Split(value, "/"), ""):
			return cli.Usagef("Write DRIVER/POOL/DEVICE, for example gpu.example.com/node-1/gpu-0.", "parse --device %q: a part of the name is empty", value)
		}
	}
	return nil
}
