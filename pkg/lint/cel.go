// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func celChecks() []Check {
	return []Check{
		{
			Code: "DRA2301", Title: "CEL expression that does not compile", Severity: api.SeverityError,
			About:  "A selector is not a CEL expression, or one that has no truth value. The API server rejects the object.",
			Advice: "Correct it where the position points to.",
			find:   uncompiled,
		},
		{
			Code: "DRA2302", Title: "CEL expression that costs too much", Severity: api.SeverityError,
			About:  fmt.Sprintf("The estimated cost of a selector is above the limit of %s. The API server rejects the object.", english.Thousands(resourceapi.CELSelectorExpressionMaxCost)),
			Advice: "Leave out loops over all attributes, and compare single values.",
			find:   costly,
		},
		{
			Code: "DRA2303", Title: "value that is read without a guard", Severity: api.SeverityWarning,
			About:  "A selector reads an attribute or a capacity, and devices may get to it that do not have it: the class selects devices of any driver, or devices in the slices that are known lack it. On such a device the expression fails, and with it the scheduling of the pod on every node.",
			Advice: "Ask first with has(), or for the driver. --fix adds has().",
			find:   unguarded,
		},
		{
			Code: "DRA2304", Title: "comparison of different types", Severity: api.SeverityWarning,
			About:  "A selector compares an attribute with a value of another type than all known devices have. It is never true, or fails.",
			Advice: "Compare with a value of the same type: \"80\" is not 80, and versions need semver().",
			find:   mismatches,
		},
		{
			Code: "DRA2305", Title: "text that is no version", Severity: api.SeverityError,
			About:  "semver() of a selector gets a text that is no semantic version: numbers with leading zeros, a \"v\" before them, or fewer than three of them. The expression fails on every device that gets to it.",
			Advice: "Write three numbers without leading zeros: 1.2.3.",
			find:   badVersions,
		},
		{
			Code: "DRA2306", Title: "text that is no quantity", Severity: api.SeverityError,
			About:  "quantity() of a selector gets a text that is no quantity. The expression fails on every device that gets to it.",
			Advice: "Write a number with a suffix such as Gi: 80Gi.",
			find:   badQuantities,
		},
		{
			Code: "DRA2307", Title: "attribute or capacity that no device has", Severity: api.SeverityWarning,
			About:  "A selector reads an attribute or a capacity that no known device has, and there is one of a similar name, in another domain or of the other kind.",
			Advice: "Correct the name. 'kubectl dra devices -o wide' shows what devices have.",
			find:   unknownReadings,
		},
		{
			Code: "DRA2308", Title: "CEL expression that does not end", Severity: api.SeverityError,
			About:  "An expression computes with a quantity that has billions of digits. Neither the cost limit of CEL nor a timeout ends that: a scheduler that evaluates it for a device does not come back, and schedules no pod any more.",
			Advice: "Write a quantity with a short exponent or a suffix such as Gi.",
			find:   unending,
		},
	}
}

// selectorIn is a selector, and where it stands.
type selectorIn struct {
	*object
	path string
	*selector.Selector
	// class is the class of the request; empty in a class.
	class string
	// beside are all selectors of the list that it is in.
	beside []resourceapi.DeviceSelector
}

func (in *input) selectors() []selectorIn {
	var all []selectorIn
	add := func(o *object, path, class string, list []resourceapi.DeviceSelector) {
		for i, s := range list {
			if s.CEL == nil || len(s.CEL.Expression) > resourceapi.CELSelectorExpressionMaxLength {
				continue
			}
			all = append(all, selectorIn{o, indexed(path, i) + ".cel.expression", in.cel.Compile(s.CEL.Expression), class, list})
		}
	}
	in.eachRequest(func(c *claim, r *cluster.Request) { add(c.object, c.at(r.Path)+".selectors", r.Class, r.Selectors) })
	for _, o := range in.objects {
		if class, ok := o.decoded.(*resourceapi.DeviceClass); ok && o.err == nil {
			add(o, "spec.selectors", "", class.Spec.Selectors)
		}
	}
	return all
}

func uncompiled(in *input) []finding {
	var found []finding
	// With features that are off in the cluster, or may be.
	every := selector.New(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}, true)
	for _, s := range in.selectors() {
		if s.Err == nil || !in.against && in.snap.ServerVersion == "" && every.Compile(s.Expression).Err == nil {
			continue
		}
		problem := in.cel.Problem(s.Selector)
		f := finding{object: s.object, path: s.path, at: s.within(s.path, problem.Line, problem.Column), message: "the expression does not compile: " + problem.Reason}
		if problem.Near != "" {
			f.message += ", at " + strings.TrimSpace(problem.Near)
		}
		f.advice = "correct the expression"
		in.correct(&f, s)
		s.reject(s.path)
		found = append(found, f)
	}
	return found
}

