// SPDX-License-Identifier: Apache-2.0

// Prints the flags of kube-proxy as JSON. A program of its own, because libraries register flags of every program that they are in.
package main

import (
	"encoding/json"
	goflag "flag"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

type row struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Shorthand  string `json:"shorthand,omitempty"`
	Default    string `json:"default,omitempty"`
	Deprecated string `json:"deprecated,omitempty"`
	NoValue    bool   `json:"noValue,omitempty"`
}

func main() {
	fs := app.NewProxyCommand().Flags()
	fs.AddGoFlagSet(goflag.CommandLine)
	fs.BoolP("help", "h", false, "")
	var rows []row
	fs.VisitAll(func(f *pflag.Flag) {
		rows = append(rows, row{strings.ReplaceAll(f.Name, "_", "-"), f.Value.Type(), f.Shorthand, f.DefValue, f.Deprecated, f.NoOptDefVal != ""})
	})
	json.NewEncoder(os.Stdout).Encode(rows)
}
