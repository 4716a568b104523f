package workspace

import "lashd/internal/glob"

// compile refuses a pattern that cannot be understood.
func compile(pattern string) (glob.Glob, error) {
	g, err := glob.Compile(pattern)
	if err != nil {
		err = refuse("invalid_pattern", "%s", err)
	}
	return g, err
}