// correct adds the expression that was probably meant.
func (in *input) correct(f *finding, s selectorIn) {
	if correction, ok := in.cel.Correct(s.Selector, in.near(s.object).words); ok {
		f.fix = []edit{{"replace", s.path, correction.Expression}}
		f.advice = "write " + correction.Expression
	}
}

func costly(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		if s.Err != nil {
			continue
		}
		if cost := in.cel.Cost(s.Selector); cost > resourceapi.CELSelectorExpressionMaxCost {
			s.reject(s.path)
			found = append(found, finding{
				object: s.object, path: s.path, found: english.Thousands(cost), required: "at most " + english.Thousands(resourceapi.CELSelectorExpressionMaxCost),
				message: fmt.Sprintf("the expression may cost %s, and the limit is %s", english.Thousands(cost), english.Thousands(resourceapi.CELSelectorExpressionMaxCost)),
				advice:  "compare single values, without loops",
			})
		}
	}
	return found
}

func unguarded(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		if s.Err != nil {
			continue
		}
		var reads []selector.Reading
		for _, r := range s.Reads {
			if (r.Kind == selector.KindAttributes || r.Kind == selector.KindCapacity) && r.Name != "" && !r.Whole {
				reads = append(reads, r)
			}
		}
		missing, reason := in.mayLack(s, reads)
		if len(missing) == 0 {
			continue
		}
		guarded, ok := in.cel.Guard(s.Selector, missing)
		if !ok {
			continue
		}
		found = append(found, finding{
			object: s.object, path: s.path, found: missing[0].String(), message: fmt.Sprintf("%s is read without a guard: %s", missing[0].Noun(), reason),
			advice: "ask for it first: " + guarded, fix: []edit{{"replace", s.path, guarded}},
		})
	}
	return found
}

// mayLack lists the values that devices may not have which get to a selector, and how
// that is known. There are none if nothing shows.
func (in *input) mayLack(s selectorIn, reads []selector.Reading) (missing []selector.Reading, reason string) {
	if len(reads) == 0 {
		return nil, ""
	}
	if s.class != "" && in.byClass[s.class] == nil {
		return nil, ""
	}
	if len(in.driversOf(s.class, s.beside)) == 0 {
		if s.class == "" {
			return reads, "the class selects devices of any driver"
		}
		return reads, fmt.Sprintf("class %s selects devices of any driver", s.class)
	}
	for _, slice := range in.near(s.object).slices {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if !in.getsTo(s, slice.Spec.Driver, device) {
				continue
			}
			if in.cel.Evaluate(in.ctx, s.Selector, slice.Spec.Driver, device).Err == nil {
				continue
			}
			for _, r := range reads {
				if _, typo := in.near(s.object).words.NearestReading(r); typo {
					return nil, ""
				}
				if _, has := r.Value(slice.Spec.Driver, device); !has {
					missing = append(missing, r)
				}
			}
			if len(missing) > 0 {
				return missing, fmt.Sprintf("device %s of driver %s does not have it", device.Name, slice.Spec.Driver)
			}
		}
	}
	return nil, ""
}

// getsTo reports whether a device passes all selectors before this one.
func (in *input) getsTo(s selectorIn, driver string, device *resourceapi.Device) bool {
	before := s.beside
	if class := in.byClass[s.class]; class != nil {
		before = slices.Concat(class.Spec.Selectors, before)
	}
	for _, b := range before {
		if b.CEL == nil {
			continue
		}
		if b.CEL.Expression == s.Expression {
			return true
		}
		if sel := in.cel.Compile(b.CEL.Expression); sel.Err != nil || !in.cel.Evaluate(in.ctx, sel, driver, device).Matches {
			return false
		}
	}
	return true
}

func mismatches(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		if s.Err != nil {
			continue
		}
		for i := range s.Conjuncts {
			m, differs := in.near(s.object).words.Mismatch(&s.Conjuncts[i])
			if !differs {
				continue
			}
			f := finding{
				object: s.object, path: s.path, found: string(m.ComparedWith), required: string(m.Has),
				message: fmt.Sprintf("%s has type %s on all known devices, and is compared with a value of type %s", m.Read.Noun(), m.Has, m.ComparedWith),
				advice:  fmt.Sprintf("compare it with a value of type %s", m.Has),
			}
			in.correct(&f, s)
			found = append(found, f)
			break
		}
	}
	return found
}

