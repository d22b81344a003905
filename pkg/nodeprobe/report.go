// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
)

// Kind is the kind of a report.
const Kind = "NodeReport"

// Report describes one node. A part that is nil was not looked at in time; a check of its
// name in Host says so.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Report struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name of the node in the cluster, empty if not known.
	Node string `json:"node,omitempty"`
	// Paths are the paths that were searched.
	Paths Paths `json:"paths"`
	// Result is the worst of all checks.
	Result node.State `json:"result"`

	// Host has the checks of the node itself and its place in the cluster.
	Host    []node.Check         `json:"host"`
	GPUs    *nvidia.Findings     `json:"gpus,omitempty"`
	Plugins *driver.Findings     `json:"plugins,omitempty"`
	State   *checkpoint.Findings `json:"state,omitempty"`
	CDI     *cdi.Findings        `json:"cdi,omitempty"`
	Pods    *kubelet.Findings    `json:"pods,omitempty"`
	Health  *driver.Health       `json:"health,omitempty"`
}

// Paths are the paths of a node. Root is where the node's root is, as seen from where the
// program ran.
type Paths struct {
	// Root is the mount point of the node's root, Kubelet the root directory of its
	// kubelet, CDI the directories with specs, in the order of their priority.
	Root    string   `json:"root"`
	Kubelet string   `json:"kubelet"`
	CDI     []string `json:"cdi"`
}

// Section is the common form of all parts of a report.
//
// +k8s:deepcopy-gen=false
type Section struct {
	// Name is the name of the field in the report, and of the command that shows all of it.
	Name   string
	Checks []node.Check
}

// Sections returns the present parts, ordered from the hardware to the container.
func (r *Report) Sections() []Section {
	sections := []Section{{"host", r.Host}}
	if r.GPUs != nil {
		sections = append(sections, Section{"gpus", r.GPUs.Checks})
	}
	if r.Plugins != nil {
		sections = append(sections, Section{"plugins", r.Plugins.Checks})
	}
	if r.State != nil {
		sections = append(sections, Section{"state", r.State.Checks})
	}
	if r.CDI != nil {
		sections = append(sections, Section{"cdi", r.CDI.Checks})
	}
	if r.Pods != nil {
		sections = append(sections, Section{"pods", r.Pods.Checks})
	}
	if r.Health != nil {
		sections = append(sections, Section{"health", r.Health.Checks})
	}
	return sections
}

// Checks returns all checks.
func (r *Report) Checks() []node.Check {
	var all []node.Check
	for _, section := range r.Sections() {
		all = append(all, section.Checks...)
	}
	return all
}
