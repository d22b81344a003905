// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The API versions that are understood, the best first.
const (
	draGroup        = "resource.k8s.io"
	schedulingGroup = "scheduling.k8s.io"
)

func draVersions() []string        { return []string{"v1", "v1beta2", "v1beta1", "v1alpha3"} }
func schedulingVersions() []string { return []string{"v1beta1", "v1alpha3", "v1alpha2"} }

// servedAPIs tells which versions of the optional resources the server has;
// empty for none.
type servedAPIs struct {
	// dra is the API of claims, classes, slices and templates.
	dra        string
	taintRules string
	podGroups  string
	// compositePodGroups is set if the server has CompositePodGroups, all in v1alpha3.
	compositePodGroups bool
}

// discover finds out the server's version and what it serves. The server is
// asked, not kubectl's discovery cache on disk: that is up to six hours old,
// and what matters here changes with a restart of the API server.
func discover(ctx context.Context, clients Clients, namespace string, s *snapshot.Snapshot) (servedAPIs, error) {
	api := clients.Discovery
	// The first request goes alone: a credential plugin that fails, or asks
	// the user something, then does so once.
	serverVersion, err := api.ServerVersionWithContext(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return servedAPIs{}, err
	}

	dra := make([]*metav1.APIResourceList, len(draVersions()))
	scheduling := make([]*metav1.APIResourceList, len(schedulingVersions()))
	group, ctx := errgroup.WithContext(ctx)
	probe := func(groupName, versionName string, found **metav1.APIResourceList) {
		group.Go(func() error {
			list, err := api.ServerResourcesForGroupVersionWithContext(ctx, groupName+"/"+versionName)
			switch {
			case err == nil:
				*found = list
				return nil
			case apierrors.IsNotFound(err):
				return nil
			case apierrors.IsForbidden(err):
				// Discovery is open to everybody who is logged in, by default.
				// Somebody who may not even do that can still be allowed to list.
				*found, err = triedOut(ctx, clients, namespace, groupName, versionName)
				return err
			default:
				return err
			}
		})
	}
	for i, name := range draVersions() {
		probe(draGroup, name, &dra[i])
	}
	for i, name := range schedulingVersions() {
		probe(schedulingGroup, name, &scheduling[i])
	}
	if err := group.Wait(); err != nil {
		return servedAPIs{}, err
	}

	if s.ServerVersion == "" && serverVersion != nil {
		s.ServerVersion = effectiveVersion(serverVersion)
		if s.ServerVersion != serverVersion.GitVersion {
			s.Emulator = serverVersion.GitVersion
		}
	}
	s.Served = allServed(dra)
	claims := served(draVersions(), dra, "resourceclaims")
	if claims == "" {
		return servedAPIs{}, noDRA(clients.Address(), serverVersion, dra)
	}
	return servedAPIs{
		dra:        claims,
		taintRules: served(draVersions(), dra, "devicetaintrules"),
		podGroups:  served(schedulingVersions(), scheduling, "podgroups"),

		compositePodGroups: served(schedulingVersions(), scheduling, "compositepodgroups") == schedulingv1alpha3.SchemeGroupVersion.Version,
	}, nil
}

// triedOut finds out by lists what a version of the DRA group has. What may not
// be listed is taken for there. Of other groups nothing is.
func triedOut(ctx context.Context, clients Clients, namespace, groupName, versionName string) (*metav1.APIResourceList, error) {
	found := &metav1.APIResourceList{GroupVersion: groupName + "/" + versionName}
	if groupName != draGroup {
		return found, nil
	}
	for resource, scope := range map[string]string{"resourceclaims": namespace, "devicetaintrules": metav1.NamespaceNone} {
		api := clients.Dynamic.Resource(schema.GroupVersionResource{Group: groupName, Version: versionName, Resource: resource})
		_, err := api.Namespace(scope).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case err == nil, apierrors.IsForbidden(err):
			found.APIResources = append(found.APIResources, metav1.APIResource{Name: resource})
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return found, nil
}

// served returns the best version that has the resource, or nothing.
func served(versions []string, lists []*metav1.APIResourceList, resource string) string {
	for i, list := range lists {
		if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return versions[i]
		}
	}
	return ""
}

// allServed lists what the lists of a discovery have, sorted; nil if one of them was
// found by trying, which does not tell of everything.
func allServed(lists []*metav1.APIResourceList) []string {
	var all []string
	for _, list := range lists {
		if list == nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || list.Kind == "" {
			return nil
		}
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !strings.Contains(name, "/") {
				all = append(all, name+"."+gv.Version+"."+gv.Group)
			}
		}
	}
	slices.Sort(all)
	return all
}

func noDRA(server string, serverVersion *version.Info, lists []*metav1.APIResourceList) error {
	err := &NoDRAError{Server: server}
	if serverVersion != nil {
		err.Version = effectiveVersion(serverVersion)
	}
	for i, list := range lists {
		if list != nil {
			err.Served = append(err.Served, draVersions()[i])
		}
	}
	return err
}

// effectiveVersion returns the release whose behavior the server has: the emulated one
// (KEP-4330), or its own. Vendors append a plus to their minor.
func effectiveVersion(info *version.Info) string {
	minor := strings.TrimSuffix(info.Minor, "+")
	if emulated := strings.TrimSuffix(info.EmulationMinor, "+"); emulated != "" && emulated != minor {
		if release, err := snapshot.ParseVersion("v" + info.EmulationMajor + "." + emulated); err == nil {
			return release
		}
	}
	return info.GitVersion
}
