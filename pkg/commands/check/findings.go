// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// findingFlags choose which checks are made, which findings are shown, and which of them
// make the exit code 1.
type findingFlags struct {
	only, skip          []string
	minSeverity, failOn string
}

// addTo adds the flags to a verb that makes these checks, of which the example has some,
// and fails from a severity on.
func (f *findingFlags) addTo(cmd *cobra.Command, all []checks.Description, example string, failOn api.Severity) {
	severities := strings.Join(severityNames(), ", ")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "Make only the checks whose `CODES` begin like this, a list like "+example+".")
	cmd.Flags().StringSliceVar(&f.skip, "skip", nil, "Leave out the checks whose `CODES` begin like this.")
	cmd.Flags().StringVar(&f.minSeverity, "min-severity", string(api.SeverityInfo), "Leave out findings below this `SEVERITY`: "+severities+".")
	cmd.Flags().StringVar(&f.failOn, "fail-on", string(failOn), "Exit with 1 if there is a finding of this `SEVERITY` or a worse one: "+severities+".")
	// They only fail if somebody registered one before.
	for _, name := range []string{"only", "skip"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cli.ListOfFixed(checks.Codes(all)...))
	}
	for _, name := range []string{"min-severity", "fail-on"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cli.Fixed(severityNames()...))
	}
}

// toChoice returns what the flags come down to, for these checks.
func (f *findingFlags) toChoice(all []checks.Description, groups []checks.Group) (choice checks.Choice, failOn api.Severity, err error) {
	choice = checks.Choice{Only: f.only, Skip: f.skip}
	if err := knownCodes(checks.Codes(all), groups, f.only, f.skip); err != nil {
		return choice, "", err
	}
	if choice.MinSeverity, err = severityOf("min-severity", f.minSeverity); err != nil {
		return choice, "", err
	}
	failOn, err = severityOf("fail-on", f.failOn)
	return choice, failOn, err
}

func severityNames() []string {
	var list []string
	for _, s := range checks.Severities() {
		list = append(list, string(s))
	}
	return list
}

// knownCodes fails for prefixes of no code.
func knownCodes(all []string, groups []checks.Group, only, skip []string) error {
	for name, codes := range map[string][]string{"only": only, "skip": skip} {
		for _, code := range codes {
			if !slices.ContainsFunc(all, func(known string) bool { return code != "" && strings.HasPrefix(known, strings.ToUpper(code)) }) {
				return cli.Usagef(existingCodes(groups), "read --%s: there is no check %q%s", name, code, english.DidYouMean(code, all))
			}
		}
	}
	return nil
}

// existingCodes says what codes begin with.
func existingCodes(groups []checks.Group) string {
	var list []string
	for _, group := range groups {
		list = append(list, "DRA"+group.Number+" ("+group.Title+")")
	}
	return "Codes begin with " + english.JoinOr(list) + ", which stands for all that begin so; docs/checks/README.md lists them."
}

// severityOf reads a severity, in any case of letters.
func severityOf(flag, text string) (api.Severity, error) {
	for _, s := range checks.Severities() {
		if strings.EqualFold(string(s), text) {
			return s, nil
		}
	}
	return "", cli.NotAllowed(flag, text, severityNames())
}

// toFindingsPrinter returns the printer of a verb that prints findings.
func toFindingsPrinter(output *cli.OutputFlags, streams genericiooptions.IOStreams) (*cli.Printer, error) {
	printer, err := output.ToPrinter(streams)
	if err == nil && printer.Names {
		return nil, cli.Usagef("Print the objects with -o jsonpath='{.findings[*].objects}'.", "-o name: findings have no names")
	}
	return printer, err
}

// rules returns the checks that were made, for programs that read the reports of linters.
func rules(all []checks.Description, made []string) []render.Rule {
	var list []render.Rule
	for _, check := range all {
		if slices.Contains(made, check.Code) {
			list = append(list, render.Rule{
				Code: check.Code, Title: check.Title, About: check.About, Advice: check.Advice, Page: "docs/checks/" + check.Code + ".md", Severity: check.Severity,
			})
		}
	}
	return list
}

// notRead says what could not be read, as far as no check does.
func notRead(snap *snapshot.Snapshot, found []api.Finding) []string {
	var notes []string
	for _, gap := range snap.Gaps {
		said := slices.ContainsFunc(found, func(f api.Finding) bool {
			return f.Severity == api.SeverityUnknown && strings.Contains(f.Message, gap.Reason)
		})
		if !said && !slices.Contains(notes, gap.Reason) {
			notes = append(notes, gap.Reason)
		}
	}
	return notes
}

// outcome returns the exit code.
func outcome(counts api.FindingCounts, failOn api.Severity) error {
	switch {
	case checks.Reaches(counts, failOn):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case counts.Unknown > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}
