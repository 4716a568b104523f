package starlark

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.starlark.net/starlark"

	"lashd/rpc/protocol"
)

// timeFunctions returns the module time. Times are seconds since 1970; only now asks the host.
// The host's nanoseconds are cut to milliseconds, which a float of this size keeps exactly enough to print them again.
func (in library) timeFunctions() map[string]builtin {
	now := func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
			return nil, err
		}
		t, err := outside(in.run, func() (time.Time, error) { return in.run.host.Now(in.run.ctx) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		return starlark.Float(float64(t.UnixMilli()) / 1000), nil
	}
	return map[string]builtin{"now": now, "format": formatTime, "parse": parseTime}
}

// formatTime implements time.format: a time in UTC, as RFC 3339.
// The bound of 2^37 seconds is about 4,300 years before and after 1970.
func formatTime(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var seconds starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "seconds", &seconds); err != nil {
		return nil, err
	}
	f, ok := starlark.AsFloat(seconds)
	if !ok || f > 1<<37 || f < -1<<37 {
		return nil, fmt.Errorf("%s: got %s, want the seconds since 1970", b.Name(), seconds)
	}
	return starlark.String(time.UnixMilli(int64(f * 1000)).UTC().Format(time.RFC3339Nano)), nil
}

// parseTime implements time.parse, for RFC 3339 and for plain dates.
// A time without a zone counts as UTC. The zone of the machine would make the result of a cell depend on where it runs.
func parseTime(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s); err != nil {
		return nil, err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return starlark.Float(float64(t.UnixMilli()) / 1000), nil
		}
	}
	return nil, fmt.Errorf("%s: %q is not a time such as 2006-01-02T15:04:05Z", b.Name(), s)
}

// generator makes random numbers from one seed of the host. The algorithm is ChaCha8, whose output for a seed is fixed, so a
// cell that runs again after a crash with the same seed gets the same numbers from any version of lashd.
type generator struct{ *rand.Rand }

// seedSize is the size of the seed, in bytes.
const seedSize = 32

// randomness returns the generator of the running cell. The host is asked once, so a cell has at most one such effect.
func (in library) randomness() (*generator, error) {
	if in.run.random != nil {
		return in.run.random, nil
	}
	seed, err := outside(in.run, func() ([]byte, error) { return in.run.host.Random(in.run.ctx) })
	if err != nil {
		return nil, fmt.Errorf("random: %w", err)
	}
	if len(seed) < seedSize {
		return nil, errors.New("random: the host returned too few bytes")
	}
	in.run.random = &generator{rand.New(rand.NewChaCha8([seedSize]byte(seed)))}
	return in.run.random, nil
}

// randomFunctions returns the module random.
func (in library) randomFunctions() map[string]builtin {
	return map[string]builtin{"random": in.randomFloat, "randint": in.randomInt, "choice": in.randomChoice, "shuffle": in.randomShuffle}
}

// randomFloat implements random.random: a float of at least 0 and less than 1.
func (in library) randomFloat(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	g, err := in.randomness()
	if err != nil {
		return nil, err
	}
	return starlark.Float(g.Float64()), nil
}

// randomInt implements random.randint: both bounds are included.
// The difference of the bounds must be less than 2^62, so that the count of numbers fits an int64.
func (in library) randomInt(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var low, high int64
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "low", &low, "high", &high); err != nil {
		return nil, err
	}
	if low > high || uint64(high-low) >= 1<<62 {
		return nil, fmt.Errorf("%s: no number between %d and %d", b.Name(), low, high)
	}
	g, err := in.randomness()
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt64(low + g.Int64N(high-low+1)), nil
}

// randomChoice implements random.choice.
// It takes anything with an index, but no set: the elements of a set have no numbers.
func (in library) randomChoice(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var from starlark.Indexable
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "from", &from); err != nil {
		return nil, err
	}
	if from.Len() == 0 {
		return nil, fmt.Errorf("%s: the sequence is empty", b.Name())
	}
	g, err := in.randomness()
	if err != nil {
		return nil, err
	}
	return from.Index(g.IntN(from.Len())), nil
}

