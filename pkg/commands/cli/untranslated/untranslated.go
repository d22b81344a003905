// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untranslated keeps k8s.io/kubectl from reading its translations when a program starts
// that imports one of its commands: that takes 15 ms, and nothing of it is shown.
//
// A package of k8s.io/kubectl asks for texts while it is initialized. This one comes before:
// packages that do not depend on each other are initialized in the order of their import paths.
package untranslated

import "k8s.io/kubectl/pkg/util/i18n"

// SetLoadTranslationsFunc only fails if translations were read before.
var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
