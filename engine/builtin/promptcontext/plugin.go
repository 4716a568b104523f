// Package promptcontext is the plugin that adds the environment and the project's
// instructions for agents to the prompt. It reads a few small files and runs no programs.
// The prompt marks their text as content of the workspace.
package promptcontext

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"lashd/engine/plugin"
	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Factory builds the plugin of sessions. It must live as long as the process, because it holds
// files that must stay open. All fields are optional.
type Factory struct {
	// Home is the user's home directory.
	Home string
	// UserFile is the path of the user's own instructions, and More returns further ones, from
	// the most general to the most specific.
	UserFile string
	More     func() []string
	// Readable reports whether a session may read a file of its workspace without a question.
	// Nil: it may.
	Readable func(ctx context.Context, session protocol.SessionID, path string) bool

	kept shelf
}

// ID implements plugin.Factory.
func (*Factory) ID() string { return protocol.InstructionsID }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	readable := func(c context.Context, path string) bool {
		return f.Readable == nil || f.Readable(c, ctx.SessionID, path)
	}
	return &instance{factory: f, looker: &looker{
		cwd: ctx.Cwd, state: ctx.StateDir, home: f.Home, readable: readable, files: reader{state: ctx.StateDir, kept: &f.kept},
	}}, nil
}

// users returns the paths of the user's instructions.
func (f *Factory) users() (paths []string) {
	if f.UserFile != "" {
		paths = append(paths, f.UserFile)
	}
	if f.More != nil {
		paths = append(paths, f.More()...)
	}
	return paths
}

// instance is the plugin of one session. It caches the prompts of the current turn.
type instance struct {
	factory *Factory
	// mu serializes prompts and guards the other fields.
	mu     sync.Mutex
	looker *looker
	// turn is the turn for which prompts were made. Empty: none.
	turn   protocol.TurnID
	cached []plugin.Prompt
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Prompt().Hook(i.prompts)
	r.Turn().Checkpoint(i.checkpoint)
	r.Operations().Query(protocol.OperationInfo{Name: protocol.InstructionsQuery, Description: "Lists the files of instructions that apply to the session."}, i.list)
	return nil
}

// prompts reads the files once per turn, so that the prompt does not change during a turn.
func (i *instance) prompts(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn != "" && i.turn == pc.TurnID {
		return i.cached, nil
	}
	made, err := read(ctx, i, (*looker).look)
	if err != nil {
		made = i.looker.withoutFiles(err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i.turn, i.cached = pc.TurnID, made
	return i.cached, nil
}

// checkpoint adds the files of directories below the workspace, and rules, to the conversation
// once the model has used a file that they are about. It depends only on the conversation and
// the files, so that a restart, a fork or a compaction changes nothing.
func (i *instance) checkpoint(ctx context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	if cc.Kind != protocol.BoundaryAfterWork {
		return nil, nil
	}
	messages := cc.View.Messages()
	paths := touched(messages)
	if len(paths) == 0 {
		return nil, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	has := added(messages)
	fresh, err := read(ctx, i, func(l *looker, ctx context.Context) ([]source, error) { return l.about(ctx, paths, has) })
	if err != nil || len(fresh) == 0 {
		return nil, context.Cause(ctx) // a workspace that cannot be read has no instructions
	}
	return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: addition(fresh)})}, nil
}

// list implements the query that lists the files.
func (i *instance) list(ctx context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
	state, err := call.Host.NeedState()
	if err != nil {
		return nil, err
	}
	view, err := state.View(ctx, call.SessionID)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	has := added(view.Messages())
	all, err := read(ctx, i, func(l *looker, ctx context.Context) ([]source, error) { return l.listAll(ctx, has) })
	if err != nil {
		return nil, err
	}
	r := protocol.InstructionListResult{Data: []protocol.InstructionFile{}, UserFile: i.factory.UserFile}
	for _, s := range all {
		r.Data = append(r.Data, s.InstructionFile)
	}
	return json.Marshal(r)
}

// read calls f, which reads files, with a deadline. i.mu must be held.
func read[T any](ctx context.Context, i *instance, f func(*looker, context.Context) (T, error)) (T, error) {
	l := i.looker
	l.users = i.factory.users()
	out, err := deadline.Do(ctx, readTimeout, errHangs, func(ctx context.Context) (T, error) { return f(l, ctx) })
	if errors.Is(err, errHangs) || ctx.Err() != nil {
		i.looker = l.renewed() // the abandoned call may still use the old one
	}
	return out, err
}

