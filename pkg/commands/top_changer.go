// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/list"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
)

// changer makes the changes that were confirmed on the dashboard.
type changer struct {
	clients collect.Clients
	// topFlags are kubectl's flags that select the cluster.
	flags []string
}

// CheckTaint fails if a text is no taint.
func (*changer) CheckTaint(text string) error {
	_, err := (&list.RuleFlags{All: true}).Rule(text)
	return err
}

// Plan says what a change does. Nothing is sent to the server.
func (c *changer) Plan(ctx context.Context, snap *snapshot.Snapshot, change tui.Change) (*tui.Plan, error) {
	switch change.Kind {
	case tui.AddTaint:
		return c.taint(ctx, snap, change)
	case tui.RemoveTaint:
		return c.untaint(ctx, snap, change.Name)
	case tui.Uncordon:
		return c.uncordon(ctx, snap, change.Name)
	case tui.DeleteClaim:
		return c.deleteClaim(snap, change.Namespace, change.Name)
	default:
		return nil, fmt.Errorf("%s: there is no such change", change)
	}
}

// command returns a command for the same cluster: a verb, and flags and names.
func (c *changer) command(verb string, words ...string) string {
	return strings.Join(slices.Concat([]string{verb}, words, c.flags), " ")
}

func (c *changer) taint(ctx context.Context, snap *snapshot.Snapshot, change tui.Change) (*tui.Plan, error) {
	flags := list.RuleFlags{Driver: change.Driver, Pool: change.Pool, Device: change.Device}
	rule, err := flags.Rule(change.Taint)
	if err != nil {
		return nil, err
	}
	words := []string{"--driver", shell.Quote(change.Driver), "--pool", shell.Quote(change.Pool)}
	if change.Device != "" {
		words = append(words, "--device", shell.Quote(change.Device))
	}
	named, err := freeName(snap, rule)
	if err != nil {
		return nil, err
	}
	if named {
		words = append(words, "--name", shell.Quote(rule.Name))
	}
	var effects bytes.Buffer
	warning, err := list.PreviewRule(ctx, &effects, snap, rule)
	if err != nil {
		return nil, err
	}
	return &tui.Plan{
		Command: c.command("kubectl dra taints add", append(words, shell.Quote(change.Taint))...), Effects: effects.String(), Warning: warning,
		Do: func(ctx context.Context) (string, error) {
			rules, err := list.RulesOf(c.clients)
			if err == nil {
				_, err = rules.Create(ctx, rule)
			}
			return fmt.Sprintf("DeviceTaintRule %s added", rule.Name), err
		},
	}, nil
}

// freeName gives the rule a name that no other has, and reports whether that took another
// one than the usual. It fails if there is a rule that says the same.
func freeName(snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (named bool, err error) {
	taken := map[string]bool{}
	for _, other := range snap.TaintRules {
		taken[other.Name] = true
		a, b := other.Spec.Taint, rule.Spec.Taint
		if a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && equality.Semantic.DeepEqual(other.Spec.DeviceSelector, rule.Spec.DeviceSelector) {
			return false, fmt.Errorf("taint devices with %s: DeviceTaintRule %s does that already", b.String(), other.Name)
		}
	}
	usual := rule.Name
	for i := 2; taken[rule.Name]; i++ {
		rule.Name = fmt.Sprintf("%s-%d", usual, i)
	}
	return rule.Name != usual, nil
}

func (c *changer) untaint(ctx context.Context, snap *snapshot.Snapshot, name string) (*tui.Plan, error) {
	at := slices.IndexFunc(snap.TaintRules, func(rule *resourceapi.DeviceTaintRule) bool { return rule.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("remove DeviceTaintRule %s: it is gone", name)
	}
	rule := snap.TaintRules[at]
	effects, err := withoutRule(ctx, snap, rule)
	if err != nil {
		return nil, err
	}
	return &tui.Plan{
		Command: c.command("kubectl dra taints remove", shell.Quote(name)), Effects: effects,
		Do: func(ctx context.Context) (string, error) {
			rules, err := list.RulesOf(c.clients)
			if err == nil {
				err = staleChange("remove DeviceTaintRule "+name, rules.Delete(ctx, rule))
			}
			return fmt.Sprintf("DeviceTaintRule %s removed", name), err
		},
	}, nil
}

func (c *changer) uncordon(ctx context.Context, snap *snapshot.Snapshot, name string) (*tui.Plan, error) {
	node := snap.Node(name)
	switch {
	case node == nil:
		return nil, fmt.Errorf("uncordon node %s: it is gone", name)
	case !node.Spec.Unschedulable:
		return nil, fmt.Errorf("uncordon node %s: it is not cordoned", name)
	}
	effects, err := uncordoned(ctx, snap, name)
	if err != nil {
		return nil, err
	}
	// With another UID, it is another node of the same name, and the server refuses.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID}, "spec": map[string]any{"unschedulable": nil}})
	if err != nil {
		return nil, fmt.Errorf("uncordon node %s: %w", name, err)
	}
	return &tui.Plan{
		Command: c.command("kubectl uncordon", shell.Quote(name)), Effects: effects,
		Do: func(ctx context.Context) (string, error) {
			_, err := c.clients.Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: cli.FieldManager})
			if err != nil {
				err = staleChange("uncordon node "+name, fmt.Errorf("uncordon node %s: %w", name, err))
			}
			return fmt.Sprintf("node %s uncordoned", name), err
		},
	}, nil
}

func (c *changer) deleteClaim(snap *snapshot.Snapshot, namespace, name string) (*tui.Plan, error) {
	claim := snap.Claim(namespace, name)
	switch {
	case claim == nil:
		return nil, fmt.Errorf("delete ResourceClaim %s/%s: it is gone", namespace, name)
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("delete ResourceClaim %s/%s: it is being deleted already, and goes when no pod uses it any more", namespace, name)
	}
	effects, warning := withoutClaim(snap, claim)
	return &tui.Plan{
		Command: c.command("kubectl delete", shell.KubectlObjects("resourceclaim", namespace, name), "--wait=false"), Effects: effects, Warning: warning,
		Do: func(ctx context.Context) (string, error) {
			kind := fmt.Sprintf("ResourceClaim %s/%s", namespace, name)
			mapping, err := c.clients.Mapper.RESTMapping(schema.GroupKind{Group: resourceapi.GroupName, Kind: "ResourceClaim"})
			if err != nil {
				return "", fmt.Errorf("delete %s: find ResourceClaims at %s: %w", kind, c.clients.Address(), err)
			}
			options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))}
			if err := c.clients.Dynamic.Resource(mapping.Resource).Namespace(namespace).Delete(ctx, name, options); err != nil {
				return "", staleChange("delete "+kind, fmt.Errorf("delete %s: %w", kind, err))
			}
			if len(claim.Status.ReservedFor) > 0 {
				return kind + " marked for deletion", nil
			}
			return kind + " deleted", nil
		},
	}, nil
}

// staleChange turns a server's error that an object is gone, or is another one of the same name,
// into a [tui.StaleError] about the intended change. Others stay.
func staleChange(doing string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &tui.StaleError{Err: fmt.Errorf("%s: it is gone", doing)}
	case apierrors.IsConflict(err):
		return &tui.StaleError{Err: fmt.Errorf("%s: it was deleted meanwhile, and this is another one of the same name", doing)}
	default:
		return err
	}
}
