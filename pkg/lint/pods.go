// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func podChecks() []Check {
	return []Check{
		{
			Code: "DRA2101", Title: "claim that no container uses", Severity: api.SeverityInfo,
			About:  "A pod has a claim that no container names in resources.claims. The pod waits for the devices, and the kubelet has them prepared all the same; but no container gets them. Drivers that configure the pod as a whole, such as network drivers, rely on that.",
			Advice: "Name the claim in resources.claims of the container that needs the devices, unless the driver configures the pod as a whole.",
			find:   unusedClaims,
		},
		{
			Code: "DRA2102", Title: "container that names a claim which the pod does not have", Severity: api.SeverityError,
			About:  "resources.claims of a container has a name that is not in resourceClaims of the pod. The API server rejects the pod.",
			Advice: "Add the claim to resourceClaims of the pod, or correct the name.",
			find:   missingEntries,
		},
		{
			Code: "DRA2103", Title: "container that names a request which the claim does not have", Severity: api.SeverityError,
			About:  "resources.claims of a container names a request that the claim does not have. The API server does not look at this: the container runs without the devices.",
			Advice: "Correct the name, or leave the request out so that the container gets all devices of the claim.",
			find:   missingRequests,
		},
		{
			Code: "DRA2104", Title: "both or neither of claim and template", Severity: api.SeverityError,
			About:  "An entry of resourceClaims has resourceClaimName and resourceClaimTemplateName, or none of them. The API server rejects the pod.",
			Advice: "Name one of them: a claim is shared by all pods that name it, of a template each pod gets a claim of its own.",
			find:   claimOrTemplate,
		},
		{
			Code: "DRA2105", Title: "claim or template that is missing", Severity: api.SeverityWarning,
			About:  "A pod names a claim or a template that is neither in the same input nor, as far as one is read, in the cluster. The pod waits until it is there. Without a cluster this is a warning only if the input has one of a similar name, and else information.",
			Advice: "Create it in the namespace of the pod, or correct the name. --cluster looks it up.",
			find:   missingSpecs,
		},
		{
			Code: "DRA2106", Title: "extended resource with another request than limit", Severity: api.SeverityError,
			About:  "A container asks for an extended resource of a class without a limit, or with a request that differs from the limit. The API server rejects the pod: devices cannot be overcommitted. Of deviceclass.resource.kubernetes.io/CLASS it rejects a request above the limit.",
			Advice: "Give the limit alone; the request is then the same.",
			find:   unequalResources,
		},
	}
}

// containerOf is a container with the path of it.
type containerOf struct {
	*corev1.Container
	path string
}

func (p *pod) containers() []containerOf {
	var all []containerOf
	for i := range p.spec.InitContainers {
		all = append(all, containerOf{&p.spec.InitContainers[i], indexed(p.path+".initContainers", i)})
	}
	for i := range p.spec.Containers {
		all = append(all, containerOf{&p.spec.Containers[i], indexed(p.path+".containers", i)})
	}
	return all
}

func unusedClaims(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		used := usedBy(p)
		for i := range p.spec.ResourceClaims {
			name := p.spec.ResourceClaims[i].Name
			if name == "" || used[name] {
				continue
			}
			unused := cluster.UnusedClaim{Entry: name}
			found = append(found, finding{
				object: p.object, path: indexed(p.path+".resourceClaims", i) + ".name", found: name,
				message: unused.Text() + ": " + unused.Effect(),
				advice:  "if a container needs the devices, name the claim in resources.claims of the container",
			})
		}
	}
	return found
}

// usedBy returns the claims that containers name.
func usedBy(p *pod) map[string]bool {
	used := map[string]bool{}
	for _, c := range p.containers() {
		for _, ref := range c.Resources.Claims {
			used[ref.Name] = true
		}
	}
	return used
}

// entriesOf returns the names of the claims of a pod.
func entriesOf(p *pod) []string {
	var names []string
	for i := range p.spec.ResourceClaims {
		names = append(names, p.spec.ResourceClaims[i].Name)
	}
	return names
}

