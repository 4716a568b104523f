// Package starlark runs code cells that a model wrote in Starlark. An [Interpreter] keeps the global variables of one
// session, runs one cell at a time, and encodes each global on its own, so that the owner can store what a cell changed.
//
// A cell reaches the world only through its [Host]: tools, the time, randomness and the history of the session. Without
// calls a cell is deterministic, so that it can run again from its start after a crash.
//
// The package bounds what a cell can use: steps, active time, memory, printed text and the size of values. It cannot
// interrupt a function of the library that runs for long, and it samples the memory. A caller that must be safe from both runs the
// interpreter in a process of its own and ends the process when [Config.Stuck] is called; see package worker.
//
// An Interpreter is not safe for concurrent use.
package starlark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"lashd/rpc/protocol"
)

// Language is the name of the language, and of the tags around a cell.
const Language = "starlark"

// maxSource is the largest source of a cell, in bytes. The parser limits nesting; this limits its memory.
const maxSource = 256 << 10

// options is the dialect of cells: closer to Python than to the configuration language.
var options = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// Call is one call of a tool that a cell makes.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Host serves the effects of a cell. The calls run on the goroutine of Execute, and the clock of the cell stands still
// until they return. An error ends the cell; a tool that fails is an output.
type Host interface {
	// Call runs tool calls as one batch and returns their outputs in the same order.
	Call(ctx context.Context, calls []Call) ([]protocol.ToolOutput, error)
	// Now returns the time.
	Now(ctx context.Context) (time.Time, error)
	// Random returns 32 random bytes.
	Random(ctx context.Context) ([]byte, error)
	// History returns the conversation as JSON.
	History(ctx context.Context) (json.RawMessage, error)
}

// Cell is a piece of code to run.
type Cell struct {
	ID           string // unique in the session; part of the keys of new frames
	Source       string
	AcceptFinish bool            // finish and submit_error end the turn
	Schema       json.RawMessage // JSON Schema of the value of finish; nil: any value
}

// Reply is the result of a cell. The error is for the model and says what to do; it is empty if the cell ran to its end.
type Reply struct {
	Printed  string                   `json:"printed,omitempty"`
	Value    json.RawMessage          `json:"value,omitempty"` // of the last expression; absent if it is None
	Error    string                   `json:"error,omitempty"`
	Position *protocol.CodePosition   `json:"position,omitempty"` // of the error, in the source of the cell
	Control  *protocol.ToolControl    `json:"control,omitempty"`
	Changed  []string                 `json:"changed,omitempty"` // globals that the cell changed, sorted
	Unsaved  []protocol.UnsavedGlobal `json:"unsaved,omitempty"` // globals that cannot be stored, sorted
}

// Config sets the limits of an Interpreter.
type Config struct {
	Limits Limits
	// Stuck is called once, on another goroutine, when a cell has exceeded its time or memory and does not stop. The
	// caller should end the process. Nil: nothing happens.
	Stuck func(reason string)
}

// Interpreter runs the cells of one session.
type Interpreter struct {
	config   Config
	space    *namespace
	tools    *toolset
	sources  map[string]*source // of cells that define functions, by file name
	cells    int                // number of the newest cell
	serial   int                // makes the file names of cells and restored functions unique
	pending  map[string]bool    // globals that changed since the last Snapshot
	run      *run               // the running cell; nil: none
	builtins starlark.StringDict
}

// New returns an interpreter without tools and globals.
func New(c Config) *Interpreter {
	in := &Interpreter{config: c, sources: map[string]*source{}, pending: map[string]bool{}}
	in.config.Limits = c.Limits.OrDefault()
	in.builtins = in.universe()
	in.space = newNamespace(in)
	in.Bind(nil)
	return in
}

// run is one running cell. It belongs to the goroutine of Execute; only its meter is shared with the watchdog.
type run struct {
	ctx    context.Context
	host   Host
	cell   *Cell
	file   string // name of the cell's file
	meter  *meter
	thread *starlark.Thread

	printed strings.Builder
	value   starlark.Value // of the last expression
	control *protocol.ToolControl
	history starlark.Value // nil: not asked for yet
	random  *generator     // nil: not asked for yet
}

// Execute runs a cell. It returns soon after ctx is done. A cell that exceeds a limit or is cancelled leaves the globals as they
// were before it; after any other error, assignments made before the error stay.
func (in *Interpreter) Execute(ctx context.Context, cell *Cell, host Host) Reply {
	in.cells++
	in.serial++
	r := &run{ctx: ctx, host: host, cell: cell, file: fmt.Sprintf("cell %d#%d", in.cells, in.serial)}
	r.meter = newMeter(in.config, r)
	in.run = r
	defer func() { in.run = nil }()
	in.space.begin()
	err := in.execute(r)
	if err != nil && (r.meter.exceeded() != "" || ctx.Err() != nil) {
		in.space.rollback()
		delete(in.sources, r.file)
	}
	reply := Reply{Printed: strings.ToValidUTF8(r.printed.String(), "\uFFFD"), Control: r.control}
	if err != nil {
		in.explain(r, err, &reply)
	} else if r.value != nil && r.value != starlark.None {
		reply.Value = in.shown(r.value)
	}
	reply.Changed, reply.Unsaved = in.space.capture()
	for _, name := range reply.Changed {
		in.pending[name] = true
	}
	return reply
}

// execute compiles and runs the cell. A panic of the library becomes an error of the cell.
func (in *Interpreter) execute(r *run) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error of the interpreter: %v\n%s", v, debug.Stack())
		}
	}()
	program, err := in.compile(r.file, r.cell.Source)
	if err != nil {
		return err
	}
	r.thread = &starlark.Thread{Name: r.file}
	stop := r.meter.start(r.ctx, r.thread)
	defer stop()
	_, err = program.Init(r.thread, in.space.predeclared)
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// compile parses and rewrites a cell. Errors have positions in the source.
func (in *Interpreter) compile(name, text string) (*starlark.Program, error) {
	if len(text) > maxSource {
		return nil, fmt.Errorf("the code has %d bytes, at most %d are allowed; put data into files and read them with tools", len(text), maxSource)
	}
	file, err := options.Parse(name, text, 0)
	if err != nil {
		return nil, err
	}
	w := &rewriter{known: in.space.known, suggest: in.space.suggest}
	if err := w.file(file); err != nil {
		return nil, err
	}
	if len(w.functions) > 0 {
		in.sources[name] = newSource(text, w.functions)
	}
	return starlark.FileProgram(file, in.space.predeclared.Has)
}

// shown returns a value as JSON for the model and for people. A value without JSON form is shown as Starlark writes it.
func (in *Interpreter) shown(v starlark.Value) json.RawMessage {
	if data, err := toJSON(v, maxShown); err == nil {
		return data
	}
	text, err := written(v, maxShown)
	if err != nil {
		text = fmt.Sprintf("a %s that is too large to show: %v", v.Type(), err)
	}
	data, _ := json.Marshal(text) // strings always encode
	return data
}

// maxShown is the size up to which the value of a cell is part of its reply.
const maxShown = 256 << 10
