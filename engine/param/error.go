// Package param decides what the parameters of a request may say. Each check looks at the request alone, and at nothing that changes but
// the directories that it names. Methods of the engine call them before they ask a session; all may be called at once.
package param

import (
	"errors"
	"fmt"
	"strings"
)

// Error points at a parameter whose value makes no sense.
type Error struct {
	Pointer string // JSON pointer, such as /cwd
	Reason  string
}

func (e *Error) Error() string { return e.Pointer + ": " + e.Reason }

// Bad is the error of a parameter that has a wrong value: the reason goes on after its pointer, as in "must not be empty".
func Bad(pointer, format string, args ...any) error {
	return &Error{Pointer: pointer, Reason: fmt.Sprintf(format, args...)}
}

// NotOneOf is the error of a parameter that must be one of some words. It lists all but the empty one.
func NotOneOf[W ~string](pointer string, words []W) error {
	var names []string
	for _, w := range words {
		if w != "" {
			names = append(names, string(w))
		}
	}
	return Bad(pointer, "must be one of %s", strings.Join(names, ", "))
}

// Under has an error of a check point at where what was checked stands in other parameters: it replaces the prefix was by pointer.
// Other errors stay as they are.
func Under(pointer, was string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Pointer: pointer + strings.TrimPrefix(e.Pointer, was), Reason: e.Reason}
	}
	return err
}

// Escape writes a name as one part of a JSON pointer.
func Escape(name string) string { return pointerEscapes.Replace(name) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
