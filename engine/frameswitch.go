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

// maxSwitches is how often in a row work may continue in another frame. It stops a loop of frame
// switches that no person's input interrupts.
const maxSwitches = 32

// opensFrame reports whether a switch leads to another frame than the one that its turn began in.
// If the current frame cannot be read it reports true, and the end of the turn fails over the same
// error.
func opensFrame(ctx context.Context, e *Engine, from protocol.FrameID, to *protocol.FrameSwitch) bool {
	if !to.Meant() {
		return false
	}
	key, err := e.frameKey(ctx, from)
	return err != nil || key != to.Key // the end of the turn reports the error
}

// frameKey returns the key of a frame, or "" for the first frame of a session, which has none.
func (e *Engine) frameKey(ctx context.Context, id protocol.FrameID) (string, error) {
	node, err := e.node(ctx, protocol.NodeID(id))
	if err != nil || node.FrameOpen == nil {
		return "", err
	}
	return node.FrameOpen.Key, nil
}

// dropNoopSwitch removes a frame switch that leads to the present frame.
func dropNoopSwitch(ctx context.Context, e *Engine, from protocol.FrameID, c *protocol.ToolControl) *protocol.ToolControl {
	if c != nil && c.Kind == protocol.ControlSwitchFrame && !opensFrame(ctx, e, from, c.Frame) {
		return nil
	}
	return c
}

// switchFrame asks the protocol plugin before a model call whether work should continue in another
// frame. It reports whether the turn ended with that.
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
		err = param.CheckSeeds(to)
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

// nextFrame returns the frame in which work continues after turn id; nil if it does not. A frame
// that cannot be opened becomes the failure of the turn. It runs on the actor.
func (ts *sessionTurns) nextFrame(ctx context.Context, id protocol.TurnID, result *turn.Result) (*protocol.FrameSwitch, error) {
	to := result.Outcome.Frame
	if result.Outcome.Kind != protocol.OutcomeFrameSwitch || !to.Meant() {
		return nil, nil
	}
	key, err := ts.st.eng.frameKey(ctx, ts.st.row.Head.Frame)
	if err != nil || key == to.Key {
		return nil, err
	}
	if err := param.CheckSeeds(to); err != nil {
		fail(result, protocol.Issue{Kind: "protocol", Code: "frame_switch_invalid", Message: err.Error()})
		return nil, nil
	}
	if ts.st.queue.Switches(id) >= maxSwitches {
		fail(result, protocol.Issue{Kind: "runtime", Code: "frame_switch_limit",
			Message: "the work switched to another frame " + strconv.Itoa(maxSwitches) + " times in a row; send an input to continue"})
		result.Outcome.Kind = protocol.OutcomeMaxTurns
		return nil, nil
	}
	return to, nil
}

// continuation is the turn that continues the work of another one in a new frame, with the rows and
// events that its commit needs.
type continuation struct {
	// turn starts in state running and has the present incarnation.
	turn persistence.StoredTurn
	// input starts the turn. Its Switches count limits how often this repeats.
	input protocol.QueuedInput
	// nodes are the frame and the nodes that it starts with.
	nodes  []protocol.Node
	events []change.Event
}

// continueInFrame returns the turn that continues r in the frame to. It is stored as running in the
// commit that ends r, so no other turn can come between them, even if the daemon stops.
func (ts *sessionTurns) continueInFrame(r *run, to *protocol.FrameSwitch) *continuation {
	f := &continuation{turn: queue.NewTurn(ts.st.id, ts.st.eng.incarnation, now()), input: r.continuationInput(to, ts.st.queue.Inputs())}
	f.turn.State, f.turn.StartedMs = protocol.TurnRunning, f.turn.AcceptedMs
	f.input.TurnID, f.input.AtMs, f.input.Switches = f.turn.ID, f.turn.AcceptedMs, ts.st.queue.Switches(r.id)+1
	f.nodes, f.events = r.journal.frameNodes(&protocol.FrameOpen{Key: to.Key, Reason: "continueAs", Config: ts.st.row.Config}, to.Nodes)
	return f
}

// continuationInput returns the input of the turn that continues r: the task that the switch names,
// with the options, schema, plugin inputs and ceiling that r got from its own inputs.
func (r *run) continuationInput(to *protocol.FrameSwitch, inputs []protocol.QueuedInput) protocol.QueuedInput {
	own := queue.ForTurn(inputs, r.journal.begin.Inputs)
	return protocol.QueuedInput{
		ID: protocol.NewInputID(), State: protocol.InputQueued, Source: "frame:" + string(r.id),
		Input:       []protocol.InputPart{{Type: protocol.InputText, Text: to.Task}},
		TurnOptions: own.Options, PluginInputs: r.seams.inputs, Ceiling: r.judge.ceiling, Effort: own.Effort, Iterations: own.Iterations, Schema: own.Schema,
	}
}

// frameNodes returns the nodes of a frame that opens after the turn, and their events.
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

// addTo adds the continuation to the change that ends the turn before it.
func (f *continuation) addTo(c *change.Change) {
	c.Nodes = append(slices.Clip(c.Nodes), f.nodes...)
	c.Turns, c.Inputs = append(c.Turns, f.turn.Turn), append(c.Inputs, f.input)
	c.Tell(f.events...)
}

// enterFrame tells the code executor and the protocol plugin of the frame that was opened for this
// turn. If that fails, the session is reloaded, which also tells them. An error means that the turn
// is left.
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

// reload publishes that plugins do not match the stored session, and has the actor reload it.
func (r *run) reload(code string, cause error) error {
	r.eng.Log.Error("plugins do not match the stored session; reloading it", "session", r.session.id, "error", cause)
	told := issueEvent(r.id, protocol.Issue{Kind: "plugin", Code: code, Message: cause.Error()})
	_, err := onTurnState(r.store, func(ctx context.Context, st *state) (struct{}, error) {
		err := st.commitEvents(ctx, told)
		st.broken = errors.Join(cause, st.broken)
		return struct{}{}, err
	})
	return errors.Join(errStopped, err)
}
