// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"

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
