package persistence

import (
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// request is a commit in the writer's queue. The caller owns it until it is sent and again after
// done is closed; in between it belongs to the writer.
type request struct {
	change *change
	size   int // bytes of all bodies
	result Result
	err    error
	done   chan struct{}
}

// change is a commit together with the JSON of its parts. The caller's goroutine encodes them,
// because all sessions share the writer. A part that cannot be encoded, such as a plugin's invalid
// raw JSON, then fails only its own commit. Slices are parallel to those of Commit.
type change struct {
	*Commit
	relation, created, authority, config, total []byte
	first                                       []byte // input of a new session; nil: none
	nodes, inputs, forPlugins, decisions        [][]byte
	cancels, reports                            [][]byte
	triggers                                    triggerBodies
	tasks                                       []taskBodies
	files                                       fileBodies
}

// taskBodies holds the JSON of a task and of its newest events.
type taskBodies struct {
	task   []byte
	events [][]byte
}

// newRequest validates and encodes a commit on the caller's goroutine. It fails with ErrBudget if
// the commit is too large, and with ErrInvalid if it cannot be encoded or names no session. The
// size counts the bodies only, not the columns.
func newRequest(c *Commit) (*request, error) {
	maxNodes, maxBytes := MaxCommitNodes, MaxCommitBytes
	if c.Turned || c.Create != nil && c.Create.Imported {
		maxNodes, maxBytes = MaxTurnNodes, MaxTurnBytes
	}
	if len(c.Nodes) > maxNodes {
		return nil, fmt.Errorf("commit of %d nodes, at most %d: %w", len(c.Nodes), maxNodes, ErrBudget)
	}
	if c.Session == "" && (c.Create != nil || c.Delete || len(c.Nodes)+len(c.Events)+len(c.Turns) > 0) {
		return nil, fmt.Errorf("commit names no session: %w", ErrInvalid)
	}
	e := &encoder{}
	k := e.change(c)
	if e.err != nil {
		return nil, fmt.Errorf("encode commit: %w: %w", ErrInvalid, e.err)
	}
	for _, event := range c.Events {
		e.size += len(event.Body)
	}
	for _, effect := range c.Effects {
		e.size += len(effect.Body)
	}
	for _, b := range c.Blobs {
		e.size += len(b.Body)
	}
	for _, part := range c.Component {
		e.size += len(part.Body)
	}
	for _, f := range c.Facts {
		e.size += len(f.Body)
	}
	if e.size > maxBytes {
		return nil, fmt.Errorf("commit of %d bytes, at most %d: %w", e.size, maxBytes, ErrBudget)
	}
	return &request{change: k, size: e.size, done: make(chan struct{})}, nil
}

// encoder turns the parts of a commit into JSON. It counts the bytes and keeps the first error.
type encoder struct {
	size int
	err  error
}

// change encodes the parts of a commit.
func (e *encoder) change(c *Commit) *change {
	k := &change{Commit: c, nodes: make([][]byte, len(c.Nodes)), inputs: make([][]byte, len(c.Inputs)),
		forPlugins: make([][]byte, len(c.Inputs)), decisions: make([][]byte, len(c.Decisions)), cancels: make([][]byte, len(c.Turns)), reports: make([][]byte, len(c.Turns))}
	if n := c.Create; n != nil {
		k.relation, k.created, k.authority = e.json(n.Relation), e.json(n.Config), e.json(n.Authority)
		if len(n.First) > 0 {
			k.first = e.json(n.First)
		}
	}
	k.triggers, k.files = e.triggers(c.Triggers), e.files(c.Files, c.Tidy)
	if c.Config != nil {
		k.config = e.json(c.Config)
	}
	if c.Total != nil {
		k.total = e.json(c.Total)
	}
	for i, n := range c.Nodes {
		k.nodes[i] = e.json(nodeBody{protocol.NodeBody{Message: n.Message, Plugin: n.Plugin, FrameOpen: n.FrameOpen}, n.Kept})
	}
	for i, in := range c.Inputs {
		k.inputs[i] = e.json(inputBody{in.Input, in.TurnOptions, in.Switches, in.Wake, in.Ceiling, in.Effort, in.Iterations, in.Schema})
		if len(in.PluginInputs) > 0 {
			k.forPlugins[i] = e.json(in.PluginInputs)
		}
	}
	for i, d := range c.Decisions {
		k.decisions[i] = e.json(d)
	}
	for i, t := range c.Turns {
		if t.Cancel != nil {
			k.cancels[i] = e.json(t.Cancel)
		}
		if t.Report != nil {
			k.reports[i] = e.json(t.Report)
		}
	}
	k.tasks = e.tasks(c.Tasks)
	return k
}

// tasks encodes tasks and their new events.
func (e *encoder) tasks(changes []TaskChange) (all []taskBodies) {
	for _, change := range changes {
		change.Task.Change = 0 // the store assigns it
		b := taskBodies{task: e.json(change.Task)}
		for _, event := range change.Events {
			b.events = append(b.events, e.json(event))
		}
		all = append(all, b)
	}
	return all
}

// json encodes v and adds its size. After an error its result is unusable.
func (e *encoder) json(v any) []byte {
	b, err := json.Marshal(v)
	if e.err == nil {
		e.err = err
	}
	e.size += len(b)
	return b
}
