// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package save

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Format is how a snapshot is written.
type Format string

const (
	// JSON is one JSON object with one item a line.
	JSON Format = "json"
	// YAML is one YAML document for the header and one for each object.
	YAML Format = "yaml"
)

// Snapshot writes everything that [load.Load] reads back to an equal snapshot. In JSON
// that is one object of kind Snapshot with one object of the cluster on each
// line; in YAML it is a document of kind Snapshot and one for each object.
func Snapshot(w io.Writer, s *snapshot.Snapshot, format Format) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch format {
	case JSON:
		err = writeJSON(buffered, s)
	case YAML:
		err = writeYAML(buffered, s)
	default:
		err = fmt.Errorf("unknown format %q: expected %s or %s", format, JSON, YAML)
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// File saves the snapshot as a file that only its owner can read. The
// extension decides the format: .json, .yaml or .yml, each also with .gz.
// The file is there completely or not at all, also when the context is canceled.
func File(ctx context.Context, s *snapshot.Snapshot, path string) (err error) {
	format, compressed, err := formatOf(path)
	if err != nil {
		return err
	}
	// os.CreateTemp makes files with mode 0600.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return saveError(path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err := writeTo(&cancelableWriter{ctx, file}, s, format, compressed); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return saveError(path, err)
	}
	if err := file.Close(); err != nil {
		return saveError(path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return saveError(path, err)
	}
	return nil
}

// cancelableWriter fails after the context is canceled.
type cancelableWriter struct {
	ctx context.Context
	to  io.Writer
}

func (w *cancelableWriter) Write(text []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(text)
}

// saveError names the file that the user named instead of the temporary file.
func saveError(path string, err error) error {
	var (
		atPath *fs.PathError
		atLink *os.LinkError
	)
	switch {
	case errors.As(err, &atPath):
		err = atPath.Err
	case errors.As(err, &atLink):
		err = atLink.Err
	}
	return fmt.Errorf("save snapshot as %s: %w", path, err)
}

func writeTo(w io.Writer, s *snapshot.Snapshot, format Format, compressed bool) error {
	if !compressed {
		return Snapshot(w, s, format)
	}
	stream := gzip.NewWriter(w)
	if err := Snapshot(stream, s, format); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

func formatOf(path string) (format Format, compressed bool, err error) {
	name := strings.ToLower(filepath.Base(path))
	name, compressed = strings.CutSuffix(name, ".gz")
	switch filepath.Ext(name) {
	case ".json":
		return JSON, compressed, nil
	case ".yaml", ".yml":
		return YAML, compressed, nil
	default:
		return "", false, fmt.Errorf("save snapshot as %s: unknown file extension: "+
			"expected .json, .yaml, .yml, .json.gz, .yaml.gz or .yml.gz", path)
	}
}

func writeJSON(w io.Writer, s *snapshot.Snapshot) error {
	header, err := headerOf(s)
	if err != nil {
		return err
	}
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	// The items go before the brace that ends the header.
	if _, err := fmt.Fprintf(w, "%s,\"items\":[", bytes.TrimSuffix(head, []byte("}"))); err != nil {
		return err
	}
	separator := "\n"
	err = eachManifest(s, func(manifest any) error {
		line, err := json.Marshal(manifest)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", separator, line)
		separator = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func writeYAML(w io.Writer, s *snapshot.Snapshot) error {
	save := func(manifest any) error {
		document, err := MarshalYAML(manifest)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "---\n%s", document)
		return err
	}
	header, err := headerOf(s)
	if err != nil {
		return err
	}
	if err := save(header); err != nil {
		return err
	}
	return eachManifest(s, save)
}

func headerOf(s *snapshot.Snapshot) (snapshot.Header, error) {
	objects := 0
	if err := eachManifest(s, func(any) error { objects++; return nil }); err != nil {
		return snapshot.Header{}, err
	}
	h := snapshot.Header{ServerVersion: s.ServerVersion, Emulator: s.Emulator, Served: s.Served, Gates: s.Gates, Gaps: s.Gaps, Listed: s.Listed, Objects: &objects}
	h.APIVersion, h.Kind = api.APIVersion, snapshot.KindSnapshot
	if !s.TakenAt.IsZero() {
		h.TakenAt = &s.TakenAt
	}
	return h, nil
}

// eachManifest calls save with each object as it is to be written.
func eachManifest(s *snapshot.Snapshot, save func(manifest any) error) error {
	core, resource, scheduling := corev1.SchemeGroupVersion, resourceapi.SchemeGroupVersion, schedulingapi.SchemeGroupVersion
	for _, write := range []func() error{
		manifests(s.Namespaces, core.WithKind("Namespace"), save),
		manifests(s.Nodes, core.WithKind("Node"), save),
		manifests(s.Classes, resource.WithKind("DeviceClass"), save),
		manifests(s.Slices, resource.WithKind("ResourceSlice"), save),
		manifests(s.TaintRules, resource.WithKind("DeviceTaintRule"), save),
		manifests(s.Templates, resource.WithKind("ResourceClaimTemplate"), save),
		manifests(s.Claims, resource.WithKind("ResourceClaim"), save),
		manifests(s.PoolStatuses, resourcev1alpha3.SchemeGroupVersion.WithKind(snapshot.KindPoolStatus), save),
		manifests(s.CompositePodGroups, schedulingv1alpha3.SchemeGroupVersion.WithKind("CompositePodGroup"), save),
		manifests(s.PodGroups, scheduling.WithKind("PodGroup"), save),
		manifests(s.Pods, core.WithKind("Pod"), save),
		manifests(s.Events, core.WithKind("Event"), save),
		manifests(s.ComputeDomains, snapshot.ComputeDomainVersionKind(snapshot.KindComputeDomain), save),
		manifests(s.Cliques, snapshot.ComputeDomainVersionKind(snapshot.KindClique), save),
		manifests(s.Queued, snapshot.QueuedWorkloadKind(), save),
		manifests(s.Outlines, schema.FromAPIVersionAndKind(api.APIVersion, snapshot.KindOutline), save),
		manifests(s.Quotas, core.WithKind("ResourceQuota"), save),
		manifests(s.LimitRanges, core.WithKind("LimitRange"), save),
		manifests(s.VolumeClaims, core.WithKind("PersistentVolumeClaim"), save),
		manifests(s.Volumes, core.WithKind("PersistentVolume"), save),
		manifests(s.StorageClasses, storageapi.SchemeGroupVersion.WithKind("StorageClass"), save),
		manifests(s.Budgets, policyapi.SchemeGroupVersion.WithKind("PodDisruptionBudget"), save),
	} {
		if err := write(); err != nil {
			return err
		}
	}
	for _, workload := range s.Workloads {
		manifest, err := kinds.WorkloadManifest(workload)
		if err != nil {
			return fmt.Errorf("%s %s/%s: %w", workload.Kind, workload.Namespace, workload.Name, err)
		}
		if err := save(manifest); err != nil {
			return fmt.Errorf("%s %s/%s: %w", workload.Kind, workload.Namespace, workload.Name, err)
		}
	}
	return nil
}

// manifests returns a function that saves copies of the objects that say what
// they are.
func manifests[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](objects []P, kind schema.GroupVersionKind, save func(any) error) func() error {
	return func() error {
		for _, object := range objects {
			manifest := *object
			P(&manifest).GetObjectKind().SetGroupVersionKind(kind)
			if err := save(&manifest); err != nil {
				return fmt.Errorf("%s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
			}
		}
		return nil
	}
}
