// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"k8s.io/kubectl/pkg/cmd/get"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// hostileTexts returns texts that an attribute of a device may have.
func hostileTexts() []string {
	texts := []string{
		"", " ", "a\n", "\na", "\r\n", "\ra\n", "a\n\r\nb", "a\n\u2028\n", "a\n\tb", "  a\n b", "---", "...", "- a", "a: b", "a #b", "~", "yes", "1e3", "{", "[", `"`, "'", `\`, `\u0041`, `a\`,
		"\x1b[2J", "\x1b]0;title\a", "\u009b31m", "\u202e", "\u2066a\u2069", "\ufeff", "\ufffe", "\U000e0041", "\U0001F600", "<script>&]]>", "$(touch pwned)", "`a`", "|", "@@ -1 +1 @@",
	}
	for r := range rune(0x101) {
		texts = append(texts, fmt.Sprintf("a%cb", r), fmt.Sprintf("%c\nb", r))
	}
	return texts
}

// TestPrintersKeepTexts prints texts for programs: they decode to the same texts, and no
// terminal obeys the output.
func TestPrintersKeepTexts(t *testing.T) {
	for _, output := range []string{"json", "yaml", "kyaml"} {
		flags := NewPrintFlags()
		flags.Output = output
		for _, text := range hostileTexts() {
			printer, err := flags.ToPrinter()
			if err != nil {
				t.Fatal(err)
			}
			object := &api.Explanation{Summary: text, Assumptions: []string{text, "&&"}}
			object.APIVersion, object.Kind = api.APIVersion, "Explanation"
			var out bytes.Buffer
			if err := printer.PrintObj(object, &out); err != nil {
				t.Errorf("-o %s: %q: %v", output, text, err)
				continue
			}
			var got api.Explanation
			if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got.Summary != text || len(got.Assumptions) != 2 || got.Assumptions[0] != text {
				t.Errorf("-o %s: %q is printed as\n%s\nand read as %q, %v", output, text, out.String(), got.Summary, err)
			}
			if i := strings.IndexFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
				t.Errorf("-o %s: %q is printed as %q", output, text, out.String())
			}
		}
	}
}

// TestColumnsAreRows prints a table of texts that the user has designed: there is one
// row for each item, and no terminal obeys it.
func TestColumnsAreRows(t *testing.T) {
	columns, err := get.NewCustomColumnsPrinterFromSpec("NAME:.name,A:.attributes.a,ALL:.attributes,HEALTH:.healthMessage,SHAREABLE:.shareable", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	printer := safePrinter(columns)
	for _, text := range hostileTexts() {
		device := api.Device{Name: "gpu-0", HealthMessage: text, Attributes: map[string]string{"a": text, text: "b"}}
		device.APIVersion, device.Kind = api.APIVersion, "Device"
		var out bytes.Buffer
		if err := printer.PrintObj(NewList("Device", []*api.Device{&device, &device}), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if columns := strings.Fields(lines[len(lines)-2]); !strings.HasPrefix(lines[1], "gpu-0 ") || len(lines) > 4 || columns[len(columns)-1] != "false" {
			t.Errorf("%q makes rows:\n%s", text, out.String())
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }); i >= 0 {
			t.Errorf("%q is printed as %q", text, out.String())
		}
		if device.HealthMessage != text || device.Attributes["a"] != text {
			t.Fatalf("%q was changed", text)
		}
	}
}
