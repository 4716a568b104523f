package plugin

import (
	"fmt"

	"lashd/engine/tool"
)

// Registrar collects what the plugins of a session contribute. It knows which plugin is registering.
type Registrar struct {
	owner   string
	sources []tool.Source
	prompts []Prompt
	driver  Driver
	project ResultProjector
	err     error
}

// Tools contributes a source of tools.
func (r *Registrar) Tools(p tool.Provider) {
	r.sources = append(r.sources, tool.Source{ID: r.owner, Provider: p})
}

// Prompt contributes a text for the system prompt.
func (r *Registrar) Prompt(p Prompt) { r.prompts = append(r.prompts, p) }

// Driver contributes the driver. A session has exactly one: a second is an error of the build.
func (r *Registrar) Driver(d Driver) {
	if r.driver != nil {
		r.err = fmt.Errorf("plugin %s registers a driver, but the session has one already", r.owner)
		return
	}
	r.driver = d
}

// ResultProjector contributes the one function that decides what of a tool's output enters the conversation.
func (r *Registrar) ResultProjector(p ResultProjector) {
	if r.project != nil {
		r.err = fmt.Errorf("plugin %s registers a result projector, but the session has one already", r.owner)
		return
	}
	r.project = p
}
