// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// learnOptions are the parsed flags.
type learnOptions struct {
	// number is the number of the exercise, 0 for all.
	number           int
	file             string
	manifest, answer bool
	printer          *cli.Printer
	streams          genericiooptions.IOStreams
}

// newLearn returns the verb.
func newLearn(streams genericiooptions.IOStreams) *cobra.Command {
	o := &learnOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "learn [NUMBER]",
		Short: "Learn from ten pods that do not get their devices",
		Long: `Learn from ten exercises on an example cluster, which is part of the program: no
cluster is needed. Without NUMBER, list them; with it, say what the scheduler
says about a target that does not fit, and what has to change.

--manifest prints the manifest to correct. With -f, the scheduler's allocator
decides whether the target fits on the example cluster as if the file were
applied: first on what --manifest prints, then on what was corrected. The
answer has the form of 'kubectl dra why'. Any change that makes the target fit
solves the exercise; --answer shows one.

With -f, the exit code is 0 if it fits, 1 if it does not, 2 if that cannot be
determined. It is 3 for wrong usage or an unreadable file.`,
		Example: `  # Which exercises are there?
  kubectl dra learn

  # What is the first one, and why does its pod not fit?
  kubectl dra learn 1
  kubectl dra learn 1 --manifest | kubectl dra learn 1 -f -

  # Get the manifest, correct it with an editor, and check it
  kubectl dra learn 1 --manifest > fix.yaml
  kubectl dra learn 1 -f fix.yaml

  # Show a solution
  kubectl dra learn 1 --answer`,
		ValidArgsFunction: cli.Fixed(exerciseNumbers()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "Decide with the objects in this `FILE` as if they were applied; - is standard input.")
	cmd.Flags().BoolVar(&o.manifest, "manifest", false, "Print the manifest to correct.")
	cmd.Flags().BoolVar(&o.answer, "answer", false, "Show the change that solves the exercise, and that the allocator accepts it.")
	return cmd
}

// exerciseNumbers returns the numbers of the exercises.
func exerciseNumbers() []string {
	var all []string
	for i := range exercises() {
		all = append(all, strconv.Itoa(i+1))
	}
	return all
}

