package engine

import (
	"context"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// PreviewPrompt returns the model request that a turn with this input would start with. If the session is idle, it
// holds the session and calls transforms and prompt hooks, which can only read. While a turn or a command runs
// they are not called, and an issue says so for each. Nothing is stored.
func (ss *Sessions) PreviewPrompt(ctx context.Context, p *protocol.DebugPromptParams) (*protocol.DebugPromptResult, error) {
	if len(p.Input) > 0 {
		in, err := ss.eng.attachments().Shown(ctx, p.SessionID, p.Input)
		if err != nil {
			return nil, err
		}
		p = &protocol.DebugPromptParams{SessionID: p.SessionID, Input: in.Parts}
	}
	l, err := ss.eng.lend(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	defer l.release()
	v := &preview{eng: ss.eng, plugins: l.plugins, catalog: l.catalog, tools: l.set.composer, layers: l.set.layers(l.row.Config), said: l.plugins.Texts()}
	if v.preamble, err = l.set.preambleOf(l.ctx, l.catalog, l.plugins); err != nil {
		return nil, cancelledOr(l.ctx, err)
	}
	_, err = onState(l.owner, func(_ context.Context, st *state) (struct{}, error) {
		return struct{}{}, v.readSession(ctx, st, p.Input)
	})
	if err != nil || v.hold == nil {
		return v.result(), err
	}
	if err := v.hold.acquire(); err != nil {
		return nil, err
	}
	defer v.hold.release()
	v.callPlugins()
	return v.result(), cancelledOr(ctx, nil)
}

// preview collects a prompt preview. The goroutine of the request owns it, except while readSession runs on the
// actor.
type preview struct {
	eng      *Engine
	hold     *sessionHold // on the session; nil: plugins are not called
	plugins  *plugin.Session
	view     *plugin.View
	past     []*protocol.Message // history
	input    []protocol.Message  // follows past; at most one message
	catalog  *tool.Catalog
	tools    *tool.Composer
	preamble plugin.Preamble // the driver's, for catalog
	layers   []plugin.Prompt
	said     []plugin.Prompt
	extra    *turnContext
	issues   []protocol.Issue
}

// readSession reads the session on the actor. It requests a hold if hooks must be called and the session is idle
// with no command waiting.
func (v *preview) readSession(ctx context.Context, st *state, input []protocol.InputPart) (err error) {
	if v.view, err = viewOf(st); err != nil {
		return err
	}
	if v.past, err = st.history.messages(); err != nil {
		return err
	}
	if len(input) > 0 {
		v.input = []protocol.Message{protocol.UserMessage(input, nil)}
	}
	v.view = v.view.WithMessages(v.past, v.input...)
	switch asked := v.plugins.Shapers(); {
	case len(asked) == 0:
	case st.idle() != nil || st.holds.awaited():
		for _, h := range asked {
			v.addIssue("not_asked", h.Error())
		}
	default:
		v.hold = st.holds.request(ctx, st)
		st.turns.startNext()
	}
	return nil
}

// addIssue adds an issue of a plugin to the result. Issues do not fail the preview: the person sees the prompt
// without the part that failed.
func (v *preview) addIssue(code, message string) {
	v.issues = append(v.issues, protocol.Issue{Kind: "plugin", Code: code, Message: message})
}

// callPlugins runs transforms and prompt hooks with read-only services, on the goroutine of the request. A hook
// that fails leaves its part out and adds an issue.
func (v *preview) callPlugins() {
	host := v.eng.hostFor(v.view.Session.ID)
	host = plugin.Capabilities{State: plugin.ReadOnly(host.State), Tracer: host.Tracer}
	extra, err := workgroup.CallPlugin(v.hold.lease.ctx, v.eng.group, func(ctx context.Context) (*turnContext, error) { return v.transformed(ctx, host) })
	if err == nil && extra.changesTools() {
		v.catalog = extra.extended
		v.preamble, err = workgroup.CallPlugin(v.hold.lease.ctx, v.eng.group, func(ctx context.Context) (plugin.Preamble, error) { return v.plugins.Preamble(ctx, v.catalog) })
	}
	if err == nil {
		v.extra = extra
	} else {
		v.addIssue("context_prepare_turn", err.Error())
	}
	said, err := workgroup.CallPlugin(v.hold.lease.ctx, v.eng.group, func(ctx context.Context) ([]plugin.Prompt, error) {
		return v.plugins.Prompts(ctx, &plugin.PromptContext{View: v.view, Host: host})
	})
	if err == nil {
		v.said = said
	} else {
		v.addIssue("plugin_prompt", err.Error())
	}
}

// transformed runs the transforms on the history and returns their result; nil if there are none. They get the
// messages before the input, with a capped slice, so that appending does not overwrite the input.
func (v *preview) transformed(ctx context.Context, host plugin.Capabilities) (*turnContext, error) {
	if !v.plugins.Transforms() {
		return nil, nil
	}
	pc, err := v.plugins.Transform(ctx, &plugin.ContextView{View: v.view, Host: host}, plugin.PreparedContext{Messages: v.view.Messages()[:len(v.past):len(v.past)]})
	if err != nil {
		return nil, err
	}
	made, err := turnContextOf(pc)
	if err == nil {
		_, err = made.catalog(v.catalog, v.tools)
	}
	return made, err
}

// result returns the request as far as it is known; nil before readSession has run. If transforms ran, it has
// their messages, followed by the input.
func (v *preview) result() *protocol.DebugPromptResult {
	if v.view == nil {
		return nil
	}
	cfg := v.view.Session.Config
	r := &protocol.DebugPromptResult{
		Model: cfg.Model, System: systemOf(v.catalog, v.preamble.Text, v.extra, v.said, v.layers), Tools: list(slices.Clone(v.catalog.Manifests())),
		Messages: list(v.view.Messages()), Options: cfg.Generation, Issues: v.issues,
	}
	if v.plugins.WritesCode() {
		r.Tools = list[protocol.ToolManifest](nil) // the prompt describes them
	}
	if v.extra != nil {
		r.Messages = new(plugin.View).WithMessages(v.extra.messages, v.input...).Messages()
	}
	return r
}

// systemOf joins a system prompt from the driver's preamble, the contributions of transforms and plugins, and the
// layers of the session and its overlay. Parts for tools that the catalog lacks are left out, and invalid UTF-8 is
// replaced.
func systemOf(catalog *tool.Catalog, preamble string, extra *turnContext, said, layers []plugin.Prompt) string {
	all := []plugin.Prompt{{Slot: plugin.SlotExecution, Content: preamble}}
	if extra != nil {
		all = append(all, extra.prompts...)
	}
	all = append(append(all, said...), layers...)
	return strings.ToValidUTF8(plugin.RenderPrompts(plugin.Fits(catalog), all), "\uFFFD")
}
