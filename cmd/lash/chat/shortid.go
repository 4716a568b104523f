package chat

import (
	"fmt"
	"strings"
)

// wholeLength is the length of an id that lashd creates. Clients may choose shorter ones.
const wholeLength = len("ses_") + 32

// shortLength is the length of a short id: the type and the time in milliseconds.
const shortLength = len("ses_") + 12

// shortID returns the beginning of an id, which is enough to name it.
func shortID(id string) string { return id[:min(len(id), shortLength)] }

// theOne returns the id that begins with a text. It fails if there is none, or several.
func theOne[ID ~string](text, what string, ids []ID) (ID, error) {
	var found []ID
	for _, id := range ids {
		if string(id) == text {
			return id, nil
		}
		if strings.HasPrefix(string(id), text) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no %s has an id that begins with %q", what, text)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s have an id that begins with %q, such as %s; type more of it", counted(len(found), what), text, found[0])
}
