// SPDX-License-Identifier: Apache-2.0

// Reads what a release of Kubernetes says of itself, and prints it as one JSON object: see docs/hacking.md, "A release of Kubernetes".
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubeproxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/cmd/kubelet/app" // its gates of logging
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletdefaults "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	proxydefaults "k8s.io/kubernetes/pkg/proxy/apis/config/v1alpha1"

	"read/flags"
)

// A field as its Go type and tags have it. Default is what the defaulter makes of an empty document; some depend on other fields.
type fieldRow struct {
	Path      string `json:"path"` // as in core/schema/tables: `[]` = each item, `{}` = each value
	Type      string `json:"type"`
	OmitEmpty bool   `json:"omitempty,omitempty"`
	Strategy  string `json:"patchStrategy,omitempty"`
	MergeKey  string `json:"patchMergeKey,omitempty"`
	Default   any    `json:"default,omitempty"`
}

var quantity, duration, moment = reflect.TypeOf(resource.Quantity{}), reflect.TypeOf(metav1.Duration{}), reflect.TypeOf(metav1.Time{})

// A leaf is what the product has a type for; all else is a struct of fields.
func isLeaf(t reflect.Type) bool {
	return t.Kind() != reflect.Struct || t == quantity || t == duration || t == moment || t.NumField() == 0
}

func fields(t reflect.Type, path string, rows *[]fieldRow) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if t.Kind() == reflect.Slice {
			path += "[]"
		} else if t.Kind() == reflect.Map {
			path += "{}"
		}
		t = t.Elem()
	}
	if isLeaf(t) {
		return
	}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			fields(f.Type, path, rows)
			continue
		}
		if name == "-" || name == "" {
			continue
		}
		p := name
		if path != "" {
			p = path + "." + name
		}
		*rows = append(*rows, fieldRow{Path: p, Type: f.Type.String(), OmitEmpty: strings.Contains(opts, "omitempty"),
			Strategy: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey")})
		fields(f.Type, p, rows)
	}
}

// withDefaults fills in what the document @object, an empty one after the defaulter, has at each path.
func withDefaults(object any, rows []fieldRow) []fieldRow {
	text, err := json.Marshal(object)
	must(err)
	var all map[string]any
	must(json.Unmarshal(text, &all))
	for i := range rows {
		var value any = all
		for _, part := range strings.Split(rows[i].Path, ".") {
			m, ok := value.(map[string]any)
			if value = nil; ok {
				value = m[part]
			}
		}
		if _, isMap := value.(map[string]any); !isMap || rows[i].Type[0] == 'm' {
			rows[i].Default = value
		}
	}
	return rows
}

type typeField struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// The types that have a decoder of their own.
var decoded = map[reflect.Type]string{quantity: "quantity", duration: "duration", moment: "time",
	reflect.TypeOf(intstr.IntOrString{}): "intstr", reflect.TypeOf(metav1.FieldsV1{}): "any"}

// typeName returns how the table of Pods writes @t, and puts the fields of the structs in it into @all.
func typeName(t reflect.Type, all map[string][]typeField) string {
	if word := decoded[t]; word != "" {
		return word
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem(), all)
	case reflect.Slice:
		return "[]" + typeName(t.Elem(), all)
	case reflect.Map:
		return "map[string]" + typeName(t.Elem(), all)
	case reflect.Struct:
		if _, ok := all[t.Name()]; !ok {
			all[t.Name()] = typeFields(t, all)
		}
		return t.Name()
	}
	return t.Kind().String()
}

func typeFields(t reflect.Type, all map[string][]typeField) (rows []typeField) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			rows = append(rows, typeFields(f.Type, all)...)
		} else if name != "-" && name != "" {
			rows = append(rows, typeField{name, typeName(f.Type, all)})
		}
	}
	return rows
}

func podTypes() map[string][]typeField {
	all := map[string][]typeField{}
	typeName(reflect.TypeOf(corev1.Pod{}), all)
	return all
}

type stateRow struct {
	Since   string `json:"since"` // release
	Default bool   `json:"default"`
	Lock    bool   `json:"lock,omitempty"`
	Stage   string `json:"stage"`
}

type gateRow struct {
	Name    string     `json:"name"`
	Now     stateRow   `json:"now"`
	History []stateRow `json:"history"`
	Needs   []string   `json:"needs,omitempty"`
}

func stage(s featuregate.FeatureSpec) string {
	if s.PreRelease == featuregate.GA {
		return "GA"
	}
	return string(s.PreRelease)
}