// randomShuffle implements random.shuffle: it returns the elements in another order and leaves its argument as it is.
func (in library) randomShuffle(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var from starlark.Iterable
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "from", &from); err != nil {
		return nil, err
	}
	g, err := in.randomness()
	if err != nil {
		return nil, err
	}
	if err := in.run.meter.need(slot * max(0, starlark.Len(from))); err != nil {
		return nil, err
	}
	var all []starlark.Value
	for v := range starlark.Elements(from) {
		all = append(all, v)
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return starlark.NewList(all), nil
}

// history returns the conversation. The host is asked when a cell first uses it, and a later use in the same cell gets the
// same frozen value. The conversation is no global: it is never saved, and each cell asks for it again.
// History is frozen, because an assignment to a part of it would be lost without a message at the end of the cell.
func (in *Interpreter) history() (starlark.Value, error) {
	if in.run == nil {
		return nil, errors.New("history is available only while a cell runs")
	}
	if in.run.history == nil {
		data, err := outside(in.run, func() (json.RawMessage, error) { return in.run.host.History(in.run.ctx) })
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		v, err := in.fromJSON(string(data))
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		v.Freeze()
		in.run.history = v
	}
	return in.run.history, nil
}

// errEnd is the error with which finish, submit_error and continue_as leave the cell.
var errEnd = errors.New("the cell has ended")

// finish implements finish(value). A value that does not match the schema of the turn is an error.
func (in *Interpreter) finish(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "value?", &v); err != nil {
		return nil, err
	}
	data, err := in.final(b.Name(), v)
	if err != nil {
		return nil, err
	}
	if err := conforms(in.run.cell.Schema, data); err != nil {
		return nil, fmt.Errorf("finish: the value does not match the schema: %w; call finish again with a value that does", err)
	}
	return nil, in.leave(&protocol.ToolControl{Kind: protocol.ControlFinish, Value: data})
}

// submitError implements submit_error(value): the turn fails with a value.
// The value is not checked against the schema of the turn, which describes a success.
func (in *Interpreter) submitError(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "value", &v); err != nil {
		return nil, err
	}
	data, err := in.final(b.Name(), v)
	if err != nil {
		return nil, err
	}
	return nil, in.leave(&protocol.ToolControl{Kind: protocol.ControlFail, Value: data})
}

// final returns the value with which a cell ends the turn, as JSON of at most Limits.Value bytes. It fails if the driver does
// not accept an end from this cell.
func (in *Interpreter) final(name string, v starlark.Value) (json.RawMessage, error) {
	if !in.run.cell.AcceptFinish {
		return nil, fmt.Errorf("%s: this cell cannot end the turn", name)
	}
	data, err := toJSON(v, in.config.Limits.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// continueAs implements continue_as(task, seed): the turn continues in a new frame with that task. The key of the frame
// comes from the place of the call; the seed is the first thing that the new frame reads.
//
// The key must be the same when the cell runs again after a crash, and different from that of the current frame: the ID of
// the cell and the place of the call have both properties.
func (in *Interpreter) continueAs(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var task string
	var seed starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "task", &task, "seed??", &seed); err != nil {
		return nil, err
	}
	at := thread.CallFrame(1).Pos
	frame := &protocol.FrameSwitch{Key: fmt.Sprintf("%s:%d:%d", cmp.Or(in.run.cell.ID, display(in.run.file)), at.Line, at.Col), Task: task}
	if !frame.Meant() {
		return nil, errors.New("continue_as: the task is empty; say what to do next")
	}
	if seed != nil {
		node, err := in.seed(seed)
		if err != nil {
			return nil, fmt.Errorf("continue_as: %w", err)
		}
		frame.Nodes = []protocol.NodeBody{node}
	}
	return nil, in.leave(&protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: frame})
}

// leave ends the cell with a control. The returned error unwinds the stack like any other; execute then treats it as
// success. Starlark has no way to catch an error, so code after the call cannot run.
func (in *Interpreter) leave(c *protocol.ToolControl) error {
	in.run.control = c
	return errEnd
}
