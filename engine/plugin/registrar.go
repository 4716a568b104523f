package plugin

import (
	"errors"
	"fmt"
	"reflect"
)

// Registrar collects what one plugin contributes to a session, by subject. It is of use only inside Register: what is
// registered later goes nowhere. Its first mistake fails the build of the session.
type Registrar struct {
	owner string
	into  *contributions
	err   error
}

var errNothing = errors.New("registers a contribution that is nil")

// in is where contributions go. The zero Registrar takes them too, so that a plugin can be tried alone.
func (r *Registrar) in() *contributions {
	if r.into == nil {
		r.into = &contributions{}
	}
	return r.into
}

func (r *Registrar) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// contribution is something that a plugin registered.
type contribution[T any] struct {
	plugin   string
	priority int
	do       T
}

// add contributes to a list, in the order of registration.
func add[T any](r *Registrar, list *[]contribution[T], priority int, v T) {
	if missing(v) {
		r.fail(errNothing)
		return
	}
	*list = append(*list, contribution[T]{r.owner, priority, v})
}

// set contributes a singleton: a second one is an error that names both plugins.
func set[T any](r *Registrar, place **contribution[T], what string, v T) {
	switch {
	case missing(v):
		r.fail(errNothing)
	case *place != nil:
		r.fail(fmt.Errorf("registers a %s, but the plugin %s has registered one already", what, (*place).plugin))
	default:
		*place = &contribution[T]{plugin: r.owner, do: v}
	}
}

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
