package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/turn"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxSwitches is how often work may go on in another frame before somebody has to say something.
const maxSwitches = 32

// opensFrame reports whether a switch asks for a frame other than the one that its turn began in.
func opensFrame(ctx context.Context, e *Engine, from protocol.FrameID, to *protocol.FrameSwitch) bool {
	if !to.Meant() {
		return false
	}
	key, err := e.frameKey(ctx, from)
	return err != nil || key != to.Key // who cannot know it here fails over it at the end
}

func (e *Engine) frameKey(ctx context.Context, id protocol.FrameID) (string, error) {
	node, err := e.node(ctx, protocol.NodeID(id))
	if err != nil || node.FrameOpen == nil {
		return "", err
	}
	return node.FrameOpen.Key, nil
}

// dropNoopSwitch takes away a wish for another frame that asks for nothing.
func dropNoopSwitch(ctx context.Context, e *Engine, from protocol.FrameID, c *protocol.ToolControl) *protocol.ToolControl {
	if c != nil && c.Kind == protocol.ControlSwitchFrame && !opensFrame(ctx, e, from, c.Frame) {
		return nil
	}
	return c
}

// switchFrame asks the protocol before a model call, and reports whether the turn ended with that.
func (r *run) switchFrame(ctx context.Context) (ended bool, err error) {
	p := r.hooks.plugins.Protocol()
	if !p.Switches() {
		return false, nil
	}
	to, err := p.BeforeModel(ctx, &plugin.BeforeModel{TurnID: r.id, View: r.seams.view(r.journal.messages()), Host: r.hooks.capabilities()})
	if cause := context.Cause(ctx); cause != nil {
		return true, r.stop(cause)
	}
	if err == nil && opensFrame(ctx, r.eng, r.journal.begin.Frame, to) {
		err = checkSeeds(to)
	}
	switch {
	case err != nil:
		return true, r.failPrompt(ctx, &hookFailure{"before_llm_call_failed", err})
	case !opensFrame(ctx, r.eng, r.journal.begin.Frame, to):
		return false, nil
	}
	r.journal.switchFrame(to)
	return true, nil
}

func checkSeeds(to *protocol.FrameSwitch) error {
	if len(to.Nodes) == 0 {
		return nil
	}
	return param.CheckAppend(to.Nodes)
}

// nextFrame is the frame that a turn goes on in; nil: none. One that cannot be opened is the turn's failure.
func (ts *sessionTurns) nextFrame(ctx context.Context, id protocol.TurnID, result *turn.Result) (*protocol.FrameSwitch, error) {
	to := result.Outcome.Frame
	if result.Outcome.Kind != protocol.OutcomeFrameSwitch || !to.Meant() {
		return nil, nil
	}
	key, err := ts.st.eng.frameKey(ctx, ts.st.row.Head.Frame)
	if err != nil || key == to.Key {
		return nil, err
	}
	if err := checkSeeds(to); err != nil {
		fail(result, protocol.Issue{Kind: "protocol", Code: "frame_switch_invalid", Message: err.Error()})
		return nil, nil
	}
	if ts.st.queue.Switches(id) >= maxSwitches {
		fail(result, protocol.Issue{Kind: "runtime", Code: "frame_switch_limit",
			Message: "the work went on in another frame " + strconv.Itoa(maxSwitches) + " times in a row; say something to have it go on"})
		result.Outcome.Kind = protocol.OutcomeMaxTurns
		return nil, nil
	}
	return to, nil
}

// continuation is the turn that goes on where another one ends, with what its commit needs for that.
type continuation struct {
	turn   persistence.StoredTurn
	input  protocol.QueuedInput
	nodes  []protocol.Node // the frame, and what it begins with
	events []change.Event
}

