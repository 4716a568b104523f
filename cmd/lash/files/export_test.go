package files

// ListOf returns a list of paths.
func ListOf(paths []string) *List { return newList(paths, false) }