func missingEntries(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		names, used := entriesOf(p), usedBy(p)
		free := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return used[name] })
		for _, c := range p.containers() {
			for j, ref := range c.Resources.Claims {
				if slices.Contains(names, ref.Name) {
					continue
				}
				path := indexed(c.path+".resources.claims", j) + ".name"
				f := finding{
					object: p.object, path: path, found: ref.Name, required: english.JoinOr(names),
					message: fmt.Sprintf("container %s names claim %q, which is not in %s.resourceClaims", c.Name, ref.Name, p.path),
					advice:  "add it to resourceClaims of the pod",
				}
				// No container uses it so far.
				if meant := english.Typo(ref.Name, free); meant != "" {
					f.advice, f.fix = "write "+meant, []edit{{"replace", path, meant}}
				}
				p.reject(path)
				found = append(found, f)
			}
		}
	}
	return found
}

// requestsOf lists the requests of a claim of a pod, as far as it is known.
func (in *input) requestsOf(p *pod, entry *corev1.PodResourceClaim) (requests []string, known bool) {
	kind, name := api.KindClaim, entry.ResourceClaimName
	if name == nil {
		kind, name = api.KindTemplate, entry.ResourceClaimTemplateName
	}
	if name == nil {
		return nil, false
	}
	devices, _ := in.specOf(kind, p.namespace, *name)
	if devices == nil {
		return nil, false
	}
	for i := range devices.Requests {
		requests = append(requests, devices.Requests[i].Name)
	}
	return requests, true
}

func missingRequests(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		for _, c := range p.containers() {
			for j, ref := range c.Resources.Claims {
				at := slices.Index(entriesOf(p), ref.Name)
				if ref.Request == "" || at < 0 {
					continue
				}
				requests, known := in.requestsOf(p, &p.spec.ResourceClaims[at])
				if !known || slices.Contains(requests, ref.Request) {
					continue
				}
				path := indexed(c.path+".resources.claims", j) + ".request"
				f := finding{
					object: p.object, path: path, found: ref.Request, required: english.JoinOr(requests),
					message: fmt.Sprintf("container %s names request %q, which claim %s does not have: it runs without the devices", c.Name, ref.Request, ref.Name),
					advice:  "leave the request out, or name one of the claim: " + english.JoinOr(requests),
				}
				if base, _, alternative := strings.Cut(ref.Request, "/"); alternative && slices.Contains(requests, base) {
					f.fix = []edit{{"replace", path, base}}
				} else if len(requests) == 1 {
					f.fix = []edit{{"replace", path, requests[0]}}
				}
				found = append(found, f)
			}
		}
	}
	return found
}

func claimOrTemplate(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		for i := range p.spec.ResourceClaims {
			entry := &p.spec.ResourceClaims[i]
			path := indexed(p.path+".resourceClaims", i)
			if (entry.ResourceClaimName == nil) != (entry.ResourceClaimTemplateName == nil) || p.rejected(path) {
				continue
			}
			f := finding{object: p.object, path: path, found: "none", required: "resourceClaimName or resourceClaimTemplateName"}
			if entry.ResourceClaimName != nil {
				f.found = "both"
			}
			f.message = fmt.Sprintf("claim %q has %s of resourceClaimName and resourceClaimTemplateName", entry.Name, f.found)
			f.advice = "name one of them"
			p.reject(path)
			found = append(found, f)
		}
	}
	return found
}

func missingSpecs(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		for i := range p.spec.ResourceClaims {
			entry := &p.spec.ResourceClaims[i]
			path := indexed(p.path+".resourceClaims", i)
			if name := entry.ResourceClaimName; name != nil && entry.ResourceClaimTemplateName == nil {
				found = append(found, in.missing(p, api.KindClaim, snapshot.ResourceClaims, *name, path+".resourceClaimName")...)
			}
			if name := entry.ResourceClaimTemplateName; name != nil && entry.ResourceClaimName == nil {
				found = append(found, in.missing(p, api.KindTemplate, snapshot.ResourceTemplates, *name, path+".resourceClaimTemplateName")...)
			}
		}
	}
	return found
}

