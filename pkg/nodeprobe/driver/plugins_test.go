// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func services(s *Socket) string {
	var all []string
	for _, service := range s.Services {
		text := service.Name + " " + string(service.Served)
		if !service.Advertised {
			text += " unadvertised"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestLookAtRealDrivers(t *testing.T) {
	for name, test := range map[string]struct {
		config testdriver.Config
		want   string
	}{
		"both versions": {testdriver.Config{}, "v1.DRAPlugin Yes, v1beta1.DRAPlugin Yes, v1.DRAResourceHealth Yes, v1alpha1.DRAResourceHealth Yes"},
		"v1beta1":       {testdriver.Config{OnlyV1beta1: true}, "v1beta1.DRAPlugin Yes, v1alpha1.DRAResourceHealth Yes"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			start(t, host, test.config)
			f := look(t, host, cluster(gpu), patient())
			wantNo(t, f.Checks, node.Problem)
			// The directory of device plugins is that of the machine which runs the test.
			wantNo(t, slices.DeleteFunc(slices.Clone(f.Checks), func(c node.Check) bool { return c.Name == checkDevices }), node.Unknown)
			if len(f.Plugins) != 1 || f.Plugins[0].Name != gpu || f.Plugins[0].Service == nil {
				t.Fatalf("plugins are %+v", f.Plugins)
			}
			p := f.Plugins[0]
			if got := services(p.Service); got != test.want {
				t.Errorf("services are %s, want %s", got, test.want)
			}
			if p.Registration.AnswerMillis <= 0 || p.Service.AnswerMillis <= 0 {
				t.Errorf("it lacks how fast it answers: %+v", p)
			}
			if len(f.Others) != 0 {
				t.Errorf("the endpoint is listed as a socket without registration: %+v", f.Others)
			}
		})
	}
}

func TestLookInAnotherRoot(t *testing.T) {
	root := kubeletDir(t).Kubelet
	host := node.NewHost(root, "", nil)
	host.Name = nodeName
	start(t, host, testdriver.Config{Root: root})
	f := look(t, host, cluster(gpu), patient())
	wantNo(t, f.Checks, node.Problem)
	if len(f.Plugins) != 1 || f.Plugins[0].Service.Path != "/var/lib/kubelet/plugins/gpu.example.com/dra.sock" || f.Plugins[0].Service.Answer != node.Answers {
		t.Errorf("plugins are %+v", f.Plugins)
	}
}

func TestLookAtLongPath(t *testing.T) {
	host := kubeletDir(t)
	start(t, host, testdriver.Config{})
	// A socket that was made elsewhere can have a path that is too long for an
	// address.
	long := filepath.Join(host.Kubelet, registryDir, strings.Repeat("d", 100))
	must(t, os.MkdirAll(long, 0o750))
	must(t, os.Rename(filepath.Join(host.Kubelet, registryDir, gpu+"-reg.sock"), filepath.Join(long, gpu+"-reg.sock")))
	f := look(t, host, cluster(gpu), patient())
	answer := node.Answers
	if runtime.GOOS != "linux" {
		answer = node.NotAsked
	}
	if len(f.Plugins) != 1 || f.Plugins[0].Registration.Answer != answer {
		t.Errorf("plugins are %+v", f.Plugins)
	}
}

// endless answers a call with more than anybody wants to read.
func endless(conn net.Conn) {
	junk := bytes.Repeat([]byte("DRA"), 1<<16)
	for range 100 << 20 / len(junk) {
		if _, err := conn.Write(junk); err != nil {
			return
		}
	}
}

func TestLookAtHostileSockets(t *testing.T) {
	const reg = registryDir + "/evil-reg.sock"
	outside := kubeletDir(t)
	listenAt(t, outside, "other.sock")
	for name, test := range map[string]struct {
		make   func(t *testing.T, host *node.Host)
		answer node.Answer
		text   string
	}{
		"never answers": {func(t *testing.T, host *node.Host) {
			raw(t, host, reg, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		}, node.Silent, "does not answer in time"},
		"never accepts": {func(t *testing.T, host *node.Host) { listenAt(t, host, reg) }, node.Silent, "does not answer in time"},
		"garbage": {func(t *testing.T, host *node.Host) {
			raw(t, host, reg, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n<html>")) })
		}, node.Broken, "does not speak gRPC"},
		"100 MB":         {func(t *testing.T, host *node.Host) { raw(t, host, reg, endless) }, node.Broken, "does not speak gRPC"},
		"closes at once": {func(t *testing.T, host *node.Host) { raw(t, host, reg, func(net.Conn) {}) }, node.Broken, "closes the connection"},
		"closes midway": {func(t *testing.T, host *node.Host) {
			raw(t, host, reg, func(c net.Conn) { _, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}) })
		}, node.Broken, "closes the connection"},
		"is a file": {func(t *testing.T, host *node.Host) {
			must(t, os.WriteFile(filepath.Join(host.Kubelet, reg), []byte("x"), 0o600))
		}, node.NotSocket, "is no socket"},
		"leads out": {func(t *testing.T, host *node.Host) {
			must(t, os.Symlink(filepath.Join(outside.Kubelet, "other.sock"), filepath.Join(host.Kubelet, reg)))
		}, node.LeadsOut, outside.Kubelet + "/other.sock"},
		"leads in a circle": {func(t *testing.T, host *node.Host) {
			must(t, os.Symlink("evil-reg.sock", filepath.Join(host.Kubelet, reg)))
		}, node.Broken, "too many"},
		"leads nowhere": {func(t *testing.T, host *node.Host) {
			must(t, os.Symlink("gone.sock", filepath.Join(host.Kubelet, reg)))
		}, node.Missing, "there is no such socket"},
		"is stale": {func(t *testing.T, host *node.Host) {
			listener, ok := listenAt(t, host, reg).(*net.UnixListener)
			if !ok {
				t.Fatal("no socket")
			}
			listener.SetUnlinkOnClose(false)
			must(t, listener.Close())
		}, node.Stale, "nobody listens"},
		"sends a message of 100 MB": {func(t *testing.T, host *node.Host) {
			server := grpc.NewServer(grpc.MaxSendMsgSize(200 << 20))
			registerv1.RegisterRegistrationServer(server, &scripted{info: &registerv1.PluginInfo{Name: strings.Repeat("x", 100<<20)}})
			listener := listenAt(t, host, reg)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
		}, node.Broken, "sends too much"},
		"has no such service": {func(t *testing.T, host *node.Host) {
			server := grpc.NewServer()
			listener := listenAt(t, host, reg)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
		}, node.Broken, "unknown service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := kubeletDir(t)
			test.make(t, host)
			// Only what never answers is not waited for.
			opts := patient()
			if test.answer == node.Silent {
				opts = quick()
			}
			f := look(t, host, nil, opts)
			if len(f.Plugins) != 1 {
				t.Fatalf("plugins are %+v", f.Plugins)
			}
			r := f.Plugins[0].Registration
			if r.Answer != test.answer || !strings.Contains(r.Message, test.text) {
				t.Errorf("it %s: %s; want %s: %s", r.Answer, r.Message, test.answer, test.text)
			}
			want(t, f.Checks, checkRegistered, test.answer.State(), test.text)
		})
	}
}

