// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

// vast returns a quantity that nothing has.
func vast() string { return "1e" + strings.Repeat("9", 9) }

func TestBounded(t *testing.T) {
	long := vast()
	for expression, want := range map[string]bool{
		`device.driver == "x"`:                                 true,
		`quantity("80Gi").sign() > 0`:                          true,
		"quantity (\n'1e99' ).sign() > 0":                      true,
		`quantity("1E-99").sign() > 0`:                         true,
		`quantity("1e099").sign() > 0`:                         true,
		`isQuantity("1e6")`:                                    true,
		`quantity("1e100").sign() > 0`:                         false,
		`quantity("1e-100").sign() > 0`:                        false,
		`quantity("1E+0000100").sign() > 0`:                    false,
		`quantity('` + long + `').sign()`:                      false,
		`isQuantity("` + long + `")`:                           false,
		`quantity("1" + "Gi").sign() > 0`:                      false,
		`quantity("1\u0065999").sign() > 0`:                    false,
		`quantity(r"1Gi").sign() > 0`:                          false,
		`quantity('''1Gi''').sign() > 0`:                       false,
		`quantity(device.driver).sign() > 0`:                   false,
		`quantity("1Gi").isLessThan(quantity("` + long + `"))`: false,
		`["1Gi"].exists(q, quantity(q).sign() > 0)`:            false,
	} {
		if got := Bounded(expression); got != want {
			t.Errorf("Bounded(%s) = %t", expression, got)
		}
	}
}

// TestUnendingEvaluation evaluates expressions that would take years, and others
// that only mention such numbers.
func TestUnendingEvaluation(t *testing.T) {
	long := vast()
	memory := `device.capacity["gpu.example.com"].memory`
	for _, test := range []struct {
		name, expression string
		want             Outcome
		unending         bool
	}{
		{"a literal", memory + `.compareTo(quantity("` + long + `")) < 0`, Fails, true},
		{"a small literal", memory + `.compareTo(quantity("1e-` + long[2:] + `")) > 0`, Fails, true},
		{"a test", `isQuantity("1e-` + long[2:] + `")`, Fails, true},
		{"put together", memory + `.compareTo(quantity("1e" + "` + long[2:] + `")) < 0`, Fails, true},
		{"of an attribute", memory + `.compareTo(quantity(device.attributes["gpu.example.com"].size)) < 0`, Fails, true},
		{"made up for", memory + `.compareTo(quantity("` + long + `")) < 0 || true`, Fails, true},
		{"made up for, in a loop", `["` + long + `", "1"].exists(q, ` + memory + `.compareTo(quantity(q)) > 0)`, Fails, true},
		{"not reached", `device.driver == "other" && ` + memory + `.compareTo(quantity("` + long + `")) < 0`, False, false},
		{"not needed", `device.driver == "gpu.example.com" || ` + memory + `.compareTo(quantity("` + long + `")) < 0`, True, false},
		{"of a usual attribute", memory + `.compareTo(quantity(device.attributes["gpu.example.com"].usual)) == 0`, True, false},
		{"no quantity", `isQuantity("1" + "x")`, False, false},
		{"no quantity to compare with", memory + `.compareTo(quantity("1" + "x")) > 0`, Fails, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := device("d", withMemory("1Gi"), with("size", text(long)), with("usual", text("1Gi")))
			v := New(listFeatures(), true)
			sel := v.Compile(test.expression)
			if sel.Err != nil {
				t.Fatal(sel.Err)
			}
			result := v.Evaluate(t.Context(), sel, driver, &d)
			var unending *UnendingError
			if result.Outcome() != test.want || errors.As(result.Err, &unending) != test.unending {
				t.Errorf("%s: %v", result.Outcome(), result.Err)
			}
			if test.unending && (unending.Expression != test.expression || !strings.Contains(result.Err.Error(), test.expression)) {
				t.Errorf("the error does not name the expression: %v", result.Err)
			}
			if detail := result.Detail(t.Context()); test.unending && detail.Seen != nil {
				t.Errorf("evaluated again: %v", detail.Seen)
			}
		})
	}
}

func TestUnendingDerivedAttribute(t *testing.T) {
	d := device("d", with("size", text(vast())))
	v := New(listFeatures(), true)
	for _, argument := range []string{`"` + vast() + `"`, `device.attributes["gpu.example.com"].size`} {
		derived := resourceapi.DeviceDerivedAttribute{Name: "large", Expression: `quantity(` + argument + `).isGreaterThan(quantity("1Gi"))`}
		var unending *UnendingError
		if _, err := v.DerivedAttribute(t.Context(), &derived, driver, &d); !errors.As(err, &unending) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// TestWithin gives up an evaluation that takes no notice of its context.
func TestWithin(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	stuck := func(context.Context) (bool, error) { <-forever; return true, nil }
	if _, err := within(t.Context(), time.Millisecond, stuck); !errors.Is(err, errNotInTime) {
		t.Errorf("stuck: %v", err)
	}
	attentive := func(ctx context.Context) (bool, error) { <-ctx.Done(); return true, ctx.Err() }
	if _, err := within(t.Context(), time.Millisecond, attentive); !errors.Is(err, errNotInTime) {
		t.Errorf("attentive: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := within(cancelled, time.Hour, stuck); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if ok, err := within(t.Context(), time.Hour, func(context.Context) (bool, error) { return true, nil }); !ok || err != nil {
		t.Errorf("in time: %t, %v", ok, err)
	}
}