// calls finds the calls of a function with one text, and where the text begins.
func calls(expression, function string) (texts []string, at []int) {
	pattern := regexp.MustCompile(`\b` + function + `\(\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\)`)
	for _, m := range pattern.FindAllStringSubmatchIndex(expression, -1) {
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		texts, at = append(texts, expression[from:to]), append(at, from)
	}
	return texts, at
}

// inExpression returns the position of a byte of an expression.
func (s *selectorIn) inExpression(offset int) position {
	before := s.Expression[:offset]
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	return s.within(s.path, line, column)
}

func badVersions(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		texts, at := calls(s.Expression, "semver")
		for i, text := range texts {
			if _, err := semver.Parse(text); s.Err != nil || err == nil {
				continue
			}
			f := finding{
				object: s.object, path: s.path, at: s.inExpression(at[i]), found: text, required: "a version such as 1.2.3",
				message: fmt.Sprintf("semver(%q) fails: it is no semantic version", text), advice: "write three numbers without leading zeros",
			}
			if meant, err := semver.ParseTolerant(text); err == nil {
				f.advice = "write " + meant.String()
				f.fix = []edit{{"replace", s.path, s.Expression[:at[i]] + meant.String() + s.Expression[at[i]+len(text):]}}
			}
			found = append(found, f)
		}
	}
	return found
}

func badQuantities(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		texts, at := calls(s.Expression, "quantity")
		for i, text := range texts {
			if s.Err != nil || !selector.Bounded(s.Expression) {
				continue
			}
			if _, err := resource.ParseQuantity(text); err == nil {
				continue
			}
			f := finding{
				object: s.object, path: s.path, at: s.inExpression(at[i]), found: text, required: "a quantity such as 80Gi",
				message: fmt.Sprintf("quantity(%q) fails: it is no quantity", text), advice: "write a number with a suffix such as Gi",
			}
			if meant := quantityMeant(text); meant != "" {
				f.advice = "write " + meant
				f.fix = []edit{{"replace", s.path, s.Expression[:at[i]] + meant + s.Expression[at[i]+len(text):]}}
			}
			found = append(found, f)
		}
	}
	return found
}

// unending finds expressions at which schedulers hang: by the quantities that are written in
// them, and otherwise by evaluating them, which ends here, for the devices that are known.
func unending(in *input) []finding {
	var found []finding
	for _, s := range in.selectors() {
		if s.Err != nil || selector.Bounded(s.Expression) {
			continue
		}
		f := finding{object: s.object, path: s.path, message: "evaluating the expression does not end: schedulers hang at it", advice: "write a quantity with a short exponent"}
		texts, at := calls(s.Expression, "[qQ]uantity")
		for i, text := range texts {
			if !selector.Bounded(`quantity("` + text + `")`) {
				f.at, f.found = s.inExpression(at[i]), text
			}
		}
		if f.found == "" && !in.hangs(s) {
			continue
		}
		s.reject(s.path)
		found = append(found, f)
	}
	return found
}

// hangs reports whether an expression does not end for one of the known devices, or for one
// without attributes.
func (in *input) hangs(s selectorIn) bool {
	var unending *selector.UnendingError
	hangs := func(driver string, device *resourceapi.Device) bool {
		return errors.As(in.cel.Evaluate(in.ctx, s.Selector, driver, device).Err, &unending)
	}
	if hangs("", &resourceapi.Device{}) {
		return true
	}
	for _, slice := range in.near(s.object).slices {
		for i := range slice.Spec.Devices {
			if in.getsTo(s, slice.Spec.Driver, &slice.Spec.Devices[i]) && hangs(slice.Spec.Driver, &slice.Spec.Devices[i]) {
				return true
			}
		}
	}
	return false
}

// quantityMeant returns 80Gi for 80 GiB, empty if no similar text is a quantity.
func quantityMeant(text string) string {
	meant := strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), "B")
	if meant == text {
		return ""
	}
	if _, err := resource.ParseQuantity(meant); err != nil {
		return ""
	}
	return meant
}

func unknownReadings(in *input) []finding {
	if in.against && in.snap.Gap(snapshot.ResourceSlices) != nil {
		return nil
	}
	var found []finding
	for _, s := range in.selectors() {
		words := in.near(s.object).words
		if s.Err != nil || words.Devices() == 0 {
			continue
		}
		for _, r := range s.Reads {
			if r.Kind != selector.KindAttributes && r.Kind != selector.KindCapacity {
				continue
			}
			near, ok := words.NearestReading(r)
			if !ok {
				continue
			}
			f := finding{
				object: s.object, path: s.path, found: r.String(), required: near.String(), advice: "did you mean " + near.String() + "?",
				message: r.Noun() + " " + english.OnDevices(words.Count(r), words.Devices()),
			}
			in.correct(&f, s)
			found = append(found, f)
			break
		}
	}
	return found
}
