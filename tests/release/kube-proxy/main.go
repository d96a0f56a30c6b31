// SPDX-License-Identifier: Apache-2.0

// Prints the flags of kube-proxy as JSON. A program of its own, because libraries register flags of every program that they are in.
package main

import (
	"encoding/json"
	goflag "flag"
	"os"

	"k8s.io/kubernetes/cmd/kube-proxy/app"

	"read/flags"
)

func main() {
	fs := app.NewProxyCommand().Flags()
	fs.AddGoFlagSet(goflag.CommandLine)
	fs.BoolP("help", "h", false, "")
	json.NewEncoder(os.Stdout).Encode(flags.Add(nil, fs, false))
}