func TestLookGoesOnAfterBadNeighbors(t *testing.T) {
	host := kubeletDir(t)
	start(t, host, testdriver.Config{})
	raw(t, host, registryDir+"/a-reg.sock", func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	raw(t, host, pluginsDir+"/b/dra.sock", endless)
	f := look(t, host, cluster(gpu), longer())
	want(t, f.Checks, checkRegistered, node.Problem, "does not answer in time")
	want(t, f.Checks, checkEndpoint, node.OK, "driver gpu.example.com answers")
	want(t, f.Checks, checkOthers, node.Unknown, "no registration names it")
	want(t, f.Checks, checkSlices, node.OK, "driver gpu.example.com has 1 slice")
}

func TestLookAtEndpoints(t *testing.T) {
	outside := kubeletDir(t)
	listenAt(t, outside, "other.sock")
	for name, test := range map[string]struct {
		make  func(t *testing.T, host *node.Host)
		check string
		state node.State
		text  string
	}{
		"gone": {func(t *testing.T, host *node.Host) {
			must(t, os.Remove(filepath.Join(host.Kubelet, pluginsDir, "x.com/dra.sock")))
		}, checkEndpoint, node.Problem, "there is no such socket"},
		"leads out": {func(t *testing.T, host *node.Host) {
			endpoint := filepath.Join(host.Kubelet, pluginsDir, "x.com/dra.sock")
			must(t, os.Remove(endpoint))
			must(t, os.Symlink(filepath.Join(outside.Kubelet, "other.sock"), endpoint))
		}, checkEndpoint, node.Unknown, "was not followed"},
		"open to everybody": {func(t *testing.T, host *node.Host) {
			for _, dir := range []string{"", pluginsDir, pluginsDir + "/x.com"} {
				must(t, os.Chmod(filepath.Join(host.Kubelet, dir), 0o755))
			}
			must(t, os.Chmod(filepath.Join(host.Kubelet, pluginsDir, "x.com/dra.sock"), 0o777))
		}, checkAccess, node.Problem, "everybody on the node"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			serve(t, host, "x.com", &scripted{})
			test.make(t, host)
			want(t, look(t, host, nil, patient()).Checks, test.check, test.state, test.text)
		})
	}
	t.Run("closed directory", func(t *testing.T) {
		host := kubeletDir(t)
		serve(t, host, "x.com", &scripted{})
		must(t, os.Chmod(filepath.Join(host.Kubelet, pluginsDir, "x.com/dra.sock"), 0o777))
		wantNo(t, look(t, host, cluster("x.com"), patient()).Checks, node.Problem)
	})
}