// continueInFrame makes the turn that follows r. It is begun at once, so that nothing comes between, even if the daemon dies here.
func (ts *sessionTurns) continueInFrame(r *run, to *protocol.FrameSwitch) *continuation {
	f := &continuation{turn: queue.NewTurn(ts.st.id, ts.st.eng.incarnation, now()), input: r.continuationInput(to, ts.st.queue.Inputs())}
	f.turn.State, f.turn.StartedMs = protocol.TurnRunning, f.turn.AcceptedMs
	f.input.TurnID, f.input.AtMs, f.input.Switches = f.turn.ID, f.turn.AcceptedMs, ts.st.queue.Switches(r.id)+1
	f.nodes, f.events = r.journal.frameNodes(&protocol.FrameOpen{Key: to.Key, Reason: "continueAs", Config: ts.st.row.Config}, to.Nodes)
	return f
}

// continuationInput is the input of the turn that goes on in another frame: the task, with what the turn was given by those that it answers.
func (r *run) continuationInput(to *protocol.FrameSwitch, inputs []protocol.QueuedInput) protocol.QueuedInput {
	return protocol.QueuedInput{
		ID: protocol.NewInputID(), State: protocol.InputQueued, Source: "frame:" + string(r.id),
		Input:       []protocol.InputPart{{Type: protocol.InputText, Text: to.Task}},
		TurnOptions: optionsOf(inputs, r.journal.begin.Inputs), PluginInputs: r.seams.inputs, Ceiling: r.judge.ceiling,
	}
}

// frameNodes are the nodes of a frame that is opened after the turn, with what it begins with, and their events.
func (j *journal) frameNodes(open *protocol.FrameOpen, seeds []protocol.NodeBody) (nodes []protocol.Node, events []change.Event) {
	for i, b := range slices.Insert(slices.Clone(seeds), 0, protocol.NodeBody{FrameOpen: open}) {
		n := b.Node(j.nodeID(len(j.nodes)+i), now())
		n.TurnID = j.turn
		nodes = append(nodes, n)
		if i > 0 {
			events = append(events, appendedEvents(n)...)
		}
	}
	first := protocol.Event{Type: protocol.EventFrameOpened, TurnID: j.turn, Frame: open, FrameID: protocol.FrameID(nodes[0].ID)}
	return nodes, slices.Insert(events, 0, change.Event{Event: first})
}

// addTo adds what follows to the change that ends the turn before it. What that turn has made the code executor keep ends with it.
func (f *continuation) addTo(c *change.Change) {
	c.Nodes = append(slices.Clip(c.Nodes), f.nodes...)
	c.Turns, c.Inputs = append(c.Turns, f.turn.Turn), append(c.Inputs, f.input)
	c.Component = append(c.Component, persistence.Component{Name: executionPart})
	c.Tell(f.events...)
}

// enterFrame tells code executor and protocol of the frame that was opened for the turn. If that fails, the session is loaded
// again, which tells them, too. An error means that the turn is left.
func (r *run) enterFrame() error {
	defer close(r.frameStored)
	if !r.entering {
		return nil
	}
	view := r.seams.view(nil)
	_, err := workgroup.CallPlugin(r.life, r.eng.group, func(ctx context.Context) (struct{}, error) {
		err := r.hooks.plugins.RestoreExecution(ctx, nil)
		if err == nil {
			err = r.hooks.plugins.Protocol().Restore(ctx, view)
		}
		return struct{}{}, err
	})
	if err == nil || r.store.suspended() {
		return err
	}
	return r.reload("protocol_restore_failed", err)
}

// reload says what is wrong with the session's plugins, and has the session loaded again.
func (r *run) reload(code string, cause error) error {
	r.eng.Log.Error("the session's plugins are not what is stored", "session", r.session.id, "error", cause)
	told := issueEvent(r.id, protocol.Issue{Kind: "plugin", Code: code, Message: cause.Error()})
	_, err := onTurnState(r.store, func(ctx context.Context, st *state) (struct{}, error) {
		err := st.commitEvents(ctx, told)
		st.broken = errors.Join(cause, st.broken)
		return struct{}{}, err
	})
	return errors.Join(errStopped, err)
}
