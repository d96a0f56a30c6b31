// SPDX-License-Identifier: Apache-2.0

// Package flags describes the flags of a program.
package flags

import (
	"sort"
	"strings"

	"github.com/spf13/pflag"
)

// A Row is a flag; underscores in its name count as hyphens.
type Row struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Shorthand  string `json:"shorthand,omitempty"`
	Default    string `json:"default,omitempty"`
	Deprecated string `json:"deprecated,omitempty"`
	NoValue    bool   `json:"noValue,omitempty"`
	Config     bool   `json:"config,omitempty"` // it sets a field of the document
}

// Add appends those of @fs that @rows does not have, sorted by name.
func Add(rows []Row, fs *pflag.FlagSet, config bool) []Row {
	known := map[string]bool{}
	for _, row := range rows {
		known[row.Name] = true
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if name := strings.ReplaceAll(f.Name, "_", "-"); !known[name] {
			rows = append(rows, Row{name, f.Value.Type(), f.Shorthand, f.DefValue, f.Deprecated, f.NoOptDefVal != "", config})
		}
	})
	sort.Slice(rows, func(i, j int) bool { return rows[i].Name < rows[j].Name })
	return rows
}