func TestLookAtWhatIsAdvertised(t *testing.T) {
	for name, test := range map[string]struct {
		info  *registerv1.PluginInfo
		check string
		text  string
	}{
		"a version that is not served": {&registerv1.PluginInfo{SupportedVersions: []string{"v1.DRAPlugin", "v1beta1.DRAPlugin"}}, checkVersions, "advertises v1beta1.DRAPlugin, but the server"},
		"only an old version":          {&registerv1.PluginInfo{SupportedVersions: []string{"v1alpha4"}}, checkVersions, "advertises no version"},
		"no name":                      {&registerv1.PluginInfo{Name: "GPU driver\x1b[2J", SupportedVersions: []string{"v1.DRAPlugin"}}, checkRegistered, "not a valid driver name"},
		"no absolute path":             {&registerv1.PluginInfo{Endpoint: "../dra.sock"}, checkEndpoint, "no absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			s := &scripted{info: test.info}
			s.info.Type = registerv1.DRAPlugin
			if s.info.Name == "" {
				s.info.Name = gpu
			}
			if s.info.Endpoint == "" {
				s.info.Endpoint = filepath.Join(host.Kubelet, pluginsDir, gpu, "dra.sock")
			}
			serve(t, host, gpu, s)
			f := look(t, host, nil, patient())
			for _, c := range f.Checks {
				if c.Name == test.check && strings.Contains(c.Message, test.text) {
					return
				}
			}
			t.Errorf("no check %s %q among:\n%s", test.check, test.text, list(f.Checks))
		})
	}
}

func TestLookAtTwoSocketsOfOneDriver(t *testing.T) {
	t.Run("an update", func(t *testing.T) {
		host := kubeletDir(t)
		start(t, host, testdriver.Config{Instance: "a"})
		start(t, host, testdriver.Config{Instance: "b"})
		f := look(t, host, cluster(gpu), patient())
		want(t, f.Checks, checkDuplicates, node.Unknown, "right while it is updated")
		wantNo(t, f.Checks, node.Problem)
	})
	t.Run("the same endpoint", func(t *testing.T) {
		host := kubeletDir(t)
		endpoint := serve(t, host, gpu, &scripted{})
		serve(t, host, "copy", &scripted{info: &registerv1.PluginInfo{Type: registerv1.DRAPlugin, Name: gpu, Endpoint: endpoint, SupportedVersions: []string{"v1.DRAPlugin"}}})
		f := look(t, host, nil, patient())
		want(t, f.Checks, checkDuplicates, node.Problem, "registers the same endpoint by 2 sockets")
		want(t, f.Checks, checkOthers, node.Problem, "no registration names it")
	})
}

