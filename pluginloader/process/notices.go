package process

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// notices are the notifications that a plugin may send. A notification about an instance or a call
// that no longer exists is ignored: it may have been sent before the plugin knew of the end.
var notices = map[string]func(context.Context, *Factory, *life, json.RawMessage) error{
	"tools/changed":    note(toolsChanged),
	"snapshot/changed": note(snapshotChanged),
	"tool/progress":    note(toolProgress),
	"log":              note(logged),

	// A request of the plugin cannot be cancelled; the plugin may ignore the answer.
	"$/cancelRequest": func(context.Context, *Factory, *life, json.RawMessage) error { return nil },
}

// note returns a handler that decodes the parameters of a notification for hear.
func note[P any](hear func(context.Context, *Factory, *life, *P)) func(context.Context, *Factory, *life, json.RawMessage) error {
	return func(ctx context.Context, f *Factory, l *life, raw json.RawMessage) error {
		p := new(P)
		if err := strict(raw, p); err != nil {
			return err
		}
		hear(ctx, f, l, p)
		return nil
	}
}

// noted implements listener. An unknown or invalid notification ends the process.
func (f *Factory) noted(ctx context.Context, l *life, m *message) error {
	hear, ok := notices[m.Method]
	if !ok {
		return fmt.Errorf("sent the unknown notification %.80q", m.Method)
	}
	if err := hear(ctx, f, l, m.Params); err != nil {
		return fmt.Errorf("%s: %w", m.Method, err)
	}
	return nil
}

// said implements listener. It writes a line to the plugin's log.
func (f *Factory) said(level slog.Level, text string) { f.config.Output.Add(level, text) }

// toolsChanged implements tools/changed.
func toolsChanged(ctx context.Context, f *Factory, l *life, p *struct {
	Instance string `json:"instance"`
}) {
	if i := f.seated(p.Instance); i != nil {
		i.toolsChanged(ctx, l)
	}
}

// snapshotChanged implements snapshot/changed.
func snapshotChanged(_ context.Context, f *Factory, l *life, p *struct {
	Instance string `json:"instance"`
	Revision uint64 `json:"revision"`
}) {
	if i := f.seated(p.Instance); i != nil {
		i.changed(l, p.Revision)
	}
}

// toolProgress implements tool/progress. The grant names the call.
func toolProgress(_ context.Context, _ *Factory, l *life, p *struct {
	granted
	Text string `json:"text"`
}) {
	if g := l.grants.find(p.Grant); g != nil && g.tool != nil {
		g.tool.Progress(p.Text)
	}
}

// logged implements log.
func logged(_ context.Context, f *Factory, _ *life, p *struct {
	Level   slog.Level      `json:"level"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}) {
	text := p.Message
	if len(p.Data) > 0 {
		text += " " + string(p.Data)
	}
	f.said(p.Level, text)
}