func gates() []gateRow {
	var rows []gateRow
	gate := utilfeature.DefaultMutableFeatureGate
	needs := map[featuregate.Feature][]featuregate.Feature{}
	if g, ok := gate.(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	}); ok {
		needs = g.Dependencies()
	}
	versioned := gate.GetAllVersioned()
	for name, now := range gate.GetAll() {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		row := gateRow{Name: string(name), Now: stateRow{"", now.Default, now.LockToDefault, stage(now)}}
		for _, s := range versioned[name] {
			row.History = append(row.History, stateRow{s.Version.String(), s.Default, s.LockToDefault, stage(s)})
		}
		for _, other := range needs[name] {
			row.Needs = append(row.Needs, string(other))
		}
		sort.Strings(row.Needs)
		rows = append(rows, row)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Name < rows[j].Name })
	return rows
}

func kubeletFlags() []flags.Row {
	kc, err := options.NewKubeletConfiguration()
	must(err)
	config, plain := pflag.NewFlagSet("config", pflag.ContinueOnError), pflag.NewFlagSet("plain", pflag.ContinueOnError)
	options.AddKubeletConfigFlags(config, kc)
	options.NewKubeletFlags().AddFlags(plain)
	options.AddGlobalFlags(plain)
	plain.BoolP("help", "h", false, "")
	return flags.Add(flags.Add(nil, config, true), plain, false)
}

var (
	skipped = regexp.MustCompile(`^(fake_|zz_generated)|_(test|windows|others?|unsupported)\.go$`)
	judges  = regexp.MustCompile(`^(New|[Vv]alidate|[Pp]arse|[Cc]heck)`) // of a manager: the rest is about pods
)

// hashes names every function of the packages in @dirs that judge a configuration, with a digest of its text: what changed has to be read.
func hashes(top string, dirs []string) map[string]string {
	all := map[string]string{}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
		must(err)
		for _, name := range names {
			if skipped.MatchString(filepath.Base(name)) {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution) // comments do not count
			must(err)
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && (!strings.Contains(dir, "/cm/") || judges.MatchString(f.Name.Name)) {
					var text strings.Builder
					must(printer.Fprint(&text, set, f))
					sum := sha256.Sum256([]byte(text.String()))
					all[dir+"/"+filepath.Base(name)+" "+f.Name.Name] = hex.EncodeToString(sum[:8])
				}
			}
		}
	}
	return all
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: read RELEASE DIRECTORY-OF-K8S.IO/KUBERNETES KUBE-PROXY-FLAGS (tests/release/read calls it)")
		os.Exit(64)
	}
	kubeproxyFlags, err := exec.Command(os.Args[3]).Output()
	must(err)
	kubelet, proxy := &kubeletv1beta1.KubeletConfiguration{}, &kubeproxyv1alpha1.KubeProxyConfiguration{}
	kubeletdefaults.SetDefaults_KubeletConfiguration(kubelet)
	proxydefaults.SetDefaults_KubeProxyConfiguration(proxy)
	var kubeletFields, proxyFields []fieldRow
	fields(reflect.TypeOf(*kubelet), "", &kubeletFields)
	fields(reflect.TypeOf(*proxy), "", &proxyFields)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	must(out.Encode(map[string]any{
		"release":        os.Args[1],
		"kubelet":        withDefaults(kubelet, kubeletFields),
		"kubeproxy":      withDefaults(proxy, proxyFields),
		"pod":            podTypes(),
		"gates":          gates(),
		"kubeletFlags":   kubeletFlags(),
		"kubeproxyFlags": json.RawMessage(kubeproxyFlags),
		"functions": hashes(os.Args[2], []string{
			"cmd/kubelet/app", "cmd/kubelet/app/options", "cmd/kube-proxy/app",
			"pkg/kubelet/apis/config/v1beta1", "pkg/kubelet/apis/config/validation", "pkg/kubelet/kubeletconfig/configfiles",
			"pkg/proxy/apis/config/v1alpha1", "pkg/proxy/apis/config/validation",
			"pkg/kubelet/config", "pkg/apis/core/validation", "pkg/apis/core/v1", "pkg/api/pod", // of Pods
			"pkg/kubelet/cm/cpumanager", "pkg/kubelet/cm/memorymanager", "pkg/kubelet/cm/topologymanager", "pkg/kubelet/eviction", "pkg/kubelet/sysctl",
		}),
	}))
}
