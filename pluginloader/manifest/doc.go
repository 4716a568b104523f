// Package manifest reads what a directory says that it contributes: a plugin.json, and the files that plugins of other
// agents have. The loader calls it, and whoever wants to know what a plugin would do. It starts nothing, and keeps nothing:
// all of it may be called from many goroutines at once.
package manifest

// What a plugin may be, at most. A file or a directory beyond it is an error, never cut.
const (
	MaxFile      = 256 << 10 // bytes of a manifest, of a file of hooks or of servers
	MaxManifests = 256       // plugins of one directory of plugins
	MaxProblems  = 64        // that are told of one file
)
