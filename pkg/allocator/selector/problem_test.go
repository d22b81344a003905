// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import "testing"

// TestProblem says where the first error of an expression is.
func TestProblem(t *testing.T) {
	for _, test := range []struct {
		expression string
		want       *CompileError
	}{
		{`device.driver == "x"`, nil},
		{`device.atributes["x"].y == 1`, &CompileError{Line: 1, Column: 7, Near: `.atributes["x"].y == 1`, Reason: "undefined field 'atributes'"}},
		{"device.driver == \"ü\" &&\n  devcie.driver == \"a driver with a rather long name\"", &CompileError{
			Line: 2, Column: 3, Near: `devcie.driver == "a driver with a rather…`, Reason: "undeclared reference to 'devcie'",
		}},
		{`device.driver ==`, &CompileError{
			Line: 1, Column: 17, Reason: "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
		}},
		{`device.driver`, &CompileError{Reason: "must evaluate to bool or the unknown type, not string"}},
		{`a + b`, &CompileError{Line: 1, Column: 1, Near: "a + b", Reason: "undeclared reference to 'a'", More: 1}},
	} {
		v := New(listFeatures(), true)
		got := v.Problem(v.Compile(test.expression))
		if got == nil || test.want == nil {
			if got != test.want {
				t.Errorf("%s: got %+v, want %+v", test.expression, got, test.want)
			}
			continue
		}
		if *got != *test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.expression, *got, *test.want)
		}
	}
}

// TestMismatch finds comparisons that no device can fulfill.
func TestMismatch(t *testing.T) {
	const x, m = `device.attributes["gpu.example.com"]`, `device.capacity["gpu.example.com"]`
	for expression, want := range map[string]Mismatch{
		x + `.cores == "8"`: {attributeReading("cores"), TypeInt, TypeString},
		`has(` + x + `.cores) || ` + x + `.ecc == "true"`: {attributeReading("ecc"), TypeBool, TypeString},
		`!(` + x + `.driverVersion >= "1.2")`:             {attributeReading("driverVersion"), TypeVersion, TypeString},
		x + `.slots < 8`:                                  {attributeReading("slots"), TypeString, TypeInt},
		x + `.bar.isGreaterThan(quantity("1Gi"))`:         {attributeReading("bar"), TypeString, TypeQuantity},
		x + `.cores == 8 && ` + x + `.either == 1`:        {},
		m + `.memory == quantity("1Gi")`:                  {},
		x + `.unheard == 1`:                               {},
		x + `.cores == 8.0`:                               {},
	} {
		v := New(listFeatures(), true)
		got, ok := words().Mismatch(&v.Compile(expression).Conjuncts[0])
		if got != want || ok != (want != Mismatch{}) {
			t.Errorf("%s: got %+v, want %+v", expression, got, want)
		}
	}
}
