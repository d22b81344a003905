// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// logTail is how many lines of a component's log an error shows.
const logTail = 30

// process is a running component.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// done is closed when the process has ended; err is valid after that.
	done chan struct{}
	err  error
}

// launcher starts processes from one thread that lives until it is closed:
// the kernel ties a child's death signal to the thread that started it, not to
// the parent process.
type launcher struct{ work chan func() }

func newLauncher() *launcher {
	l := &launcher{work: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		for f := range l.work {
			f()
		}
	}()
	return l
}

// start runs a binary with its output going to <dir>/<name>.log.
func (l *launcher) start(dir, name, binary string, args ...string) (p *process, err error) {
	p = &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// The process has its own copy of it.
	defer func() { err = errors.Join(err, log.Close()) }()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	l.work <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// waitHealthy polls a URL until it answers 200, the process ends, or ctx does.
func (p *process) waitHealthy(ctx context.Context, client *http.Client, url string) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last string
	for {
		ok, answer := get(ctx, client, url)
		if ok {
			return nil
		}
		if answer != "" {
			last = answer
		}
		select {
		case <-p.done:
			return fmt.Errorf("start %s: it ended (%w)\n%s", p.name, p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("start %s: not ready in time, %s says %q: %w\n%s", p.name, url, last, ctx.Err(), p.tail())
		case <-ticker.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (ok bool, answer string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	return send(client, request)
}

// send reports whether the answer is that all went well, and its text.
func send(client *http.Client, request *http.Request) (ok bool, answer string) {
	response, err := client.Do(request)
	if err != nil {
		return false, err.Error()
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return false, err.Error()
	}
	return response.StatusCode == http.StatusOK, body.String()
}

// stop ends the process at once: nothing it has is worth a graceful end.
func (p *process) stop() {
	select {
	case <-p.done:
		return
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil {
		// It ended by itself in the meantime; Wait has reported that.
		<-p.done
		return
	}
	<-p.done
}

// tail returns the end of the log.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	lines = lines[max(0, len(lines)-logTail):]
	return fmt.Sprintf("--- end of the log of %s ---\n%s\n", p.name, strings.Join(lines, "\n"))
}

// healthClient talks to health endpoints with a client certificate.
func healthClient(ca []byte, client keyPair) (*http.Client, error) {
	certificate, err := tls.X509KeyPair(client.cert, client.key)
	if err != nil {
		return nil, fmt.Errorf("use the client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		},
	}, nil
}
