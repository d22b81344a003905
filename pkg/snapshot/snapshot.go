package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is the state of a cluster at about one point in time. All objects are of the
// newest API version known to this module, whatever version the server or the file had.
// Each list is sorted by namespace and name and holds every object at most once. Nobody
// changes a Snapshot, or an object in it, after [collect.Collect] or [files.Load] returned
// it.
type Snapshot struct {
	// Source says in a few words where it comes from, for messages:
	// "cluster https://10.0.0.1:6443" or "file cluster.yaml".
	Source string
	Clock
	Release
	// Served has what the API server serves of the group resource.k8s.io, each as
	// RESOURCE.VERSION.GROUP ("resourceclaims.v1.resource.k8s.io"); nil if unknown.
	Served []string
	// Gaps lists what could not be read and why. An empty list of objects
	// without a gap means that there are none.
	Gaps []Gap
	// Skipped counts, by kind ("apps/v1, Kind=ControllerRevision"), the
	// documents of a file that are none of this program's business.
	Skipped map[string]int
	// SkippedNames has them by kind and name ("Service ml/web"), in their
	// order. Only [files.Manifests] notes it.
	SkippedNames []string

	Nodes      []*corev1.Node
	Namespaces []*corev1.Namespace
	Pods       []*corev1.Pod
	// Events are the events of pods, claims and workloads with claims. A live snapshot has
	// the events of its target, of the claims of the target's namespace, and of the claims
	// of the pods there, or events that tell whether anything is wrong: see
	// [collect.Options].
	Events []*corev1.Event

	Slices     []*resourceapi.ResourceSlice
	Classes    []*resourceapi.DeviceClass
	Claims     []*resourceapi.ResourceClaim
	Templates  []*resourceapi.ResourceClaimTemplate
	TaintRules []*resourceapi.DeviceTaintRule

	// PoolStatuses are answered requests for the status of pools (KEP-5677):
	// what a controller of the cluster counts in them, which may read the claims
	// of all namespaces. [collect.Collect] never has any, see [collect.AskPoolStatus].
	PoolStatuses []*resourcev1alpha3.ResourcePoolStatusRequest

	PodGroups []*schedulingapi.PodGroup
	// CompositePodGroups are read only where a PodGroup has one as its parent; see
	// Listed.
	CompositePodGroups []*schedulingv1alpha3.CompositePodGroup
	// Workloads are the workloads in a file. A live snapshot only has its target, the
	// DaemonSets with plugins for the kubelet, and the workloads whose pods the API server
	// refuses.
	Workloads []*Workload
	// Requirements of a pod besides devices. They are read only if a waiting pod depends on
	// them; Listed has the resources that were read, so that an empty list means that there
	// are none. See [Snapshot.Unknown].
	Quotas         []*corev1.ResourceQuota
	LimitRanges    []*corev1.LimitRange
	VolumeClaims   []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storageapi.StorageClass
	// Budgets are read only where pods are about to be evicted.
	Budgets []*policyapi.PodDisruptionBudget
	Listed  []string
	// ComputeDomains and Cliques are from NVIDIA's driver, for the nodes whose GPUs share
	// memory. They are read only if a claim or a template can name one; see Listed.
	ComputeDomains []*ComputeDomain
	Cliques        []*ComputeDomainClique
	// ClusterPolicies are from NVIDIA's GPU Operator, and PluginConfigs are ConfigMaps with configurations
	// of NVIDIA's device plugin. They are read only where it matters how device plugins divide GPUs; see
	// Listed.
	ClusterPolicies []*ClusterPolicy
	PluginConfigs   []*corev1.ConfigMap
	// Queued are the workloads of Kueue. A live snapshot only has those in the
	// namespace of its target, and only if Kueue holds something back there.
	Queued []*QueuedWorkload
	// Outlines are the outlines of indirect owners of pods, of the queues of Kueue and of
	// HorizontalPodAutoscalers. A live snapshot has the objects that its target, or pods
	// with devices, depend on.
	Outlines []*Outline
}

// Gap is something that could not be read.
type Gap struct {
	// Resource is the plural resource name with its group, as in RBAC rules:
	// "resourceclaims.resource.k8s.io", "nodes", or a path like "/metrics".
	Resource string `json:"resource"`
	// Namespace is set if only one namespace could be read instead of all:
	// then the snapshot has the objects of that namespace and no others.
	Namespace string `json:"namespace,omitempty"`
	// Reason is one sentence for people: who may not, or what failed.
	Reason string `json:"reason"`
	// LeftOut tells that the objects could be read, and that some of them were
	// left out, because nothing can be computed with what they have.
	LeftOut bool `json:"leftOut,omitempty"`
}

// Gap returns the gap in the given resource, see [Gap.Resource], or nil if all of it was
// read. Of several gaps it is one in all namespaces.
func (s *Snapshot) Gap(resource string) *Gap {
	var found *Gap
	for i := range s.Gaps {
		if s.Gaps[i].Resource == resource && (found == nil || found.Namespace != "" && s.Gaps[i].Namespace == "") {
			found = &s.Gaps[i]
		}
	}
	return found
}

// PlacementGap returns a gap in what decides where pods fit, or in one of further resources; nil if
// all of it was read.
func (s *Snapshot) PlacementGap(further ...string) *Gap {
	for _, resource := range append([]string{ResourceSlices, ResourceNodes, ResourceClaims, ResourcePods, ResourceTaintRules, ResourceClasses}, further...) {
		if gap := s.Gap(resource); gap != nil {
			return gap
		}
	}
	return nil
}

