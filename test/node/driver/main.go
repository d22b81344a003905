// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Driver runs the driver of the tests in a pod, until the pod ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
)

func main() {
	var config testdriver.Config
	flag.StringVar(&config.Name, "driver-name", "", "name of the driver")
	flag.StringVar(&config.Node, "node", "", "name of the node")
	flag.StringVar(&config.Instance, "instance", "", "unique word, if two pods may run on the node")
	flag.StringVar(&config.Kubelet, "kubelet", "", "root directory of the kubelet")
	flag.StringVar(&config.CDI, "cdi", "", "directory of CDI specs")
	flag.IntVar(&config.Devices, "devices", 0, "number of devices")
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	flag.Parse()
	if err := run(config, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(config testdriver.Config, kubeconfig string) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if config.Client, err = kubernetes.NewForConfig(access); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	driver, err := testdriver.Start(context.Background(), config)
	if err != nil {
		return err
	}
	<-end
	driver.Stop()
	return nil
}
