package plugin

import (
	"errors"
	"fmt"
	"reflect"
)

// Registrar collects the contributions of one plugin to a session, grouped by subject. Use it only inside Register:
// later registrations are dropped. Its methods return no errors; the first mistake is kept and fails the build of the
// session. Not safe for concurrent use.
type Registrar struct {
	owner string         // id of the plugin
	into  *contributions // replaced by a discarded value after Register
	err   error          // the first mistake
}

// errNil means that a plugin registered a nil function or value.
var errNil = errors.New("registers a nil contribution")

// in returns the contributions to register into. The zero Registrar has its own, so that a test can register a plugin
// alone.
func (r *Registrar) in() *contributions {
	if r.into == nil {
		r.into = &contributions{}
	}
	return r.into
}

// fail keeps the first mistake.
func (r *Registrar) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// contribution is a registered hook or value with its plugin.
type contribution[T any] struct {
	plugin   string
	priority int // only of transforms and compactors: higher runs first
	do       T
}

// add appends a contribution to a list, in the order of registration.
func add[T any](r *Registrar, list *[]contribution[T], priority int, v T) {
	if missing(v) {
		r.fail(errNil)
		return
	}
	*list = append(*list, contribution[T]{r.owner, priority, v})
}

// set registers a singleton. A second one is an error that names both plugins.
func set[T any](r *Registrar, place **contribution[T], what string, v T) {
	switch {
	case missing(v):
		r.fail(errNil)
	case *place != nil:
		r.fail(fmt.Errorf("registers a %s, but plugin %s already registered one", what, (*place).plugin))
	default:
		*place = &contribution[T]{plugin: r.owner, do: v}
	}
}

// missing reports whether v is nil, or an interface that holds a nil function or pointer.
func missing(v any) bool {
	if v == nil {
		return true
	}
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Func, reflect.Pointer:
		return x.IsNil()
	}
	return false
}
