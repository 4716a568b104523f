package plugin

import (
	"errors"
	"fmt"
	"slices"

	"lashd/engine/tool"
)

// Registrar collects what one plugin contributes to a session. It is of use only inside Register; the session takes
// over all of it or nothing.
type Registrar struct {
	owner   string
	sources []tool.Source
	prompts []Prompt
	driver  Driver
	project ResultProjector
	err     error // the first mistake of the plugin
}

var errNothing = errors.New("registers a contribution that is nil")

// Tools contributes a source of tools.
func (r *Registrar) Tools(p tool.Provider) {
	if p == nil {
		r.fail(errNothing)
		return
	}
	r.sources = append(r.sources, tool.Source{ID: r.owner, Provider: p})
}

// Prompt contributes a text for the system prompt.
func (r *Registrar) Prompt(p Prompt) {
	if !slices.Contains(slots, p.Slot) {
		r.fail(fmt.Errorf("registers a prompt for the unknown slot %q", p.Slot))
		return
	}
	p.Tools = slices.Clone(p.Tools)
	r.prompts = append(r.prompts, p)
}

// Driver contributes the driver. A session has exactly one: a second is an error of the build.
func (r *Registrar) Driver(d Driver) {
	switch {
	case d == nil:
		r.fail(errNothing)
	case r.driver != nil:
		r.fail(errDriverTwice)
	default:
		r.driver = d
	}
}

// ResultProjector contributes the one function that decides what of a tool's output enters the conversation.
func (r *Registrar) ResultProjector(p ResultProjector) {
	switch {
	case p == nil:
		r.fail(errNothing)
	case r.project != nil:
		r.fail(errProjectTwice)
	default:
		r.project = p
	}
}

func (r *Registrar) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
