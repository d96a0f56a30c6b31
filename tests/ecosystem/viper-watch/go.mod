module viper-watch

go 1.24

require (
	github.com/fsnotify/fsnotify v1.9.0
	github.com/spf13/viper v1.21.0
)
