// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs has the JSON schemas of what the tools of 'kubectl dra mcp' answer. Only
// pkg/commands/mcp imports it.
package docs

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed schema/Status.json schema/Explanation.json schema/ExplanationList.json schema/UseExplanation.json schema/History.json
//go:embed schema/Diagnosis.json schema/Fit.json schema/FitShapes.json schema/Plan.json schema/Impact.json schema/Difference.json
//go:embed schema/LintReport.json schema/Evaluation.json schema/DeviceList.json schema/GroupList.json
var schemas embed.FS //nolint:gochecknoglobals // The compiler fills it.

// Schemas returns the kinds that there are schemas of, in alphabetical order.
func Schemas() []string {
	// What is embedded can be read.
	files, _ := schemas.ReadDir("schema")
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".json"))
	}
	return names
}

// Schema returns the schema of a kind.
func Schema(kind string) (string, error) {
	text, err := schemas.ReadFile("schema/" + kind + ".json")
	if err != nil {
		return "", fmt.Errorf("read the schema of %s: %w", kind, err)
	}
	return string(text), nil
}
