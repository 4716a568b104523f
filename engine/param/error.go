// Package param validates the parameters of requests. Each check depends only on the
// request and on the directories that it names. Methods of the engine call the checks
// before they reach a session. All functions are safe for concurrent use.
package param

import (
	"errors"
	"fmt"
	"strings"
)

// Error is the error of an invalid parameter. Clients get it as invalidParams with the
// pointer.
type Error struct {
	// Pointer is a JSON pointer to the parameter, such as /cwd. Empty: the parameters as a
	// whole.
	Pointer string
	// Reason completes a sentence that begins with the parameter.
	Reason string
	// Code is the code that a model call with the parameter would fail with; empty: none.
	Code string
}

func (e *Error) Error() string { return e.Pointer + ": " + e.Reason }

// Bad returns an Error. The reason continues a sentence that begins with the parameter,
// such as "must not be empty".
func Bad(pointer, format string, args ...any) error {
	return &Error{Pointer: pointer, Reason: fmt.Sprintf(format, args...)}
}

// NotOneOf returns an Error that lists the allowed values, except the empty one.
func NotOneOf[W ~string](pointer string, words []W) error {
	var names []string
	for _, w := range words {
		if w != "" {
			names = append(names, string(w))
		}
	}
	return Bad(pointer, "must be one of %s", strings.Join(names, ", "))
}

// Under moves an Error of a check to the place of the value in other parameters: it
// replaces the prefix was of its pointer. Other errors, and nil, are returned unchanged.
func Under(pointer, was string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Pointer: pointer + strings.TrimPrefix(e.Pointer, was), Reason: e.Reason, Code: e.Code}
	}
	return err
}

// Escape escapes a name for use as one part of a JSON pointer.
func Escape(name string) string { return pointerEscapes.Replace(name) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
