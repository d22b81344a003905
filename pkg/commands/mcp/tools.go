// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/ptr"
)

// common are the arguments of every tool.
type common struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"only this namespace"`
	Detail    string `json:"detail,omitempty" jsonschema:"short (default), wide with all evidence, or json"`
	At        string `json:"at,omitempty" jsonschema:"time of the recording served: 09:14, 2h (before its end) or RFC 3339"`
}

func (c common) shared() common { return c }

// input has the arguments of a tool.
type input interface {
	shared() common
	// command returns the command line of the verb, without the shared arguments.
	command() *commandLine
}

type statusInput struct{ common }

func (statusInput) command() *commandLine { return newCommandLine("status") }

type whyInput struct {
	common
	Target      string `json:"target,omitempty" jsonschema:"pod/NAME, claim/NAME, node/NAME, device/POOL/DEVICE, template/NAME, podgroup/NAME, deployment/NAME, ...; without it: all waiting pods"`
	Manifest    string `json:"manifest,omitempty" jsonschema:"text of YAML manifests, explained as if they were applied"`
	Node        string `json:"node,omitempty" jsonschema:"why not on this node"`
	Device      string `json:"device,omitempty" jsonschema:"why not this device: POOL/DEVICE"`
	Selector    string `json:"selector,omitempty" jsonschema:"only waiting pods with these labels"`
	Since       string `json:"since,omitempty" jsonschema:"how the answer changed since this time of a recording"`
	Commands    bool   `json:"commands,omitempty" jsonschema:"with the commands of the remedies"`
	AllRemedies bool   `json:"all_remedies,omitempty"`
}

func (in whyInput) command() *commandLine {
	c := newCommandLine("why").target(in.Target).manifest("filename", in.Manifest).
		flag("node", in.Node).flag("device", in.Device).flag("selector", in.Selector).time("since", in.Since).
		is("commands", in.Commands).is("all-remedies", in.AllRemedies)
	c.everywhere = in.Target == "" && in.Manifest == ""
	return c
}

type doctorInput struct {
	common
	Only        string `json:"only,omitempty" jsonschema:"only checks whose codes begin like this: DRA12,DRA1301"`
	MinSeverity string `json:"min_severity,omitempty" jsonschema:"Error, Warning or Info (default)"`
	Commands    bool   `json:"commands,omitempty" jsonschema:"with the commands of the remedies"`
}

func (in doctorInput) command() *commandLine {
	return newCommandLine("doctor").flag("only", in.Only).flag("min-severity", in.MinSeverity).is("commands", in.Commands)
}

type fitInput struct {
	common
	Target   string   `json:"target,omitempty" jsonschema:"whose copies to count: deployment/NAME, pod/NAME, claim/NAME, ...; without target, manifest and class: the usual sizes of claims of all classes"`
	Manifest string   `json:"manifest,omitempty" jsonschema:"text of the YAML manifest whose copies to count"`
	Class    string   `json:"class,omitempty" jsonschema:"count claims for devices of this DeviceClass"`
	Count    int      `json:"count,omitempty" jsonschema:"devices of each claim, with class"`
	Same     string   `json:"same,omitempty" jsonschema:"attribute that the devices of a claim have in common, with class"`
	Where    string   `json:"where,omitempty" jsonschema:"CEL expression for the devices, with class"`
	Replicas int      `json:"replicas,omitempty" jsonschema:"how many copies have to fit for exit code 0"`
	Add      []string `json:"add,omitempty" jsonschema:"more nodes: node=NAME or node=NAME,count=N, like node NAME"`
}

func (in fitInput) command() *commandLine {
	return newCommandLine("fit").target(in.Target).manifest("filename", in.Manifest).flag("class", in.Class).
		number("count", in.Count).flag("same", in.Same).expression("where", in.Where).number("replicas", in.Replicas).flag("add", in.Add...)
}

type planInput struct {
	common
	Without []string `json:"without,omitempty" jsonschema:"pods to leave out: pod/NAMESPACE/NAME"`
	Drain   []string `json:"drain,omitempty" jsonschema:"nodes to drain before"`
	Add     []string `json:"add,omitempty" jsonschema:"more nodes: node=NAME,count=N"`
	Preempt bool     `json:"preempt,omitempty" jsonschema:"as if pods of higher priority could preempt others for devices"`
}

func (in planInput) command() *commandLine {
	return newCommandLine("plan").flag("without", in.Without...).flag("drain", in.Drain...).flag("add", in.Add...).is("preempt", in.Preempt)
}

type impactInput struct {
	common
	Change   string `json:"change" jsonschema:"drain, cordon, remove, taint, upgrade, upgrade-driver or apply"`
	Target   string `json:"target,omitempty" jsonschema:"drain, cordon: a node. remove: node/NAME, driver/NAME or device/POOL/NAME. taint: KEY[=VALUE]:EFFECT. upgrade: a release such as 1.37. upgrade-driver: NAMESPACE/NAME of its DaemonSet"`
	Manifest string `json:"manifest,omitempty" jsonschema:"apply: text of YAML manifests of classes, DeviceTaintRules, ResourceSlices or templates"`
	Node     string `json:"node,omitempty" jsonschema:"taint this node instead of devices"`
	Driver   string `json:"driver,omitempty" jsonschema:"taint devices of this driver"`
	Pool     string `json:"pool,omitempty" jsonschema:"taint devices of this pool"`
	Device   string `json:"device,omitempty" jsonschema:"taint devices of this name"`
}

func (in impactInput) command() *commandLine {
	c := newCommandLine("impact").one("change", in.Change, "drain", "cordon", "remove", "taint", "upgrade", "upgrade-driver", "apply")
	if len(c.problems) == 0 {
		c.words = append(c.words, in.Change)
	}
	if in.Change == "apply" {
		c.needs("manifest", in.Manifest)
	} else if len(c.problems) == 0 {
		c.needs("target", in.Target)
	}
	if in.Change != "taint" && in.Node+in.Driver+in.Pool+in.Device != "" {
		c.refuse("read node, driver, pool and device: they are for the change taint; leave them out")
	}
	return c.target(in.Target).manifest("filename", in.Manifest).
		flag("node", in.Node).flag("driver", in.Driver).flag("pool", in.Pool).flag("device", in.Device)
}

type diffInput struct {
	common
	From   string `json:"from,omitempty" jsonschema:"time of the recording to compare with: 2h (before its end), 09:14 or RFC 3339; not with the snapshot of --before"`
	Target string `json:"target,omitempty" jsonschema:"compare the answers about this TYPE/NAME alone"`
}

func (in diffInput) command() *commandLine {
	c := newCommandLine("diff").flag("target", in.Target)
	c.compares = true
	c.from = c.checkedTime("from", in.From)
	return c
}

type lintInput struct {
	common
	Manifest    string `json:"manifest" jsonschema:"text of YAML manifests"`
	Cluster     bool   `json:"cluster,omitempty" jsonschema:"also hold them against the cluster, as if they were applied"`
	Only        string `json:"only,omitempty" jsonschema:"only checks whose codes begin like this"`
	MinSeverity string `json:"min_severity,omitempty" jsonschema:"Error, Warning or Info (default)"`
}

func (in lintInput) command() *commandLine {
	c := newCommandLine("lint").manifest("filename", in.Manifest).flag("only", in.Only).flag("min-severity", in.MinSeverity)
	c.needs("manifest", in.Manifest)
	c.alone, c.cluster = !in.Cluster, in.Cluster
	return c
}

type celInput struct {
	common
	Expression string `json:"expression,omitempty" jsonschema:"as in the selector of a request"`
	FromDevice string `json:"from_device,omitempty" jsonschema:"instead: write expressions for devices like POOL/DEVICE"`
	Compare    string `json:"compare,omitempty" jsonschema:"show the devices for which this other expression differs"`
	Class      string `json:"class,omitempty" jsonschema:"only devices of this DeviceClass"`
	Driver     string `json:"driver,omitempty" jsonschema:"only devices of this driver"`
	Device     string `json:"device,omitempty" jsonschema:"only this device: POOL/DEVICE"`
	Manifest   string `json:"manifest,omitempty" jsonschema:"text of ResourceSlices in YAML, to take the devices from instead"`
}

func (in celInput) command() *commandLine {
	c := newCommandLine("cel")
	if in.FromDevice == "" {
		c.needs("expression", in.Expression)
	}
	return c.expression("", in.Expression).manifest("file", in.Manifest).flag("from-device", in.FromDevice).
		expression("compare", in.Compare).flag("class", in.Class).flag("driver", in.Driver).flag("device", in.Device)
}

type devicesInput struct {
	common
	Devices []string `json:"devices,omitempty" jsonschema:"POOL/DEVICE or patterns such as gpu-*"`
	Fields  string   `json:"fields,omitempty" jsonschema:"such as state=Free,node!=gpu-01; names: device, driver, health, node, pool, state (Free, Allocated, Shared, Blocked, Tainted, Unusable, Gone, Unpublished, Unhealthy)"`
	Class   string   `json:"class,omitempty" jsonschema:"only devices of this DeviceClass"`
	Node    string   `json:"node,omitempty" jsonschema:"only devices of this node"`
	Where   string   `json:"where,omitempty" jsonschema:"only devices for which this CEL expression is true"`
	Columns string   `json:"columns,omitempty" jsonschema:"attributes or capacities to show, separated by commas"`
	By      string   `json:"by,omitempty" jsonschema:"count in groups: device, driver, health, node, pool or state"`
	Limit   int      `json:"limit,omitempty" jsonschema:"only the first N"`
}

func (in devicesInput) command() *commandLine {
	return newCommandLine("devices").target(in.Devices...).flag("field-selector", in.Fields).flag("class", in.Class).flag("node", in.Node).
		expression("where", in.Where).flag("columns", in.Columns).flag("by", in.By).number("limit", in.Limit)
}

// addTools adds the tools to a server. canDiff is false if there is nothing to compare with.
func (s *server) addTools(to *sdk.Server, canDiff bool) {
	addTool[statusInput](s, to, "status", "What is wrong with devices in the cluster, on one screen: use of each DeviceClass, the causes behind waiting pods, who can act, and the fix. Start here.")
	addTool[whyInput](s, to, "why", "Why a pod, claim or workload does not get its devices, with verified remedies; who uses a device or node. Without a target: all waiting pods and their causes.")
	addTool[doctorInput](s, to, "doctor", "Faults of drivers, pools, classes, claims and taints, also where no pod waits, with stable codes and remedies.")
	addTool[fitInput](s, to, "fit", "How many more copies of a workload or claim fit now, and what stops the next one.")
	addTool[planInput](s, to, "plan", "Who gets devices next and who waits behind whom; also with nodes drained or added, or pods left out.")
	addTool[impactInput](s, to, "impact", "What a change would do to pods before it is made. Nothing is changed.")
	if canDiff {
		addTool[diffInput](s, to, "diff", "What changed between two states of the cluster, and why pods fit no longer.")
	}
	addTool[lintInput](s, to, "lint", "Faults in manifests of claims, templates, classes and pods, before they are applied.")
	addTool[celInput](s, to, "cel", "For which devices a CEL selector is true, false or fails; or write a selector for devices like one.")
	addTool[devicesInput](s, to, "devices", "List devices: state, node, and which claim and pods have them. Use fields, by and limit in a large cluster.")
}

// addTool adds a tool for a verb, with the input schema of its arguments.
func addTool[In input](s *server, to *sdk.Server, name, description string) {
	tool := &sdk.Tool{
		Name: name, Description: description,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: ptr.To(false), DestructiveHint: ptr.To(false)},
	}
	// There is no structured content: clients would read it beside the text.
	sdk.AddTool(to, tool, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		result, err := s.call(ctx, in)
		return result, nil, err
	})
}
