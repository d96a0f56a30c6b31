// SPDX-License-Identifier: Apache-2.0

// file-source DIRECTORY: what a kubelet does with the static pods in it, by its own code, which lists them every second here: a line of JSON for each
// update that its loop gets, with the pods as it would run them.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

var operations = map[kubetypes.PodOperation]string{kubetypes.ADD: "add", kubetypes.DELETE: "delete",
	kubetypes.REMOVE: "remove", kubetypes.UPDATE: "update", kubetypes.RECONCILE: "reconcile"}

type latency struct{}

func (latency) ObservedPodOnWatch(klog.Logger, *v1.Pod, time.Time) {}

func main() {
	ctx := context.Background()
	source := config.NewPodConfig(&record.FakeRecorder{}, latency{})
	config.NewSourceFile(klog.FromContext(ctx), os.Args[1], types.NodeName("n1"), time.Second, source.Channel(ctx, kubetypes.FileSource))
	out := json.NewEncoder(os.Stdout)
	for update := range source.Updates() {
		pods := map[string]*v1.Pod{}
		for _, pod := range update.Pods {
			pods[pod.Name] = pod
		}
		out.Encode(map[string]any{"op": operations[update.Op], "pods": pods})
	}
}
