// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// packed is a file in an archive.
type packed struct {
	name     string
	modified time.Time
	content  []byte
}

// unpack reads an archive. Only plain files may be in it: krew refuses all else.
func unpack(t *testing.T, path string) []packed {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := unzip
	if strings.HasSuffix(path, ".tar.gz") {
		open = untar
	}
	files, err := open(content)
	if err != nil {
		t.Fatalf("unpack %s: %v", path, err)
	}
	return files
}

func unzip(content []byte) ([]packed, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	var files []packed
	for _, file := range archive.File {
		if !file.Mode().IsRegular() {
			return nil, errors.New(file.Name + " is no plain file")
		}
		from, err := file.Open()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return nil, err
		}
		files = append(files, packed{name: file.Name, modified: file.Modified, content: content})
	}
	return files, nil
}

func untar(content []byte) ([]packed, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(unzipped)
	var files []packed
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			return nil, errors.New(header.Name + " is no plain file")
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files = append(files, packed{name: header.Name, modified: header.ModTime, content: content})
	}
}

// program unpacks the program of an archive and returns where it is.
func program(t *testing.T, archive string) string {
	t.Helper()
	for _, file := range unpack(t, archive) {
		if strings.HasPrefix(file.name, "kubectl-dra") {
			path := filepath.Join(t.TempDir(), file.name)
			if err := os.WriteFile(path, file.content, 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("%s has no program", archive)
	return ""
}

// neededLibraries returns the libraries that the dynamic linker loads.
func neededLibraries(t *testing.T, path string) []string {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return libraries
}

// checkNVML looks whether a program with NVML starts where docs/install.md says,
// and leaves NVML's functions to the dynamic linker.
func checkNVML(t *testing.T, path string) {
	t.Helper()
	if libraries := neededLibraries(t, path); !slices.Equal(libraries, []string{"libc.so.6"}) {
		t.Errorf("the program with NVML needs %s", strings.Join(libraries, ", "))
	}
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(symbols, func(symbol elf.ImportedSymbol) bool { return symbol.Name == "nvmlInit_v2" }) {
		t.Error("the program with NVML cannot find nvmlInit_v2")
	}
	for _, symbol := range symbols {
		var minor int
		if _, err := fmt.Sscanf(symbol.Version, "GLIBC_2.%d", &minor); err == nil && minor > 34 {
			t.Errorf("the program with NVML needs %s of %s", symbol.Name, symbol.Version)
		}
	}
}

// archiveSums reads checksums.txt: by name of the archive.
func archiveSums(t *testing.T, dist string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 2 && !strings.HasSuffix(fields[1], ".json") {
			sums[fields[1]] = fields[0]
		}
	}
	return sums
}