func (in *input) missing(p *pod, kind, resource, name, path string) []finding {
	devices, elsewhere := in.specOf(kind, p.namespace, name)
	if devices != nil || in.unreadable(kind, p.namespace, name) {
		return nil
	}
	f := finding{object: p.object, path: path, found: name, severity: api.SeverityInfo}
	if in.complete(resource) {
		in.incomplete[p.object] = true
		f.severity = api.SeverityWarning
		f.message = fmt.Sprintf("%s %s exists neither in the files nor in namespace %s of the cluster", kind, name, p.namespace)
		f.advice = "create it in namespace " + p.namespace
	} else {
		f.message = fmt.Sprintf("%s %s is not in the files", kind, name)
		f.advice = "--cluster looks whether it exists"
	}
	if len(elsewhere) > 0 {
		f.severity, f.required = api.SeverityWarning, "namespace "+p.namespace
		f.message = fmt.Sprintf("%s %s is in namespace %s, and a pod in namespace %s cannot use it", kind, name, english.JoinAnd(elsewhere), p.namespace)
		f.advice = "put both into one namespace"
	} else if near := meant(name, in.names[kind+"/"+p.namespace]); near != "" {
		f.severity, f.required = api.SeverityWarning, near
		f.advice = "did you mean " + near + "?"
	}
	return []finding{f}
}

// unreadable reports whether the files have an object of that name, with something
// wrong in it.
func (in *input) unreadable(kind, namespace, name string) bool {
	return slices.ContainsFunc(in.called[kind+"/"+name], func(o *object) bool { return o.namespace == namespace || o.err != nil })
}

func unequalResources(in *input) []finding {
	var found []finding
	for _, p := range in.pods {
		for _, c := range p.containers() {
			names := map[string]bool{}
			for name := range c.Resources.Requests {
				names[string(name)] = true
			}
			for name := range c.Resources.Limits {
				names[string(name)] = true
			}
			for _, name := range sortedKeys(names) {
				if !in.isDevice(name) {
					continue
				}
				request, requested := c.Resources.Requests[corev1.ResourceName(name)]
				limit, limited := c.Resources.Limits[corev1.ResourceName(name)]
				path := fmt.Sprintf("%s.resources.requests[%q]", c.path, name)
				f := finding{object: p.object, path: path, found: request.String()}
				// The API server takes the names of classes for its own resources, of
				// which less than the limit can be requested.
				own := strings.HasPrefix(name, implicitResources)
				switch {
				case requested && !limited && !own:
					f.message = fmt.Sprintf("container %s requests %s %s and has no limit of it", c.Name, request.String(), name)
					f.advice = "give the limit, with or without the request"
				case requested && limited && (request.Cmp(limit) > 0 || request.Cmp(limit) < 0 && !own):
					f.required = limit.String()
					f.message = fmt.Sprintf("container %s requests %s %s with a limit of %s; both must be the same", c.Name, request.String(), name, limit.String())
					f.advice = "leave the request out; it is then the limit"
				default:
					continue
				}
				p.reject(path)
				found = append(found, f)
			}
		}
	}
	return found
}

// isDevice reports whether an extended resource comes from a class: by its name, or
// by a class that is known. The API server rejects all others in the same way, which
// is not about devices.
func (in *input) isDevice(name string) bool {
	if strings.HasPrefix(name, implicitResources) {
		return true
	}
	for _, class := range in.byClass {
		if class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == name {
			return true
		}
	}
	return false
}

// implicitResources is the prefix of extended resources that stand for classes by name.
const implicitResources = "deviceclass.resource.kubernetes.io/"

func sortedKeys(set map[string]bool) []string {
	var keys []string
	for key := range set {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
