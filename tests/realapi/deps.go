// SPDX-License-Identifier: Apache-2.0

// Package realapi only names the program that the script apiserver builds: the real API server.
package realapi

import _ "k8s.io/kubernetes/cmd/kube-apiserver/app"
