// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Evaluation is the result of a CEL expression on devices, whatever their state.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Evaluation struct {
	metav1.TypeMeta `json:",inline"`

	// Expression is the evaluated expression. With a device to single out, it is the
	// shortest of Selectors; it is empty if there is none.
	Expression string `json:"expression"`
	// DeviceClass, Driver and Device chose the devices, each empty if it was not given.
	// Devices counts the chosen devices.
	DeviceClass string `json:"deviceClass,omitempty"`
	Driver      string `json:"driver,omitempty"`
	Device      string `json:"device,omitempty"`
	Devices     int    `json:"devices"`
	// Outcomes counts the devices by outcome. All are 0 if the expression does not compile.
	Outcomes EvaluationOutcomes `json:"outcomes"`
	// Problem says why the expression does not compile.
	Problem *ExpressionProblem `json:"problem,omitempty"`
	// Cost estimates the cost of an evaluation in the worst case, in the units of CEL; 0 if
	// it is not known. CostLimit is the limit of the API server for this estimate and for
	// an evaluation.
	Cost      uint64 `json:"cost,omitempty"`
	CostLimit uint64 `json:"costLimit"`
	// Failures are the errors of the expression.
	Failures []SelectorFailure `json:"failures,omitempty"`
	// Drivers has the outcomes by driver, in the order of their names.
	Drivers []DriverOutcomes `json:"drivers,omitempty"`
	// Nodes has the outcomes by node, in groups of nodes with the same outcomes. The groups
	// with the most devices for which the expression is true come first.
	Nodes []NodeOutcomes `json:"nodes,omitempty"`
	// Parts are the operands of the outermost &&, or the whole expression, with the
	// values that they read. There are none if it cannot be taken apart.
	Parts []SelectorPart `json:"parts,omitempty"`
	// Matching are the first ten devices for which it is true, as driver/pool/device.
	Matching []string `json:"matching,omitempty"`
	// Notes are further remarks, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Suggestions are better expressions.
	Suggestions []ExpressionSuggestion `json:"suggestions,omitempty"`
	// Comparison compares with the other given expression.
	Comparison *ExpressionComparison `json:"comparison,omitempty"`
	// Like describes the device to single out.
	Like *DeviceLikeness `json:"like,omitempty"`
}

// EvaluationOutcomes counts devices by the outcome of an expression.
type EvaluationOutcomes struct {
	// True, False and Fails count the devices for which the expression is true, is false,
	// or ends with an error. With an error on one device, scheduling fails on every node.
	True  int `json:"true"`
	False int `json:"false"`
	Fails int `json:"fails"`
}

// ExpressionProblem is a compile error of an expression.
type ExpressionProblem struct {
	// Reason is the compiler's message.
	Reason string `json:"reason"`
	// Line and Column are its position, both from 1; Column counts characters. They are
	// absent if the error concerns the whole expression.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// More counts further errors.
	More int `json:"more,omitempty"`
}

// DriverOutcomes are the outcomes on the devices of a driver.
type DriverOutcomes struct {
	Driver   string             `json:"driver"`
	Outcomes EvaluationOutcomes `json:"outcomes"`
}

// NodeOutcomes are the outcomes on nodes that are equivalent for an expression.
type NodeOutcomes struct {
	// Count is the number of nodes, Names has all of them. Both are empty for devices that
	// are not for one node by name: Scope then names their nodes.
	Count int      `json:"count,omitempty"`
	Names []string `json:"names,omitempty"`
	Scope string   `json:"scope,omitempty"`
	// Outcomes counts the devices of each of the nodes.
	Outcomes EvaluationOutcomes `json:"outcomes"`
}

// SuggestionReason is the reason for a suggestion.
type SuggestionReason string

// Reasons for suggestions.
const (
	// SuggestCorrection means that the expression corrects probable typos.
	SuggestCorrection SuggestionReason = "Correction"
	// SuggestGuard means that the expression is false, instead of failing, on devices
	// without the values that it reads.
	SuggestGuard SuggestionReason = "Guard"
)

// ExpressionSuggestion is a better expression.
type ExpressionSuggestion struct {
	Reason SuggestionReason `json:"reason"`
	// Expression was evaluated for the same devices, with these Outcomes.
	Expression string             `json:"expression"`
	Outcomes   EvaluationOutcomes `json:"outcomes"`
	// Changes are the differences from the given expression.
	Changes []ExpressionChange `json:"changes,omitempty"`
}

// ExpressionChange is a part of an expression that was replaced.
type ExpressionChange struct {
	// From is the original part, To its replacement.
	From string `json:"from"`
	To   string `json:"to"`
}

// ExpressionComparison compares an expression with another one.
type ExpressionComparison struct {
	// Expression is the other expression, with its Outcomes and its Problem.
	Expression string             `json:"expression"`
	Outcomes   EvaluationOutcomes `json:"outcomes"`
	Problem    *ExpressionProblem `json:"problem,omitempty"`
	// Different counts the devices with another outcome. Differences groups them by the two
	// outcomes.
	Different   int                 `json:"different"`
	Differences []OutcomeDifference `json:"differences,omitempty"`
}

// OutcomeDifference are devices with the same two outcomes.
type OutcomeDifference struct {
	// From is the outcome of the expression, To the outcome of the other one: True, False
	// or Fails.
	From string `json:"from"`
	To   string `json:"to"`
	// Count is the number of devices, Devices has the first ten of them as
	// driver/pool/device.
	Count   int      `json:"count"`
	Devices []string `json:"devices"`
}

// DeviceLikeness has the devices that are like a given one, and expressions that select
// them.
type DeviceLikeness struct {
	// Device is the given device, as driver/pool/device. Count is the number of devices
	// like it, itself included: devices of its driver with the same values.
	Device string `json:"device"`
	Count  int    `json:"count"`
	// Same are the attributes and capacities that must have the same value, as DOMAIN/NAME.
	// LeftOut are the others: they identify single devices, or their place.
	Same    []string `json:"same,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
	// Selectors are expressions that are true for these devices, false for all other chosen
	// ones, and fail for none: each was evaluated. The shortest comes first.
	Selectors []string `json:"selectors,omitempty"`
}
