// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"sigs.k8s.io/yaml"
)

// writeFiles writes the configuration of kubelet and containerd.
func (n *Node) writeFiles(port int) error {
	runc, err := systemProgram("runc")
	if err != nil {
		return err
	}
	user, err := n.plane.pki.client("system:node:"+n.Name, []string{"system:nodes"})
	if err != nil {
		return err
	}
	if err := n.plane.writeKubeconfig(n.path("kubelet.kubeconfig"), user); err != nil {
		return err
	}
	kubelet, err := n.kubeletConfig(port)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"kubelet.yaml":    kubelet,
		"containerd.toml": n.containerdConfig(runc),
		// Without a network the node would never be ready. Pods that use the
		// host's network never get as far as running the plugin.
		"cni/10-none.conflist": []byte(`{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "loopback"}]}`),
	}
	for name, content := range files {
		if err := os.WriteFile(n.path(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) kubeletConfig(port int) ([]byte, error) {
	config := map[string]any{
		"apiVersion":             "kubelet.config.k8s.io/v1beta1",
		"kind":                   "KubeletConfiguration",
		"address":                "127.0.0.1",
		"port":                   port,
		"healthzPort":            0,
		"authentication":         map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false}, "x509": map[string]any{"clientCAFile": n.plane.path("ca.crt")}},
		"authorization":          map[string]any{"mode": "AlwaysAllow"},
		"tlsCertFile":            n.plane.path("server.crt"),
		"tlsPrivateKeyFile":      n.plane.path("server.key"),
		"cgroupDriver":           "cgroupfs",
		"failCgroupV1":           false,
		"failSwapOn":             false,
		"clusterDNS":             []string{"127.0.0.1"},
		"podLogsDir":             n.path("pod-logs"),
		"volumePluginDir":        n.path("volume-plugins"),
		"featureGates":           n.plane.options.FeatureGates,
		"makeIPTablesUtilChains": false,
		// With control groups of its own for pods it would end what is in the
		// groups of another kubelet on this machine.
		"cgroupsPerQOS":            false,
		"enforceNodeAllocatable":   []string{},
		"containerRuntimeEndpoint": "unix://" + n.path("containerd.sock"),
		// The machine's disk may be as full as it likes.
		"evictionHard":                map[string]string{"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
	return yaml.Marshal(config)
}

func (n *Node) containerdConfig(runc string) []byte {
	return fmt.Appendf(nil, `version = 3
root = %[1]q
state = %[2]q
[grpc]
  address = %[3]q
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %[4]q
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  cdi_spec_dirs = [%[5]q]
  # Not every container that tests run in may lower it.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[6]q]
    conf_dir = %[6]q
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = %[7]q
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %[8]q
      SystemdCgroup = false
`, n.path("containerd/root"), n.path("containerd/state"), n.path("containerd.sock"), NodeImage, n.CDI, n.path("cni"),
		n.bin+"/containerd-shim-runc-v2", runc)
}

// systemProgram finds a program also where only root looks.
func systemProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// freePort finds a TCP port that nothing listens on right now.
func freePort() (port int, err error) {
	listener, err := net.Listen("tcp", loopback("0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("find a free port: %s", listener.Addr()), listener.Close())
	}
	return address.Port, listener.Close()
}

// writeNodeImage writes an image with the busybox of this machine, in the form
// of docker save. Without a command it does nothing, as the pause image does.
func writeNodeImage(path, name string) error {
	busybox, err := systemProgram("busybox")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	var layer archive
	for _, dir := range []string{"bin/", "tmp/", "etc/"} {
		layer.add(tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	}
	layer.add(tar.Header{Name: "bin/busybox", Mode: 0o755}, program)
	for _, applet := range strings.Fields("sh sleep env cat chmod wc ls grep sort true false mount") {
		layer.add(tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
	}
	content, err := layer.close()
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/bin/sleep", "2147483647"}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var image archive
	image.add(tar.Header{Name: "layer.tar", Mode: 0o644}, content)
	image.add(tar.Header{Name: "config.json", Mode: 0o644}, config)
	image.add(tar.Header{Name: "manifest.json", Mode: 0o644}, manifest)
	if content, err = image.close(); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// archive is a tar file in memory. The first error counts.
type archive struct {
	buf    bytes.Buffer
	writer *tar.Writer
	err    error
}

func (a *archive) add(header tar.Header, content []byte) {
	if a.writer == nil {
		a.writer = tar.NewWriter(&a.buf)
	}
	header.Size = int64(len(content))
	if a.err = errors.Join(a.err, a.writer.WriteHeader(&header)); a.err == nil {
		_, a.err = a.writer.Write(content)
	}
}

func (a *archive) close() ([]byte, error) {
	err := errors.Join(a.err, a.writer.Close())
	return a.buf.Bytes(), err
}
