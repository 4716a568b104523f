package plugin

import (
	"context"
	"fmt"
	"regexp"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// CodeDescription says how a model writes code cells for an executor.
type CodeDescription struct {
	Language string `json:"language"` // of the cells, and the name of their tags: lower case letters and digits
	Guide    string `json:"guide"`    // for the system prompt: the language and the functions that the tools are in it
}

// CodeDescriber is a CodeExecutor that models can use. Drivers that run code need one.
type CodeDescriber interface {
	// Describe returns the description for a list of tools. It is a pure function and is called once per catalog.
	Describe(context.Context, []protocol.ToolManifest) (CodeDescription, error)
}

// GlobalsLister is a CodeExecutor whose global variables the model is reminded of.
type GlobalsLister interface {
	// Globals returns the variables that the cells have set, ordered by name. It is called while no cell runs.
	Globals(context.Context) ([]protocol.CodeGlobal, error)
}

// codeLanguage is the form of a language, which is also the name of a tag.
var codeLanguage = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

// WritesCode reports whether the session's driver has the model write code into its replies.
func (s *Session) WritesCode() bool {
	_, ok := s.driver.do.(turn.TextSplitter)
	return ok
}

// describeCode asks the executor for the description of code cells. It returns nil without an executor for models, or if
// the driver does not use it.
func (s *Session) describeCode(ctx context.Context, catalog *tool.Catalog) (*CodeDescription, error) {
	if s.executor == nil || !s.WritesCode() {
		return nil, nil
	}
	x, ok := s.executor.do.(CodeDescriber)
	if !ok {
		return nil, nil
	}
	return invoke(ctx, s.roster, HookCodeDescribe, s.executor.plugin, func() (*CodeDescription, error) {
		about, err := x.Describe(ctx, own(catalog.CellManifests()))
		if err == nil && !codeLanguage.MatchString(about.Language) {
			err = fmt.Errorf("the language %q cannot be the name of a tag", about.Language)
		}
		return &about, err
	})
}

// Globals returns the global variables of the code executor; none if it does not list them.
func (e *execution) Globals(ctx context.Context) ([]protocol.CodeGlobal, error) {
	if e.executor == nil {
		return nil, nil
	}
	x, ok := e.executor.do.(GlobalsLister)
	if !ok {
		return nil, nil
	}
	if err := e.awaitStored(ctx); err != nil {
		return nil, err
	}
	return invoke(ctx, e.plugins, HookCodeGlobals, e.executor.plugin, func() ([]protocol.CodeGlobal, error) {
		if e.running.Load() {
			return nil, errExecuting
		}
		return x.Globals(ctx)
	})
}

// Splitter returns the driver's splitter for the reply to a model call whose cells are in the language; nil if the reply
// has no cells. The driver has shortTimeout for each delta.
func (s *Session) Splitter(language string) turn.Splitter {
	d, ok := s.driver.do.(turn.TextSplitter)
	if !ok || language == "" {
		return nil
	}
	b := bounded{s, s.driver.do}
	return boundedSplitter{b, callDriver(b, func() turn.Splitter { return d.Splitter(language) })}
}

// boundedSplitter is a turn.Splitter whose calls have a time limit, see bounded.
type boundedSplitter struct {
	bounded
	splitter turn.Splitter
}

// Write implements turn.Splitter.
func (s boundedSplitter) Write(delta string) []turn.Piece {
	return callDriver(s.bounded, func() []turn.Piece { return s.splitter.Write(delta) })
}

// Break implements turn.Splitter.
func (s boundedSplitter) Break() []turn.Piece { return callDriver(s.bounded, s.splitter.Break) }

// Done implements turn.Splitter.
func (s boundedSplitter) Done() bool { return callDriver(s.bounded, s.splitter.Done) }
