package config

import "lashd/internal/strictjson"

// DidYouMean returns "; did you mean NAME?" with the name closest to word, or ""
// if none is close.
func DidYouMean(word string, names []string) string {
	if near := strictjson.Nearest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