// AssumeVersion makes the snapshot one of a cluster of another version, in
// which the gates that were detected mean nothing.
func (s *Snapshot) AssumeVersion(version string) {
	s.ServerVersion, s.Emulator = version, ""
	maps.DeleteFunc(s.Gates, func(_ string, gate Gate) bool { return gate.Source == GateFromMetrics })
	s.Gaps = slices.DeleteFunc(s.Gaps, func(gap Gap) bool { return gap.Resource == ResourceMetrics })
	if minor, ok := MinorVersion(version); ok && minor > NewestMinor {
		s.Gaps = append(s.Gaps, Gap{Resource: ResourceMetrics, Reason: fmt.Sprintf(
			"Kubernetes %s is newer than 1.%d, the newest that this program knows", version, NewestMinor)})
	}
}

// Notes say which release is answered as another one, and which objects are left out since
// no supported release has them.
func (s *Snapshot) Notes() []string {
	var notes []string
	if note := s.VersionNote(); note != "" {
		notes = append(notes, note)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Skipped)) {
		if version, name, found := strings.Cut(kind, ", Kind="); found && strings.HasPrefix(version, "resource.k8s.io/v1alpha") {
			notes = append(notes, fmt.Sprintf("left out: %d × %s of %s, which Kubernetes 1.32 removed", s.Skipped[kind], name, version))
		}
	}
	return notes
}

// The names that [Gap.Resource] has for what a snapshot holds.
const (
	ResourceNodes        = "nodes"
	ResourceNamespaces   = "namespaces"
	ResourcePods         = "pods"
	ResourceEvents       = "events"
	ResourceSlices       = "resourceslices.resource.k8s.io"
	ResourceClasses      = "deviceclasses.resource.k8s.io"
	ResourceClaims       = "resourceclaims.resource.k8s.io"
	ResourceTemplates    = "resourceclaimtemplates.resource.k8s.io"
	ResourceTaintRules   = "devicetaintrules.resource.k8s.io"
	ResourcePoolStatuses = "resourcepoolstatusrequests.resource.k8s.io"
	ResourcePodGroups    = "podgroups.scheduling.k8s.io"
	ResourceDaemonSets   = "daemonsets.apps"
	ResourceJobs         = "jobs.batch"
	ResourceQueued       = "workloads.kueue.x-k8s.io"
	ResourceLocalQueues  = "localqueues.kueue.x-k8s.io"
	ResourceClusterQueue = "clusterqueues.kueue.x-k8s.io"
	ResourceAutoscalers  = "horizontalpodautoscalers.autoscaling"
	ResourceMetrics      = "/metrics"

	ResourceQuotas         = "resourcequotas"
	ResourceLimitRanges    = "limitranges"
	ResourceVolumeClaims   = "persistentvolumeclaims"
	ResourceVolumes        = "persistentvolumes"
	ResourceStorageClasses = "storageclasses.storage.k8s.io"
	ResourceBudgets        = "poddisruptionbudgets.policy"

	ResourceCompositePodGroups = "compositepodgroups.scheduling.k8s.io"

	ResourceComputeDomains = "computedomains.resource.nvidia.com"
	ResourceCliques        = "computedomaincliques.resource.nvidia.com"

	ResourceClusterPolicies = "clusterpolicies.nvidia.com"
	ResourcePluginConfigs   = "configmaps"
)

// ResourceTemplatesV1 is how [Snapshot.Served] calls ResourceClaimTemplates in their newest
// version.
const ResourceTemplatesV1 = "resourceclaimtemplates.v1.resource.k8s.io"

// Resources returns all of these names.
func Resources() []string {
	return []string{
		ResourceNodes, ResourceNamespaces, ResourcePods, ResourceEvents, ResourceSlices, ResourceClasses, ResourceClaims,
		ResourceTemplates, ResourceTaintRules, ResourcePoolStatuses, ResourcePodGroups, ResourceDaemonSets, ResourceJobs, ResourceQueued, ResourceLocalQueues, ResourceClusterQueue, ResourceAutoscalers, ResourceMetrics,
		ResourceQuotas, ResourceLimitRanges, ResourceVolumeClaims, ResourceVolumes, ResourceStorageClasses, ResourceCompositePodGroups, ResourceBudgets,
		ResourceComputeDomains, ResourceCliques, ResourceClusterPolicies, ResourcePluginConfigs,
	}
}

// Argument names an object as the command line does.
type Argument struct {
	// Resource is the resource as the user typed it: "deployment", "job.batch", "pod".
	Resource  string
	Namespace string
	Name      string
}

// DataPrefix is how the link begins that holds a snapshot in a page of HTML: gzipped JSON in base64.
const DataPrefix = "data:application/gzip;base64,"

// KindSnapshot is the kind of the header of a saved snapshot.
const KindSnapshot = "Snapshot"

// Header has the facts of a saved snapshot besides its objects.
type Header struct {
	metav1.TypeMeta `json:",inline"`
	TakenAt         *time.Time `json:"takenAt,omitempty"`
	ServerVersion   string     `json:"serverVersion,omitempty"`
	// Emulator is [Release.Emulator].
	Emulator string `json:"emulator,omitempty"`
	// Served is [Snapshot.Served].
	Served []string        `json:"served,omitempty"`
	Gates  map[string]Gate `json:"gates,omitempty"`
	Gaps   []Gap           `json:"gaps,omitempty"`
	// Listed is [Snapshot.Listed].
	Listed []string `json:"listed,omitempty"`
	// Objects is the number of the objects that were saved with the header. A file with
	// fewer is cut short. Nil where it is not known: in files that were written by hand.
	Objects *int `json:"objects,omitempty"`
}