// complete checks the arguments and flags.
func (o *learnOptions) complete(cmd *cobra.Command, args []string) error {
	most := len(exercises())
	var given []string
	for _, name := range []string{"filename", "manifest", "answer"} {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	switch {
	case len(args) > 1:
		return cli.Usagef(cli.HelpHint(cmd), "expected the number of one exercise, found %d arguments", len(args))
	case len(args) == 0 && len(given) > 0:
		return cli.Usagef("Write: kubectl dra learn NUMBER "+given[0], "%s needs the number of an exercise", given[0])
	case len(given) > 1:
		return cli.Usagef("Leave one of them out.", "%s: only one can be used", strings.Join(given, " and "))
	case len(args) == 1:
		number, err := strconv.Atoi(args[0])
		if err != nil || number < 1 || number > most {
			return cli.Usagef("List them with: kubectl dra learn", "find exercise %q: expected a number from 1 to %d", args[0], most)
		}
		o.number = number
	}
	output := cli.NewOutputFlags()
	output.Color = cli.ColorAuto
	var err error
	o.printer, err = output.ToPrinter(o.streams)
	return err
}

func (o *learnOptions) run(ctx context.Context) error {
	if o.number == 0 {
		return o.list()
	}
	e := &exercises()[o.number-1]
	switch {
	case o.manifest:
		text, err := e.manifest()
		if err == nil {
			_, err = io.WriteString(o.streams.Out, text)
		}
		return err
	case o.answer:
		return o.showAnswer(ctx, e)
	case o.file != "":
		return o.check(ctx, e)
	default:
		return o.show(ctx, e)
	}
}

// list prints a line for each exercise.
func (o *learnOptions) list() error {
	page := render.NewPage(o.printer.Text)
	page.Text(0, render.Plain, "Ten targets of an example cluster that do not fit, each for another reason:")
	page.Blank()
	var rows [][]render.Cell
	for i, e := range exercises() {
		rows = append(rows, []render.Cell{
			{Text: strconv.Itoa(i + 1), Right: true},
			{Text: exerciseObject(e.target)},
			{Text: e.title},
		})
	}
	page.Rows(2, rows, 2, 40)
	page.Blank()
	page.Field("More", "kubectl dra learn 1 states the first exercise")
	return page.Print(o.streams.Out)
}

// exerciseObject returns the kind and the name of an object.
func exerciseObject(object api.ObjectRef) string {
	return object.Kind + " " + render.Qualified(object.Namespace, object.Name)
}

// show states an exercise.
func (o *learnOptions) show(ctx context.Context, e *exercise) error {
	snap, err := loadExample(ctx)
	if err != nil {
		return err
	}
	page := render.NewPage(o.printer.Text)
	page.Text(0, render.Strong, fmt.Sprintf("%d. %s: %s", o.number, exerciseObject(e.target), e.title))
	page.Field("kubectl", cmp.Or(e.said(snap), "nothing: it is not applied yet"))
	page.Field("Task", e.task)
	page.Field("Start", fmt.Sprintf("kubectl dra learn %d --manifest > fix.yaml", o.number))
	page.Field("Check", fmt.Sprintf("kubectl dra learn %d -f fix.yaml", o.number))
	return page.Print(o.streams.Out)
}

// decide explains the target of an exercise on the example cluster as if manifests were
// applied. Paths are the files that they are from, "-" for the standard input of opts.
func (e *exercise) decide(ctx context.Context, path string, opts files.Options) (*api.Explanation, error) {
	snap, err := loadExample(ctx)
	if err != nil {
		return nil, err
	}
	files, err := files.Manifests(ctx, []string{path}, opts)
	if err != nil {
		return nil, err
	}
	given := manifest.Place(files, metav1.NamespaceDefault, []string{path})
	if !given.Has(e.object) {
		return nil, cli.Usagef("Start from what --manifest prints.", "read %s: expected %s in it, with the correction", path, exerciseObject(e.object))
	}
	snap = given.Over(snap)
	found, err := explain.ExplainEach(ctx, cluster.New(snap), []explain.Options{{Object: e.target}})
	if err != nil {
		return nil, err
	}
	if found[0].Err == nil {
		given.Settle(snap, found[0].Explanation)
	}
	return found[0].Explanation, found[0].Err
}

// check decides whether a file solves an exercise.
func (o *learnOptions) check(ctx context.Context, e *exercise) error {
	found, err := e.decide(ctx, o.file, files.Options{Stdin: o.streams.In})
	if err != nil {
		return err
	}
	if err := o.printer.Print([]*api.Explanation{found}, false); err != nil {
		return err
	}
	if err := exerciseOutcome(found); err != nil {
		return err
	}
	page := render.NewPage(o.printer.Text)
	next := "that was the last one; docs/start.md says where to go on"
	if o.number < len(exercises()) {
		next = fmt.Sprintf("kubectl dra learn %d", o.number+1)
	}
	page.Field("Solved", "Exercise "+strconv.Itoa(o.number)+". Next: "+next)
	return page.Print(o.streams.Out)
}

// showAnswer prints the edits of the answer, and what the allocator says about them.
func (o *learnOptions) showAnswer(ctx context.Context, e *exercise) error {
	text, err := e.corrected()
	if err != nil {
		return err
	}
	found, err := e.decide(ctx, "-", files.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		return err
	}
	page := render.NewPage(o.printer.Text)
	for _, change := range e.answer {
		page.Field("Replace", change.from)
		page.Field("with", change.to)
	}
	title, _ := explanation.Title(found)
	page.Field("Result", title)
	if err := page.Print(o.streams.Out); err != nil {
		return err
	}
	return exerciseOutcome(found)
}

// exerciseOutcome returns the error with the exit code of an answer, nil if the target fits.
func exerciseOutcome(found *api.Explanation) error {
	if code := cli.VerdictCode(found.Verdict); code != cli.ExitFits {
		return &cli.OutcomeError{Code: code}
	}
	return nil
}

// exercise is a target that does not fit, with a manifest to correct.
type exercise struct {
	// title is the reason why the target does not fit, in a few words.
	title string
	// target has to fit.
	target api.ObjectRef
	// object is the object that the manifest begins with: the target, unless the fault is elsewhere.
	object api.ObjectRef
	// task says which corrections are wanted.
	task string
	// answer are the edits of the manifest that make it fit.
	answer []exerciseEdit
}

// exerciseEdit replaces one text of a manifest.
type exerciseEdit struct{ from, to string }

// onPod returns an exercise whose manifest is a pod with its templates.
func onPod(namespace, name, title, task string, answer ...exerciseEdit) exercise {
	pod := api.Ref(api.KindPod, namespace, name)
	return exercise{title: title, target: pod, object: pod, task: task, answer: answer}
}

// exercises returns all exercises, the shortest first.
func exercises() []exercise {
	job := api.Ref("Job", "research", "sweep").In("batch")
	return []exercise{
		onPod("media", "upscale-0", "a class that does not exist",
			"Let request gpu ask for a DeviceClass that the cluster has.",
			exerciseEdit{"gpu.exmaple.com", "gpu.example.com"}),
		onPod("research", "eval-0", "an attribute that no device has",
			"Let the selector read an attribute that the devices of the class have.",
			exerciseEdit{".productname ", ".productName "}),
		onPod("serving", "embed-2", "devices that other pods use",
			"The model also runs on Atlas-80. Let the pod take devices that nobody uses.",
			exerciseEdit{"Cirrus-40", "Atlas-80"}),
		onPod("research", "pretrain-0", "a constraint that leaves too few devices",
			"All GPUs have to be at one PCIe root. Ask for as many as one root has.",
			exerciseEdit{"count: 8", "count: 4"}),
		onPod("storage", "replicate-0", "capacity that is used up",
			"The pod also works with less bandwidth. Ask for what a card has left.",
			exerciseEdit{"bandwidth: 80G", "bandwidth: 50G"}),
		onPod("vision", "segment-3", "partitions whose counters are used up",
			"The model also runs on a quarter of a card. Ask for a partition that can still be made.",
			exerciseEdit{`"half"`, `"quarter"`}),
		{
			title:  "a device that an administrator has tainted",
			target: api.Ref(api.KindPod, "media", "encode-0"),
			object: api.Ref("DeviceTaintRule", "", "decoder-firmware").In("resource.k8s.io"),
			task:   "The update of the decoder is done. Change the rule so that it keeps no pods away.",
			answer: []exerciseEdit{{"effect: NoSchedule", "effect: None"}},
		},
		onPod("vision", "calibrate-0", "a pool that is incomplete",
			"The driver on gpu-09 is still starting. Ask for four GPUs of node gpu-03 instead.",
			exerciseEdit{"hostname: gpu-09", "hostname: gpu-03"}, exerciseEdit{"allocationMode: All", "count: 4"}),
		onPod("research", "notebook-0", "a node that has the devices and too few CPUs",
			"The pod has to run in rack r1, and works with fewer CPUs. Ask for what a node there has left.",
			exerciseEdit{`cpu: "120"`, `cpu: "48"`}),
		{
			title:  "a gang that fits only in part",
			target: job,
			object: job,
			task:   "The job may run in smaller gangs. Ask for as many pods at a time as fit, in the Job and its PodGroup.",
			answer: []exerciseEdit{{"minCount: 20", "minCount: 9"}, {"parallelism: 20", "parallelism: 9"}},
		},
	}
}

// exampleFiles are the files of examples/cluster, gangManifest is examples/manifests/gang.yaml; both
// are written by make generate.
var (
	//go:embed learn_cluster.yaml.gz
	exampleFiles []byte //nolint:gochecknoglobals // The compiler fills it.
	//go:embed learn_gang.yaml
	gangManifest string //nolint:gochecknoglobals // The compiler fills it.
)

// exampleText returns the YAML of the example cluster.
func exampleText() (string, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(exampleFiles))
	if err != nil {
		return "", fmt.Errorf("read the example cluster: %w", err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		return "", fmt.Errorf("read the example cluster: %w", err)
	}
	return string(text), nil
}

// loadExample returns the snapshot of the example cluster.
func loadExample(ctx context.Context) (*snapshot.Snapshot, error) {
	text, err := exampleText()
	if err != nil {
		return nil, err
	}
	return files.Content(ctx, "example cluster", []byte(text), files.Options{})
}

// manifest returns the manifest to correct: the object of the exercise and, of a pod, the
// claim templates that it uses.
func (e *exercise) manifest() (string, error) {
	if e.object.Kind == "Job" {
		return gangManifest, nil
	}
	text, err := exampleText()
	if err != nil {
		return "", err
	}
	wanted := []api.ObjectRef{e.object}
	var parts []string
	// A pod comes after the templates that it uses.
	documents := strings.Split(text, "\n---\n")
	slices.Reverse(documents)
	for _, document := range documents {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return "", fmt.Errorf("read the example cluster: %w", err)
		}
		is := func(ref api.ObjectRef) bool {
			return ref.Kind == object.GetKind() && ref.Namespace == object.GetNamespace() && ref.Name == object.GetName()
		}
		if !slices.ContainsFunc(wanted, is) {
			continue
		}
		claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourceClaims")
		for _, claim := range claims {
			if claim, ok := claim.(map[string]any); ok {
				name, _ := claim["resourceClaimTemplateName"].(string)
				wanted = append(wanted, api.Ref(api.KindTemplate, e.object.Namespace, name))
			}
		}
		// What the API server and controllers have written is nothing to apply.
		for _, field := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "ownerReferences"}} {
			unstructured.RemoveNestedField(object.Object, field...)
		}
		part, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("print %s: %w", object.GetName(), err)
		}
		parts = append(parts, string(part))
	}
	return strings.Join(parts, "---\n"), nil
}

// corrected returns the manifest with the edits of the answer.
func (e *exercise) corrected() (string, error) {
	text, err := e.manifest()
	if err != nil {
		return "", err
	}
	for _, change := range e.answer {
		text = strings.Replace(text, change.from, change.to, 1)
	}
	return text, nil
}

// said returns what the scheduler said about the target, empty if it is not in the cluster.
func (e *exercise) said(snap *snapshot.Snapshot) string {
	for _, pod := range snap.Pods {
		if pod.Namespace != e.target.Namespace || pod.Name != e.target.Name || e.target.Kind != api.KindPod {
			continue
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return condition.Message
			}
		}
	}
	return ""
}
