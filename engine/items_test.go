package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// asking makes every call need an approval.
func asking(c *engine.Config) { c.Defaults.Approval.Mode = protocol.ApproveAsk }

// shownItems returns the items that an observer still shows: started or completed, and not retracted.
func shownItems(events []protocol.Event) []protocol.ItemID {
	var ids []protocol.ItemID
	for _, e := range events {
		switch e.Type {
		case protocol.EventItemStarted, protocol.EventItemCompleted:
			id := e.ItemID // all there is of an item that never became history
			if e.Item != nil {
				id = e.Item.ID
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		case protocol.EventItemRetracted:
			ids = slices.DeleteFunc(ids, func(id protocol.ItemID) bool { return id == e.ItemID })
		}
	}
	slices.Sort(ids)
	return ids
}

func (d *daemon) itemIDs(t testing.TB, id protocol.SessionID) []protocol.ItemID {
	t.Helper()
	var ids []protocol.ItemID
	for _, item := range must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data {
		ids = append(ids, item.ID)
	}
	slices.Sort(ids)
	return ids
}

// pause blocks the first caller until the test releases it.
type pause struct {
	reached, goOn chan struct{}
	once          sync.Once
}

func newPause() *pause { return &pause{reached: make(chan struct{}), goOn: make(chan struct{})} }

func (p *pause) here() {
	if p != nil {
		p.once.Do(func() {
			close(p.reached)
			<-p.goOn
		})
	}
}

// pausingDriver is the standard driver, which pauses when it takes a reply or results in, or when it is asked what a person may
// see: on the way to the last commit of a turn.
type pausingDriver struct {
	standard.Driver
	reply, results, visible *pause
}

func (*pausingDriver) ID() string                                         { return "pausing" }
func (d *pausingDriver) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }

func (d *pausingDriver) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(d)
	return nil
}

func (d *pausingDriver) Visible(prose string) string {
	d.visible.here()
	return prose
}

func (d *pausingDriver) Reply(v turn.View, reply provider.Reply) []turn.Action {
	d.reply.here()
	return d.Driver.Reply(v, reply)
}

func (d *pausingDriver) Results(v turn.View, results []turn.ToolReply) []turn.Action {
	d.results.here()
	return d.Driver.Results(v, results)
}

// committing pauses the actor at the last commit of a turn, which it logs.
func committing(p *pause) func(*engine.Config) {
	return func(c *engine.Config) { c.Log = slog.New(pausingLog{slog.DiscardHandler, p}) }
}

type pausingLog struct {
	slog.Handler
	pause *pause
}

func (pausingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l pausingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "turn ended" {
		l.pause.here()
	}
	return nil
}

func (l pausingLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l pausingLog) WithGroup(string) slog.Handler { return l }

// gate is a tool that signals its call and waits until the test releases it.
type gate struct {
	toolFunc
	called chan tool.Invocation
	open   chan struct{}
}

func newGate(name string) *gate {
	g := &gate{called: make(chan tool.Invocation, 10), open: make(chan struct{})}
	g.toolFunc = toolFunc{name: name, run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
		g.called <- call
		select {
		case <-g.open:
			return tool.Result{Output: protocol.Succeed("through")}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}}
	return g
}

// idempotentModel allows retries of calls after output has started.
func idempotentModel(c *engine.Config) { c.Models.(models.Fixed)[0].Spec.Idempotent = true }