func TestCompareWithSlices(t *testing.T) {
	host := kubeletDir(t)
	start(t, host, testdriver.Config{})
	elsewhere := cluster()
	shared := cluster(gpu)
	shared.Slices[0].Spec.NodeName, shared.Slices[0].Spec.NodeSelector = nil, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName}}},
	}}}
	other := cluster(gpu)
	other.Slices[0].Spec.NodeName = ptr.To("node-2")
	hidden := cluster()
	hidden.Gaps = []snapshot.Gap{{Resource: snapshot.ResourceSlices, Reason: "may not list slices"}}
	for name, test := range map[string]struct {
		snap  *snapshot.Snapshot
		node  string
		state node.State
		text  string
	}{
		"both sides":      {cluster(gpu), nodeName, node.OK, "has 1 slice for this node"},
		"no slices":       {elsewhere, nodeName, node.Problem, "driver gpu.example.com runs, but there is no slice of it"},
		"other node":      {other, nodeName, node.Problem, "driver gpu.example.com runs, but there is no slice of it"},
		"by selector":     {shared, nodeName, node.OK, "no slice for this node alone, but 1 slice that it can use"},
		"no socket":       {cluster(gpu, "nic.example.com"), nodeName, node.Problem, "driver nic.example.com has 1 slice for this node, but no socket"},
		"no cluster":      {nil, nodeName, node.Unknown, "no cluster and no snapshot"},
		"no permission":   {hidden, nodeName, node.Unknown, "may not list slices"},
		"no such node":    {cluster(gpu), "node-9", node.Unknown, "has no node node-9"},
		"no name of node": {cluster(gpu), "", node.Unknown, "no single node with the boot ID"},
	} {
		t.Run(name, func(t *testing.T) {
			here := *host
			here.Name = test.node
			want(t, look(t, &here, test.snap, patient()).Checks, checkSlices, test.state, test.text)
		})
	}
}

// TestDriverOfPodsIsGone covers pods that use devices of drivers which no socket registers,
// and which have no slice for the node any more.
func TestDriverOfPodsIsGone(t *testing.T) {
	const gone = "nic.example.com"
	host := kubeletDir(t)
	start(t, host, testdriver.Config{})
	using := func(driver string, change func(*corev1.Pod, *resourceapi.ResourceClaim)) *snapshot.Snapshot {
		snap := cluster(gpu)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train-0", UID: "pod-1"}}
		pod.Spec.NodeName = nodeName
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: ptr.To("train")}}
		claim := reservedBy(allocated(driver, nodeName, "dev-0", "dev-1"), "train-0", "pod-1")
		if change != nil {
			change(pod, claim)
		}
		snap.Pods, snap.Claims = []*corev1.Pod{pod}, []*resourceapi.ResourceClaim{claim}
		return snap
	}
	for name, test := range map[string]struct {
		snap *snapshot.Snapshot
		want bool
	}{
		"no socket": {using(gone, nil), true},
		"a socket":  {using(gpu, nil), false},
		"the pod has ended": {using(gone, func(pod *corev1.Pod, _ *resourceapi.ResourceClaim) {
			pod.Status.Phase = corev1.PodSucceeded
		}), false},
		"another node": {using(gone, func(pod *corev1.Pod, _ *resourceapi.ResourceClaim) { pod.Spec.NodeName = "node-2" }), false},
		"not reserved": {using(gone, func(_ *corev1.Pod, claim *resourceapi.ResourceClaim) { claim.Status.ReservedFor = nil }), false},
		"the kubelet does not call it": {using(gone, func(_ *corev1.Pod, claim *resourceapi.ResourceClaim) {
			for i := range claim.Status.Allocation.Devices.Results {
				claim.Status.Allocation.Devices.Results[i].SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
			}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := look(t, host, test.snap, patient())
			if test.want {
				want(t, f.Checks, checkUsers, node.Problem, "1 pod of this node uses devices of driver nic.example.com (ml/train-0), and no socket registers it")
			} else {
				wantNo(t, f.Checks, node.Problem)
			}
		})
	}
}

