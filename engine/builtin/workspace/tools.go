// Package workspace is the plugin with the file tools: read, write, edit, patch, list, glob
// and grep. All of them stay inside the session's workspace and never use lashd's own
// files, even if links, mounts or races try to lead them there.
//
// The tools of a session are safe for concurrent use. Calls that change files run one at a
// time.
package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/engine/tool"
	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// files provides the file tools of one session.
type files struct {
	cwd   string
	state string
	kept  *shelf
	// writing is held by a call that changes files, so that two edits in one batch do not overwrite each other.
	writing chan struct{}

	mu sync.Mutex
	// root is the open workspace. Nil until the first call.
	root *os.Root
	// all has each root so far. Calls may still use older ones, so close closes them.
	all []*os.Root
	// closed rejects calls after close. mu guards root, all and closed.
	closed bool
}

// newFiles returns the file tools of a session. It opens nothing, so that a session can be
// loaded without its workspace.
func newFiles(cwd, state string, kept *shelf) *files {
	return &files{cwd: cwd, state: state, kept: kept, writing: make(chan struct{}, 1)}
}

// operation is one tool and its implementation.
// run gets calls of several goroutines at once.
type operation struct {
	tool tool.Tool
	run  func(*files, context.Context, tool.Invocation) (protocol.ToolOutput, error)
}

// operations are all tools, in the order in which the model sees them.
var operations = sync.OnceValue(func() []operation {
	return []operation{
		bind("read", protocol.ToolKindRead, protocol.ReplaySafe, describeRead, (*files).read),
		varying(bind("write", protocol.ToolKindEdit, protocol.ReplayNever, describeWrite, (*files).write), "content"),
		varying(bind("edit", protocol.ToolKindEdit, protocol.ReplayNever, describeEdit, (*files).edit), "old", "new", "replaceAll"),
		bind("patch", protocol.ToolKindEdit, protocol.ReplayNever, describePatch, (*files).patch),
		bind("list", protocol.ToolKindRead, protocol.ReplaySafe, describeList, (*files).list),
		bind("glob", protocol.ToolKindSearch, protocol.ReplaySafe, describeGlob, (*files).glob),
		bind("grep", protocol.ToolKindSearch, protocol.ReplaySafe, describeGrep, (*files).grep),
	}
})

// request is a call with decoded arguments.
// The view belongs to this call alone; host may be used until the call returns.
type request[A any] struct {
	args A
	host tool.Host
	view *view
}

// bind returns a tool whose schema is inferred from the type of its arguments. Each call
// runs within a deadline and with its own view.
func bind[A any](name string, kind protocol.ToolKind, replay protocol.Replay, describe string,
	run func(*files, context.Context, request[A]) (protocol.ToolOutput, error)) operation {
	changes := kind == protocol.ToolKindEdit
	return operation{
		tool: tool.Tool{
			Manifest: protocol.ToolManifest{Name: name, Description: describe, Input: schema[A](), Kind: kind},
			Contract: protocol.ToolContract{Replay: replay},
		},
		run: func(f *files, ctx context.Context, call tool.Invocation) (protocol.ToolOutput, error) {
			req := request[A]{host: call.Host}
			if err := decode(call.Args, &req.args); err != nil {
				return protocol.ToolOutput{}, refuse("invalid_arguments", "arguments of %s: %v", name, err)
			}
			return inTime(ctx, changes, func(ctx context.Context, gate *deadline.Gate) (protocol.ToolOutput, error) {
				var err error
				if req.view, err = f.view(); err != nil {
					return protocol.ToolOutput{}, fmt.Errorf("open the workspace: %w", err)
				}
				req.view.places, req.view.shown, req.view.gate = call.Places, call.Shown, gate
				return run(f, ctx, req)
			})
		},
	}
}

// varying marks arguments that an approval for a file does not depend on.
// A standing approval for a file then covers calls with any values of these arguments.
func varying(op operation, args ...string) operation {
	op.tool.Contract.Varying = args
	return op
}

// schema infers the schema from the type of the arguments, so that the two agree.
func schema[A any]() json.RawMessage {
	s, err := jsonschema.For[A](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(A), err)) // cannot happen: a type of this package
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(A), err))
	}
	return data
}

// decode decodes arguments strictly: no unknown fields and nothing after the object.
func decode(data json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// withValue returns a successful result with a structured value.
// text is the model's version, value the version for clients and scripts.
func withValue(text string, value any) (protocol.ToolOutput, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	return protocol.ToolOutput{Status: protocol.OutputSuccess, Text: text, Value: data}, nil
}

// Tools implements tool.Provider.
func (f *files) Tools() []tool.Tool {
	var list []tool.Tool
	for _, op := range operations() {
		list = append(list, op.tool)
	}
	return list
}

// Execute implements tool.Provider.
func (f *files) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	for _, op := range operations() {
		if op.tool.Manifest.Name != call.Name {
			continue
		}
		out, err := op.run(f, ctx, call)
		if err != nil {
			out = failed(err)
		}
		return tool.Result{Output: out}, nil
	}
	return tool.Result{}, fmt.Errorf("workspace: no tool %q", call.Name)
}

// view opens the workspace once, and reads the identities of protected files for each call.
func (f *files) view() (*view, error) {
	if err := pathresolve.CheckWorkspace(f.cwd); err != nil {
		return nil, err
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	return newView(root, f.cwd, f.state, f.kept)
}

// open returns the open workspace. It opens it on the first call, and again if another directory has its path now: one that was deleted and
// made again.
func (f *files) open() (*os.Root, error) {
	was, err := f.opened()
	if err != nil || was != nil && f.current(was) {
		return was, err
	}
	root, err := pathresolve.OpenWorkspace(f.cwd) // not under the lock, because it may hang and close must not wait
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		root.Close()
		return nil, os.ErrClosed
	case f.root != was: // another call has opened it
		root.Close()
	default:
		f.root, f.all = root, append(f.all, root)
	}
	return f.root, nil
}

// current reports whether an open directory is still the one at the workspace's path.
func (f *files) current(root *os.Root) bool {
	is, err := root.Stat(".")
	there, err2 := os.Lstat(f.cwd)
	return err == nil && err2 == nil && os.SameFile(is, there)
}

// opened returns the open workspace, or nil if it is not open yet.
func (f *files) opened() (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, os.ErrClosed
	}
	return f.root, nil
}

// close closes the workspace. Later calls fail.
// A call that is in progress may fail. Closing twice is allowed.
func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var all []error
	for _, root := range f.all {
		all = append(all, root.Close())
	}
	return errors.Join(all...)
}

// exclusive runs fn while no other call of this session changes files. It waits until ctx
// ends.
func (f *files) exclusive(ctx context.Context, fn func() error) error {
	select {
	case f.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-f.writing }()
	return fn()
}
