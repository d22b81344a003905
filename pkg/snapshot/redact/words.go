// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// templateWords returns the words of the messages that the scheduler, the kubelet, the
// controllers, the API server and this program write about pods, claims and nodes. Of a
// message nothing stays but these, numbers and the vocabulary of drivers: whatever else is
// in it may be anything.
func templateWords() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(wordsOfTemplates) {
		words[word] = true
	}
	return words
}

const wordsOfTemplates = `
a about above accept accepted access account accounts across active add added adding address addresses admin adminaccess admission admit admitted affinity
after again agent ago all allocatable allocate allocated allocates allocating allocation allocations allocationmode allocationresult allow allowed
allows already also alternative always an and annotation annotations another anti antiaffinity any api apis apiserver apiversion app applied apply applying
approved are aren argument arguments as asked asks asserting assigned assigning assignment at attach attached attempt attempts attribute attributes
authorization authorized available away back backoff bad batch be became because become been before behind being below beta between beyond bind
binding bindingconditions bindings binds block blocked boot both bound broken but by bytes cache calculated calculation calculationcomplete call called can cancel canceled cancelled cannot
capacities capacity cause cdi cel change changed changes channel channels check checked checking checkpoint checkpoints checks claim claimed claims class
classes cleanup client close closed cluster clusters code com combination command commands comparing compile compiled complete completed completely
completion component compute computedomain computedomains concurrent condition conditions config configs configuration configurations conflict conflicting connect connected connection constraint
constraints consumable consume consumed consumer consumers consumescounters consumption contain container containercreating containerd containers contains contents context continue control
controller controllers copy core corrupted cost could couldn count counted counter counters counts couldnt cpu crash crashed crashloopbackoff create
created creates creating creation cri current currently daemon daemonset daemonsets data days deadline deadlineexceeded deallocate deallocated deallocating deallocation debug declared
declares declaring decode decoding default defaulted defaults define defined delay delete deleted deletes deleting deletion denied deny depends deployment
deployments deprecated derived desc description deschedule desired detach detached detect detected determine device deviceclass deviceclasses devices devicetaint
devicetaintmanager devicetaintrule devicetaintrules devicestatus dial dialing did didn different directory disabled disallowed disk disruption distinct do does doesn domain done down dra drain
driver drivers drop dropped dry due duplicate during dynamic dynamicresources e each ecc effect either eligible else empty enabled end ended endpoint ends enforce
enough ensure enum eof ephemeral equal errimagepull error errors etc etcd eval evaluate evaluated evaluation event events evict evicted evicting eviction evictions exact exactcount exactly
exceed exceeded exceeds except exec execution exist existing exists exit exited expect expected expired explicitly exponential expose expression extended external extra facts fail failed
failedpreparedynamicresources failedscheduling failing fails failure failures false feature features fell fetch few field fields file files filter find finish finished first fit fits flag for
forbidden force forced form format found free from full function gang gangs garbage gate gated gates gave generate generated generating generation get gets getting gi given go gone gpu gpus grace granted
group groups grpc guaranteed guarding had handle handler hard has hasn have haven having health healthy held hidden hit hold holds host hour hours http https i id identical identity ids if ignore
ignored ignoring image imagepullbackoff images immediate immutable impossible in inactive inadmissible include included incompatible incomplete incorrect index inference init initialize initialized
initializing injection input inspect instance insufficient int integer intended interface internal interrupted into invalid io is isn issue it item items its itself job jobs json just keep kept key keys
kib kill killed killing kind kinds know known kubeapiserver kubelet kubernetes kueue label labels larger last lasttransitiontime later latest launched least leave left less let level lib library limit
limited limits line link list listed listen listening lists live load loaded local localqueue locally located lock locked long longer longest look lost low lower made make makes manage managed
manager manifest many map mapped mapping mark marked match matchattribute matched matches matching max maximum may maybe meets mem memory message metadata method metrics mi mib mig min minimum minute minutes
missing mode model modified monitor more most mount mounted mounts move moved much multiple must n name named names namespace namespaced namespaces need needed needs network networks never new newer next no
node nodeaffinity nodelost nodename nodenotready nodeprepareresources nodeports nodeports nodeselector nodes nodeunprepareresources noexecute nominated none noschedule nor normal not nothing notready now null number numbers o object objects
obsolete of off offline offset ok old older on once one ones only opaque open opened operation operator optional or oneof order other others ours out outdated over overlapping owned owner owners page parameter parameters
parent parse parsed parsing part partition partitions partitiontypemissing parts passed patch path pending per period permission permissions permitted persistent persistentvolume persistentvolumeclaim persistentvolumeclaims pid plan
please plugin plugins pod podaffinity podgroup podgroups podinitializing podresourceclaim pods podscheduled policies policy pool pools port ports possible post posting prebind predicates preempt preempted preempting preemption preemptor preferred
prefix prepare prepared preparing present pressure prevent prevented previous previously prioritized priority probe probes problem problems process processed processing profile program progress protect
protocol provide provided provider provision provisioned provisioner provisioning publish published pull pulled pulling put qos queue queued queues quota quotareserved quotas raised ran range re reach reachable reached read
readiness reading ready readonly reason receive received recent record recover recreate refer reference referenced references refresh refused register registered registering registration registry reject rejected
relaxed release released releases releasing remain remaining remains remove removed removing replace replaced replicas replicaset report reported reports request requested requests require required
requirement requirements requires reschedule rescheduling reservation reserve reserved reservedfor reserving reset resource resourceclaim resourceclaims resourceclaimtemplate resourceclaimtemplates resourcequota resources resourceslice resourceslices resourceversion respect
respond responded response restart restarted restarting restarts result results retried retry retrying return returned returns role root rpc rule rules run running runs runtime runtimeclass s same sandbox satisfied
satisfies satisfy save scale schedule scheduled scheduler schedulers schedules scheduling schedulinggated scope score search second seconds section see select selected selecting selector selectors send sending sent
server servers service serviceaccount set sets setting several share shared sharing short should shut shutdown shutting since single size sizes skip skipped slice slices slow so sock socket some soon
source space spec specific specified specify spread stage standard start started starting starts startup state stateful statefulset statefulsets status statuses stay step still stop stopped storage storageclass
store stored storing string strict subrequest successful successfully such support supported supports suspended switch sync syncing syntax system t taint tainted taintmanagereviction taints taken takes target task
tcp template templates temporarily terminal terminate terminated terminating termination than that the their them then there these they this those though through throttled time timed timeout timeouts times to together token
tolerate tolerated toleration tolerations tolerate too took topology total track transient transition transport tried tries trigger triggered true try trying twice two type types u uid unable unassigned unauthorized unavailable unbound uncorrectable under unexpected unhealthy
unit unix unknown unless unmarshal unmounted unplug unprepare unprepared unreachable unready unregistered unrecognized unreserve unresolvable unschedulable unset unsuccessful unsuitable unsupported until untolerated unused up update updated updates updating upgrade upon usable usage use used user users
uses using v validate validated validating validation valid value values verified verify version versions via violate violated violates violation volume volumebinding volumes wait waited waiting waits want wanted wants warning was wasn watch we webhook
were what when where whether which while who whose will with within without won work worker working workload workloads works would write written wrong wrote x xid yaml yes yet you your zero zone zones
example helpful var unix k8s productname pcieroot resource.kubernetes.io kubernetes.io config.k8s.io
`