// TestLookAtDevicePlugins covers them where every kubelet has them, whatever its root
// directory is.
func TestLookAtDevicePlugins(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "dra")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	// The sockets are made below the root of the node.
	everywhere := node.NewHost("/", root, nil)
	server := grpc.NewServer()
	devicepluginv1beta1.RegisterDevicePluginServer(server, &devicePlugin{})
	listener := listenAt(t, everywhere, "var/lib/kubelet/device-plugins/nvidia.sock")
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	listenAt(t, everywhere, "var/lib/kubelet/device-plugins/kubelet.sock")
	listenAt(t, everywhere, "opt/kubelet/device-plugins/other.sock")
	must(t, os.Symlink("/opt/kubelet/device-plugins/other.sock", filepath.Join(root, "var/lib/kubelet/device-plugins/out.sock")))
	for _, kubelet := range []string{"", "/opt/kubelet"} {
		f := look(t, node.NewHost(root, kubelet, nil), cluster(), patient())
		if len(f.DevicePlugins) != 2 || f.DevicePlugins[0].Path != "/var/lib/kubelet/device-plugins/nvidia.sock" || f.DevicePlugins[0].Answer != node.Answers {
			t.Errorf("device plugins are %+v", f.DevicePlugins)
		}
		want(t, f.Checks, checkDevices, node.OK, "a device plugin answers")
		want(t, f.Checks, checkDevices, node.Unknown, "leads out of /var/lib/kubelet/device-plugins")
	}
	f := look(t, node.NewHost(t.TempDir(), "/opt/kubelet", nil), nil, quick())
	want(t, f.Checks, checkDevices, node.Unknown, "which every kubelet has")
}

func TestLookWithoutKubelet(t *testing.T) {
	f := look(t, node.NewHost("/", "/nowhere", nil), nil, quick())
	want(t, f.Checks, checkRegistry, node.Unknown, "no kubelet runs here")
	wantNo(t, f.Checks, node.Problem)
}

func TestLookEndsWithItsContext(t *testing.T) {
	host := kubeletDir(t)
	raw(t, host, registryDir+"/a-reg.sock", func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Look(ctx, host, nil, patient()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestBlind says of no driver that it is not there, since it did not look.
func TestBlind(t *testing.T) {
	host := kubeletDir(t)
	serve(t, host, gpu, &scripted{})
	registry := filepath.Join(host.Kubelet, registryDir)
	must(t, os.RemoveAll(registry))
	must(t, os.WriteFile(registry, nil, 0o600))
	f := look(t, host, cluster(gpu), patient())
	want(t, f.Checks, checkRegistry, node.Problem, "is not a directory")
	want(t, f.Checks, checkSlices, node.Unknown, "whether it registers is not known")
	want(t, f.Checks, checkOthers, node.Unknown, "whether it registers is not known")
	done := do(t, host, order(PrepareOperation, allocated(gpu, nodeName, "gpu-0")), calling())
	want(t, done.Checks, checkFind, node.Unknown, "is not a directory")
	for _, name := range []string{"", gpu} {
		health, err := AskHealth(t.Context(), host, nil, name, patient())
		must(t, err)
		want(t, health.Checks, checkStream, node.Unknown, "is not a directory")
	}
}

func TestLookWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	host := kubeletDir(t)
	serve(t, host, gpu, &scripted{})
	must(t, os.Chmod(filepath.Join(host.Kubelet, registryDir, gpu+"-reg.sock"), 0))
	f := look(t, host, cluster(gpu), patient())
	want(t, f.Checks, checkRegistered, node.Unknown, "no permission")
	want(t, f.Checks, checkOthers, node.Unknown, "whether it registers is not known")
	wantNo(t, f.Checks, node.Problem)
}

// asNobody runs the test once more, as a user without rights.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	program, err := os.ReadFile(os.Args[0])
	must(t, err)
	dir := kubeletDir(t).Kubelet
	must(t, os.Chmod(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "test"), program, 0o755))
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
