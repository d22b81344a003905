// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newPods(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "pods [POD]",
		Short: "Ask the kubelet which devices its pods have",
		Long: `Ask the kubelet of this node, by its PodResources API, which claims and devices
it has given to which container, and hold that against the claims of the
cluster: what one side knows and the other does not.

For each container with exclusive CPUs or memory it compares the NUMA nodes of
these with those of its claims' devices, which the kubelet's Topology Manager
does not look at.

With a POD it asks for that one only, in the namespace of -n or of the context.
-o wide adds CPUs and memory that containers have for themselves, and the
devices of device plugins.`,
		Example: `  # All pods of this node
  kubectl dra node-probe pods

  # One of them
  kubectl dra node-probe pods train-0 -n ml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			namespace := ""
			if len(args) > 0 {
				var err error
				if namespace, err = flags.namespace(config); err != nil {
					return err
				}
			}
			snap, err := flags.cluster(cmd, streams)
			if err != nil {
				return err
			}
			var findings *kubelet.Findings
			if len(args) > 0 {
				if namespace == "" {
					if namespace, err = namespaceOfPod(snap, args[0]); err != nil {
						return err
					}
				}
				findings = kubelet.LookPod(cmd.Context(), flags.host(), snap, namespace, args[0])
			} else {
				findings = kubelet.Look(cmd.Context(), flags.host(), snap)
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			return flags.print(streams, findings, findings.Checks, func(o render.Options) error { return writePods(streams.Out, findings, o) })
		},
	}
}

// namespaceOfPod returns the namespace of the only pod with a name in a file; the default
// one if the file has none.
func namespaceOfPod(snap *snapshot.Snapshot, name string) (string, error) {
	if snap == nil {
		return metav1.NamespaceDefault, nil
	}
	pod, err := cli.OnlyOneIn(snap.Pods, "pod", "", name)
	if err != nil || pod == nil {
		return metav1.NamespaceDefault, err
	}
	return cmp.Or(pod.Namespace, metav1.NamespaceDefault), nil
}

// writePods draws the kubelet's report about the devices of its pods. With -o wide it shows
// CPUs, memory and allocatable devices.
func writePods(w io.Writer, f *kubelet.Findings, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, "Pods with devices on "+onNode(f.Node)+", by the kubelet's word ("+f.Socket+")")
	lines := [][]string{{"POD", "CONTAINER", "FROM", "DEVICES", "NUMA", "CDI"}}
	for i := range f.Pods {
		pod := &f.Pods[i]
		for j := range pod.Containers {
			lines = append(lines, containerLines(pod, &pod.Containers[j], opts.Wide)...)
		}
	}
	if len(lines) > 1 {
		p.Blank()
		p.grid(0, lines)
	}
	p.alignment(f)
	if opts.Wide && len(f.Allocatable) > 0 {
		p.Blank()
		p.Text(0, render.Strong, "What device plugins have")
		lines := [][]string{{"RESOURCE", "NUMA", "DEVICES"}}
		for _, r := range f.Allocatable {
			lines = append(lines, []string{r.Name, integers(r.NUMANodes), strings.Join(r.IDs, ", ")})
		}
		p.grid(2, lines)
	}
	p.nodeChecks(f.Checks)
	return p.write(w)
}

// alignment draws which containers have their devices, CPUs and memory on one NUMA node.
func (p *page) alignment(f *kubelet.Findings) {
	lines := [][]string{{"POD", "CONTAINER", "ALIGNED", "REQUIRED", "WHERE"}}
	apart := false
	for i := range f.Pods {
		for _, c := range f.Pods[i].Containers {
			if c.Alignment == nil {
				continue
			}
			aligned := map[kubelet.AlignmentState]string{kubelet.Aligned: "yes", kubelet.NotAligned: "no"}[c.Alignment.State]
			apart = apart || c.Alignment.State == kubelet.NotAligned
			lines = append(lines, []string{
				f.Pods[i].Namespace + "/" + f.Pods[i].Name, c.Name, cmp.Or(aligned, "not known"),
				strings.Join(c.Alignment.Required, ", "), kubelet.PartsText(c.Alignment.Parts),
			})
		}
	}
	if len(lines) == 1 {
		return
	}
	p.Heading("Alignment of devices with CPUs and memory")
	p.grid(2, lines)
	if apart && f.TopologyManagerPolicy != kubelet.PolicyNone {
		p.Text(2, render.Plain, fmt.Sprintf("The Topology Manager (topologyManagerPolicy: %s) does not look at devices of claims.", cmp.Or(f.TopologyManagerPolicy, "not known")))
	}
}

func containerLines(pod *kubelet.Pod, c *kubelet.Container, wide bool) [][]string {
	name := pod.Namespace + "/" + pod.Name
	var lines [][]string
	for _, claim := range c.Claims {
		var devices, ids []string
		for _, d := range claim.Devices {
			devices = append(devices, d.Driver+"/"+d.Pool+"/"+d.Device)
			for _, id := range d.CDIDevices {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		lines = append(lines, []string{name, c.Name, "claim " + claim.Name, strings.Join(devices, ", "), "", strings.Join(ids, ", ")})
	}
	for _, r := range c.Devices {
		lines = append(lines, []string{name, c.Name, r.Name, strings.Join(r.IDs, ", "), integers(r.NUMANodes), ""})
	}
	if !wide {
		return lines
	}
	if len(c.CPUs) > 0 {
		lines = append(lines, []string{name, c.Name, "CPUs", integers(c.CPUs), "", ""})
	}
	for _, m := range c.Memory {
		lines = append(lines, []string{name, c.Name, m.Type, fmt.Sprintf("%d bytes", m.Bytes), integers(m.NUMANodes), ""})
	}
	return lines
}

func integers(list []int64) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}
