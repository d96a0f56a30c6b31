// SPDX-License-Identifier: Apache-2.0

// oracle answers what a kubelet makes of the manifest of a static pod, one JSON request a line:
// {"op":"pod","text":...} -> {"ok":..., "stage":"decode|name|validate|reference", "error":...}. Built by hand (build), as tests/release is.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/capabilities"
	_ "k8s.io/kubernetes/pkg/kubelet/config"
)

type defaultFunc func(logger klog.Logger, pod *api.Pod) error

// The functions that the kubelet itself runs; they are not exported, so they are linked by name.

//go:linkname tryDecodeSinglePod k8s.io/kubernetes/pkg/kubelet/config.tryDecodeSinglePod
func tryDecodeSinglePod(logger klog.Logger, data []byte, defaultFn defaultFunc) (parsed bool, pod *v1.Pod, err error)

//go:linkname applyDefaults k8s.io/kubernetes/pkg/kubelet/config.applyDefaults
func applyDefaults(logger klog.Logger, pod *api.Pod, source string, isFile bool, nodeName types.NodeName) error

type request struct {
	ID   string `json:"id,omitempty"`
	Op   string `json:"op"`
	Text string `json:"text"`
}

type reply struct {
	ID    string `json:"id,omitempty"`
	OK    bool   `json:"ok"`
	Stage string `json:"stage,omitempty"` // where it failed: decode, name, validate, reference
	Error string `json:"error,omitempty"`
}

func stage(parsed bool, text string) string {
	switch {
	case !parsed:
		return "decode"
	case strings.HasSuffix(text, "name is needed for the pod"):
		return "name"
	case strings.HasPrefix(text, "invalid pod:"):
		return "validate"
	}
	return "reference"
}

func opPod(r request) (out reply) {
	defer func() {
		if p := recover(); p != nil {
			out = reply{Stage: "panic", Error: fmt.Sprintf("panic: %v", p)}
		}
	}()
	parsed, _, err := tryDecodeSinglePod(klog.Background(), []byte(r.Text), func(logger klog.Logger, pod *api.Pod) error {
		return applyDefaults(logger, pod, "/manifests/pod.yaml", true, "node")
	})
	if err != nil {
		return reply{Stage: stage(parsed, err.Error()), Error: err.Error()}
	}
	return reply{OK: true}
}

func main() {
	klog.LogToStderr(false)
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as cmd/kubelet/app does
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			var r request
			a := reply{Stage: "request", Error: "want op pod"}
			if json.Unmarshal(line, &r) == nil && r.Op == "pod" {
				a = opPod(r)
			}
			a.ID = r.ID
			enc.Encode(a)
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}
