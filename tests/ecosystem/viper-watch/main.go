// SPDX-License-Identifier: Apache-2.0

// viper-watch FILE KEY: prints KEY of FILE, and again after each change that fsnotify tells viper of, until standard input ends.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/viper"
)

func main() {
	v := viper.New()
	v.SetConfigFile(os.Args[1])
	v.SetConfigType("yaml")
	if err := v.ReadInConfig(); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	v.OnConfigChange(func(fsnotify.Event) { fmt.Println(v.Get(os.Args[2])) })
	v.WatchConfig()
	fmt.Println(v.Get(os.Args[2]))
	io.Copy(io.Discard, os.Stdin)
}
