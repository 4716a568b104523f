// Package manifest reads and checks the files of a plugin: plugin.json and the files that plugins of other agents have. The plugin
// loader and `lashd plugin check` call it. It starts no programs and keeps no state. All functions are safe for concurrent use.
package manifest

// What a plugin may be, at most. A file or a directory beyond it is an error, never cut.
const (
	MaxFile      = 256 << 10 // bytes of a manifest, of a file of hooks or of servers
	MaxManifests = 256       // plugins of one directory of plugins
	MaxProblems  = 64        // that are told of one file
)
