// Package plugins holds what authors of plugins begin with: an SDK for each language, as a file or a package to copy. What it
// holds never changes.
package plugins

import "embed"

// SDK are the SDKs, each in a directory of its language.
//
//go:embed sdk/python/lashd_plugin.py sdk/go/lashdplugin/*.go sdk/typescript/lashd-plugin.mts
var SDK embed.FS
