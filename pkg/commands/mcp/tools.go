// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
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

// Limits of arguments, which are more than any name or expression of the API has.
const (
	mostOfArgument = 16 << 10
	mostOfManifest = 4 << 20
)

// commandLine is the command line of a verb while it is made from the arguments of a tool.
type commandLine struct {
	// words are the verb, flags its flags, and operands the words that are no flags.
	words, flags, operands []string
	// input is standard input.
	input string
	// everywhere is true for a question about all namespaces, unless one is chosen.
	everywhere bool
	// alone is true for a question that the cluster is not needed for, and cluster for one
	// where it has to be asked for.
	alone, cluster bool
	// compares is true for a comparison with the old state, which is the recording at the
	// time from or the snapshot of the server.
	compares bool
	from     string
	// moments are the arguments that are times of a recording.
	moments []string
	// problems are the errors in the arguments.
	problems []error
}

func newCommandLine(verb string) *commandLine { return &commandLine{words: []string{verb}} }

// refuse records an error in the arguments.
func (c *commandLine) refuse(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// flag adds a flag for each value that is not empty.
func (c *commandLine) flag(name string, values ...string) *commandLine {
	for _, value := range values {
		if value != "" {
			c.flags = append(c.flags, "--"+name+"="+c.checked(argumentOf(name), value))
		}
	}
	return c
}

// is adds a flag that is on or off.
func (c *commandLine) is(name string, on bool) *commandLine {
	if on {
		c.flags = append(c.flags, "--"+name)
	}
	return c
}

// number adds a flag for a number that is not 0.
func (c *commandLine) number(name string, n int) *commandLine {
	if n != 0 {
		c.flags = append(c.flags, "--"+name+"="+strconv.Itoa(n))
	}
	return c
}

// time adds a flag for a time, if there is one.
func (c *commandLine) time(name, value string) *commandLine {
	if value = c.checkedTime(name, value); value != "" {
		c.moments = append(c.moments, name)
		c.flags = append(c.flags, "--"+name+"="+value)
	}
	return c
}

// target adds operands. None can be read as a flag or as standard input.
func (c *commandLine) target(values ...string) *commandLine {
	for _, value := range values {
		switch {
		case strings.HasPrefix(value, "-"):
			c.refuse("read %q: expected the name of an object, which does not begin with -", value)
		case value != "":
			c.operands = append(c.operands, c.checked("the target", value))
		}
	}
	return c
}

// expression adds a flag for a CEL expression, which may have lines, if there is one; without a
// name, an operand.
func (c *commandLine) expression(name, text string) *commandLine {
	switch {
	case text == "":
	case name == "":
		c.operands = append(c.operands, c.short("expression", text))
	default:
		c.flags = append(c.flags, "--"+name+"="+c.short(argumentOf(name), text))
	}
	return c
}

// manifest makes a text standard input, and adds the flag that reads it.
func (c *commandLine) manifest(flag, text string) *commandLine {
	if text == "" {
		return c
	}
	if len(text) > mostOfManifest {
		c.refuse("read manifest: it has %d bytes; at most %d are read", len(text), mostOfManifest)
	}
	c.input = text
	c.flags = append(c.flags, "--"+flag+"=-")
	return c
}

// one refuses a value that is not among the allowed ones.
func (c *commandLine) one(name, value string, allowed ...string) *commandLine {
	if !slices.Contains(allowed, value) {
		c.refuse("read %s: %q is not one of %s", name, value, strings.Join(allowed, ", "))
	}
	return c
}

// needs refuses an argument that is empty.
func (c *commandLine) needs(name, value string) {
	if value == "" {
		c.refuse("read %s: expected one, found none", name)
	}
}

// short returns a value, and refuses a very long one.
func (c *commandLine) short(name, value string) string {
	if len(value) > mostOfArgument {
		c.refuse("read %s: it has %d bytes; at most %d are read", name, len(value), mostOfArgument)
	}
	return value
}

// checked returns a value, and refuses what cannot be a name.
func (c *commandLine) checked(name, value string) string {
	if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		c.refuse("read %s: it has a control character at position %d", name, i)
	}
	return c.short(name, value)
}

// times matches the forms of times. None can be a part of a path, since none has a slash.
var times = regexp.MustCompile(`^[0-9][0-9A-Za-z:.+-]*$`) //nolint:gochecknoglobals // It never changes.

// checkedTime returns a time, and refuses what cannot be one.
func (c *commandLine) checkedTime(name, value string) string {
	if value != "" && !times.MatchString(value) {
		c.refuse("read %s: %q is not a time such as 2h, 09:14 or 2026-09-01T09:14:00Z", name, value)
	}
	return value
}

// args returns the words of the command line, with the flags that all tools share.
func (c *commandLine) args(o *options, in common) ([]string, error) {
	c.flag("namespace", in.Namespace)
	if in.Detail != "" {
		c.one("detail", in.Detail, "short", "wide", "json")
	}
	if in.Detail == "wide" || in.Detail == "json" {
		c.flags = append(c.flags, "--output="+in.Detail)
	}
	at := c.checkedTime("at", in.At)
	if at != "" {
		c.moments = append(c.moments, "at")
	}
	if o.recording == "" {
		for _, name := range c.moments {
			c.refuse("read %s: it needs a recording, and no recording is served; leave it out", name)
		}
	}
	var reads []string
	switch {
	case c.alone:
		reads = o.settings
	case at == "":
		reads = slices.Concat(o.settings, o.reads, o.at)
	default:
		reads = slices.Concat(o.settings, o.reads, []string{"--at=" + at})
	}
	if c.compares {
		old := o.before
		switch {
		case o.recording != "" && c.from != "":
			old = o.recording + "@" + c.from
		case c.from != "":
			c.refuse("read from: it needs a recording, and no recording is served; leave it out")
		case old == "":
			c.refuse("read from: expected a time of the recording, such as 2h; found none")
		}
		c.operands = append(c.operands, old)
	}
	if c.cluster && o.live {
		c.flags = append(c.flags, "--cluster")
	}
	if in.Namespace == "" && !c.alone && (o.everywhere || c.everywhere && !o.hasNamespace) {
		c.flags = append(c.flags, "--all-namespaces")
	}
	var lines []string
	for _, problem := range c.problems {
		lines = append(lines, render.Escape(problem.Error()))
	}
	if len(lines) > 0 {
		return nil, errors.New(strings.Join(lines, "\n"))
	}
	// The last value of a flag counts: the flags of the client come after the flags of the server.
	return slices.Concat(c.words, reads, c.flags, []string{"--"}, c.operands), nil
}
