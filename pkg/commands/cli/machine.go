// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
	"sigs.k8s.io/yaml/kyaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	_ "github.com/kubectl-dra/kubectl-dra/pkg/commands/cli/untranslated" // Package get reads no translations.
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// safePrinter replaces a printer of cli-runtime: these print characters of attributes that a
// terminal obeys, and its YAML printers fail for some. The output has no managed fields that
// would have to be left out.
func safePrinter(printer printers.ResourcePrinter) printers.ResourcePrinter {
	if omitting, ok := printer.(*printers.OmitManagedFieldsPrinter); ok {
		printer = omitting.Delegate
	}
	switch printer := printer.(type) {
	case *printers.JSONPrinter:
		return &jsonPrinter{printer}
	case *printers.YAMLPrinter:
		return &YAMLPrinter{}
	case *printers.KYAMLPrinter:
		return kyamlPrinter{}
	case *get.CustomColumnsPrinter:
		return &templatePrinter{&columnsPrinter{printer}}
	case *printers.JSONPathPrinter:
		return &templatePrinter{printer}
	default:
		return printer
	}
}

// jsonPrinter escapes characters that a terminal would obey or not show. A decoder gets the
// same texts.
type jsonPrinter struct{ plain *printers.JSONPrinter }

func (p *jsonPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	var text bytes.Buffer
	if err := p.plain.PrintObj(object, &text); err != nil {
		return err
	}
	_, err := w.Write(render.EscapeJSON(text.Bytes()))
	return err
}

// YAMLPrinter writes each object as a document.
type YAMLPrinter struct{ printed bool }

// PrintObj writes one more document.
func (p *YAMLPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	text, err := files.MarshalYAML(object)
	if err != nil {
		return err
	}
	if p.printed {
		text = append([]byte("---\n"), text...)
	}
	p.printed = true
	_, err = w.Write(text)
	return err
}

// kyamlPrinter writes each object as a document, too. cli-runtime's reads JSON as YAML,
// which does not have all characters of JSON, and spoils texts of several lines if one of
// them begins with an escape. Without line breaks it does not.
type kyamlPrinter struct{}

func (kyamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err
	}
	escaped := render.EscapeJSON(text.Bytes())
	odd := slices.ContainsFunc([]string{`\u`, `\r`, `\b`, `\f`}, func(escape string) bool { return bytes.Contains(escaped, []byte(escape)) })
	written := &kyaml.Encoder{Compact: odd}
	return written.FromYAML(bytes.NewReader(escaped), w)
}

// templatePrinter executes the user's template. If that fails, the command line is wrong.
// cli-runtime's printers then print the whole object, to standard output or as a part of
// the error, and kubectl's may panic.
type templatePrinter struct{ plain printers.ResourcePrinter }

func (p *templatePrinter) PrintObj(object runtime.Object, w io.Writer) error {
	var text bytes.Buffer
	if err := p.attempt(object, &text); err != nil {
		problem, _, _ := strings.Cut(err.Error(), ". Printing more information")
		return Usagef("Compare with the fields of -o json.", "%s", problem)
	}
	_, err := w.Write(text.Bytes())
	return err
}

func (p *templatePrinter) attempt(object runtime.Object, w io.Writer) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("print with the template or the columns of --output: one of the fields has no value that can be printed")
		}
	}()
	return p.plain.PrintObj(object, w)
}

// columnsPrinter escapes the cells of the user's table. A line break in a cell would be
// another row.
type columnsPrinter struct{ plain *get.CustomColumnsPrinter }

func (p *columnsPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	object = object.DeepCopyObject()
	escapeTexts(reflect.ValueOf(object))
	return p.plain.PrintObj(object, w)
}

// escapeTexts escapes all texts in a value, in place.
func escapeTexts(value reflect.Value) {
	switch value.Kind() { //nolint:exhaustive // the others have no texts
	case reflect.String:
		if value.CanSet() {
			value.SetString(render.Escape(value.String()))
		}
	case reflect.Pointer:
		if !value.IsNil() {
			escapeTexts(value.Elem())
		}
	case reflect.Interface:
		if !value.IsNil() && value.CanSet() {
			value.Set(escapedCopy(value.Elem()))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			escapeTexts(value.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range value.Len() {
			escapeTexts(value.Index(i))
		}
	case reflect.Map:
		if value.IsNil() || !value.CanInterface() {
			return
		}
		escaped := reflect.MakeMapWithSize(value.Type(), value.Len())
		for entries := value.MapRange(); entries.Next(); {
			escaped.SetMapIndex(escapedCopy(entries.Key()), escapedCopy(entries.Value()))
		}
		if value.CanSet() {
			value.Set(escaped)
		}
	}
}

func escapedCopy(value reflect.Value) reflect.Value {
	changed := reflect.New(value.Type()).Elem()
	changed.Set(value)
	escapeTexts(changed)
	return changed
}

// NewList returns a list of items of one type for a printer.
func NewList[T runtime.Object](name string, items []T) *api.List {
	list := &api.List{TypeMeta: TypeMeta(name + "List"), Items: make([]runtime.RawExtension, 0, len(items))}
	for _, item := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: item})
	}
	return list
}

// TypeMeta returns the type meta of an object of this kind, such as "DeviceList".
func TypeMeta(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: api.APIVersion, Kind: name}
}

// Formats of drawings.
const (
	FormatSVG     = "svg"
	FormatDOT     = "dot"
	FormatMermaid = "mermaid"
)

// drawer prints objects as drawings.
type drawer struct{ format string }

// PrintObj draws an object. It fails with a usage error for objects without a drawing.
func (d drawer) PrintObj(object runtime.Object, w io.Writer) error {
	switch o := object.(type) {
	case *api.Explanation:
		return drawing.Explanation(o).Write(w)
	case *api.ExplanationList:
		list := make([]*api.Explanation, 0, len(o.Items))
		for i := range o.Items {
			list = append(list, &o.Items[i])
		}
		return drawing.Explanations(list).Write(w)
	case *api.History:
		return drawing.History(o).Write(w)
	case *api.Plan:
		return drawing.Plan(o).Write(w)
	case *api.Impact:
		return drawing.Impact(o).Write(w)
	case *api.Fit:
		return drawing.Fit(o).Write(w)
	case *api.FitShapes:
		return drawing.FitShapes(o).Write(w)
	case *api.List:
		return d.trees(o, w)
	default:
		return Usagef("Choose another format.", "-o %s: there is no drawing of this answer", d.format)
	}
}

func (d drawer) trees(list *api.List, w io.Writer) error {
	roots := make([]api.Branch, 0, len(list.Items))
	for _, item := range list.Items {
		if root, ok := item.Object.(*api.Branch); ok {
			roots = append(roots, *root)
		}
	}
	switch d.format {
	case FormatDOT:
		return drawing.DOT(w, roots)
	case FormatMermaid:
		return drawing.Mermaid(w, roots)
	default:
		return drawing.Tree("What belongs to what", roots).Write(w)
	}
}
