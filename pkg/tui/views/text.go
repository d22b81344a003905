// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// Text is the text about an item.
type Text struct {
	Name string
	// Write makes the text, as wide as the screen. It is for the background.
	Write func(ctx context.Context, p *live.Picture, width int) (string, error)
	// Again is true if it is worth to write it once more.
	Again bool
	// Of is the object that somebody can do something about; nil for none.
	Of *api.ObjectRef
}

// errGone is an object that was there when it was selected.
var errGone = errors.New("is gone")

// WhyText explains the claim or pod that an item is, or the claim that has the
// device. Nil if there is none.
func WhyText(item any) *Text {
	var of api.ObjectRef
	if f, ok := item.(*api.Finding); ok {
		item = itemOfFinding(f)
	}
	switch x := item.(type) {
	case *api.ObjectRef:
		of = *x
	case *api.Claim:
		of = api.Ref(api.KindClaim, x.Namespace, x.Name)
	case *inventory.Pod:
		of = api.Ref(api.KindPod, x.Namespace, x.Name)
	case *api.Device:
		if len(x.Holders) == 0 {
			return nil
		}
		of = api.Ref(api.KindClaim, x.Holders[0].Namespace, x.Holders[0].Claim)
	default:
		return nil
	}
	return &Text{
		Name:  "why " + of.Title(),
		Again: true,
		Of:    &of,
		Write: func(ctx context.Context, p *live.Picture, width int) (string, error) {
			answer, err := p.Explain(ctx, explain.Options{Object: of})
			if err != nil {
				return "", err
			}
			var text bytes.Buffer
			err = explanation.Full(&text, answer, render.Options{Width: width, Color: true, Screen: true})
			return text.String(), err
		},
	}
}

// itemOfFinding returns the first pod or claim of a finding; nil if there is none.
func itemOfFinding(f *api.Finding) any {
	for _, object := range f.Objects {
		switch object.Kind {
		case api.KindPod:
			return &inventory.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}}
		case api.KindClaim:
			return &api.Claim{Namespace: object.Namespace, Name: object.Name}
		}
	}
	return nil
}

// FindingText returns all of a finding.
func FindingText(f *api.Finding) *Text {
	return &Text{Name: "finding " + f.Code, Write: func(_ context.Context, _ *live.Picture, width int) (string, error) {
		about, advice := "", ""
		for _, check := range doctor.Checks() {
			if check.Code == f.Code {
				about, advice = check.About, check.Advice
			}
		}
		var text bytes.Buffer
		err := render.Finding(&text, f, about, advice, render.Options{Width: width, Color: true})
		return text.String(), err
	}}
}
