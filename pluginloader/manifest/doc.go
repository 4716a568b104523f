// Package manifest reads and checks the files of a plugin: plugin.json and the files that plugins of other agents have. The plugin
// loader and `lash plugin check` call it. It starts no programs and keeps no state. All functions are safe for concurrent use.
package manifest

// Limits. A larger file or directory is an error and is never cut.
const (
	MaxFile      = 256 << 10 // bytes of a manifest or of a file of hooks or servers
	MaxManifests = 256       // plugins in one directory of plugins
	MaxProblems  = 64        // reported problems of one file
)