// readTimeout is how long a turn waits for the files, in case the file system hangs.
const readTimeout = 30 * time.Second

// errHangs completes the line "Files: " in the prompt.
var errHangs = errors.New("the workspace could not be read within " + readTimeout.String())

// looker reads the files of a workspace. It belongs to one goroutine at a time.
type looker struct {
	cwd      string
	state    string
	home     string
	users    []string // the user's instructions
	readable func(ctx context.Context, path string) bool
	files    reader
	own      location // caches the resolved path of state
}

// renewed returns a looker for the same workspace without cached state.
func (l *looker) renewed() *looker {
	return &looker{cwd: l.cwd, state: l.state, home: l.home, readable: l.readable, files: reader{state: l.state, kept: l.files.kept}}
}

// withoutFiles returns the prompts for a workspace that cannot be read.
func (l *looker) withoutFiles(why error) []plugin.Prompt {
	text := l.environment(project{}) + "\n- Files: " + why.Error()
	return []plugin.Prompt{{Slot: plugin.SlotEnvironment, Title: "Environment", Content: text}}
}

// look reads the files and returns the prompts. It runs with a deadline and may be
// abandoned.
func (l *looker) look(ctx context.Context) ([]plugin.Prompt, error) {
	user := plugin.Prompt{Slot: plugin.SlotProjectInstructions, Priority: -1, Title: "Instructions of the user", Content: userText(l.user(ctx))}
	if err := pathresolve.Elsewhere(l.cwd); err != nil {
		return append(l.withoutFiles(err), user), nil
	}
	at := l.place()
	return []plugin.Prompt{
		{Slot: plugin.SlotEnvironment, Title: "Environment", Content: l.environment(at)},
		user,
		{Slot: plugin.SlotProjectInstructions, Title: "Project instructions", Content: projectText(l.project(ctx, at))},
	}, nil
}

// about returns the files that are about the given paths and not in the conversation yet.
func (l *looker) about(ctx context.Context, paths []string, has map[string]int64) ([]source, error) {
	if err := pathresolve.Elsewhere(l.cwd); err != nil {
		return nil, err
	}
	return l.nested(ctx, l.place(), paths, has), nil
}

// listAll returns all files, those that are in the conversation last.
func (l *looker) listAll(ctx context.Context, has map[string]int64) ([]source, error) {
	all := l.user(ctx)
	if pathresolve.Elsewhere(l.cwd) != nil {
		return all, nil
	}
	at := l.place()
	for _, s := range l.project(ctx, at) {
		if _, known := has[strconv.Quote(s.Name)]; !known || s.Use == protocol.InstructionAlways {
			all = append(all, s)
		}
	}
	for _, quoted := range slices.Sorted(maps.Keys(has)) {
		if s, ok := l.inConversation(at, quoted); ok {
			s.Shown = has[quoted]
			all = append(all, s)
		}
	}
	return distinctRows(all), nil
}

// distinctRows leaves out the rows of skipped files that the model gets in another way.
func distinctRows(all []source) []source {
	gets := map[string]bool{}
	for _, s := range all {
		gets[s.Path] = gets[s.Path] || s.Use != protocol.InstructionSkipped
	}
	return slices.DeleteFunc(all, func(s source) bool { return s.Use == protocol.InstructionSkipped && gets[s.Path] })
}

// inConversation describes a file that was added to the conversation. It may be gone.
func (l *looker) inConversation(at project, quoted string) (s source, ok bool) {
	name, err := strconv.Unquote(quoted)
	if err != nil || len(at.dirs) == 0 {
		return s, false
	}
	path := filepath.Join(at.dirs[len(at.dirs)-1], filepath.FromSlash(name))
	s.InstructionFile = protocol.InstructionFile{Path: path, Name: name, Origin: protocol.InstructionWorkspace, Use: protocol.InstructionAdded}
	if f, err := l.files.read(filepath.Dir(path), filepath.Base(path)); err == nil {
		s.Bytes = f.is.Size
	}
	return s, true
}

// place returns the directories with instructions for the workspace.
func (l *looker) place() project { return climb(l.cwd, l.own.of(l.state)) }
