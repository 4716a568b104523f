package keystore

import "io/fs"

// checkPrivate returns nil: Windows has no file modes.
func checkPrivate(string, fs.FileInfo) error { return nil }
