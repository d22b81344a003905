// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// AddWaiting adds pods to a mixed fleet that wait, each with a claim of its own, in all
// namespaces. They are of 20 shapes, in turns: whole GPUs, with and without selectors
// and constraints, partitions, network interfaces, FPGAs, and more devices than a node
// has; pods of a shape have the same priority.
func AddWaiting(s *snapshot.Snapshot, pods int) {
	for i := range pods {
		shape := i % 20
		c := claim(i, 0, 1)
		c.Name, c.UID = fmt.Sprintf("wants-%06d", i), uid(20, i)
		c.OwnerReferences, c.Annotations = nil, nil
		c.Spec.Devices, c.Status = waitingShape(shape), resourceapi.ResourceClaimStatus{}
		p := pod(i, 1, 1)
		p.Name, p.UID = fmt.Sprintf("waits-%06d", i), uid(21, i)
		p.CreationTimestamp = metav1.Time{Time: moment(3*pods - i)}
		p.Spec.NodeName, p.Spec.Priority = "", ptr.To(int32(shape%4*100))
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &c.Name}}
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		s.Claims, s.Pods = append(s.Claims, c), append(s.Pods, p)
	}
	sortByName(s.Claims)
	sortByName(s.Pods)
}

// waitingShape returns one of 20 things that pods wait for.
func waitingShape(n int) resourceapi.DeviceClaim {
	counts := []int64{1, 2, 4, 8, 16}
	request := exactly("devices", Class, counts[n%5])
	constraints := []resourceapi.DeviceConstraint(nil)
	switch n / 5 {
	case 1:
		request.Exactly.Selectors = []resourceapi.DeviceSelector{celSelector(`device.attributes["` + Driver + `"].architecture == "Hopper"`)}
	case 2:
		constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("resource.kubernetes.io/pcieRoot"))}}
	case 3:
		request.Exactly.DeviceClassName = []string{Partition, NIC, FPGA, Partition, FPGA}[n%5]
	}
	return resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request}, Constraints: constraints}
}
