package workspace

import "lashd/internal/glob"

// compile compiles a glob pattern. The error is a fault for the model.
func compile(pattern string) (glob.Glob, error) {
	g, err := glob.Compile(pattern)
	if err != nil {
		err = refuse("invalid_pattern", "%s", err)
	}
	return g, err
}
