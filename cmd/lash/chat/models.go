package chat

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// model lists the models, or chooses one.
func (u *ui) model(name string) tea.Cmd {
	if name != "" && u.lacking {
		u.session.Choose(name)
		return u.tryAgain()
	}
	if name != "" {
		return u.configure(protocol.SessionConfigureParams{Model: name}, "Model from the next turn on: "+name)
	}
	now := u.talk.session.Config.Model
	return read(u, "model/list", protocol.ModelListParams{Servers: true}, func(r *protocol.ModelListResult) string { return modelTable(r.Data, now) })
}

// modelTable lists models by provider, each with its context window and price. A star marks the session's model.
func modelTable(models []protocol.ModelInfo, now protocol.ModelSpec) string {
	var providers []string
	of, wide := map[string][]string{}, 0
	for _, m := range models {
		wide = max(wide, len(m.Name))
	}
	for _, m := range models {
		owner, star := m.Model.Provider, " "
		if owner == now.Provider && m.Model.ID == now.ID {
			star = "*"
		}
		if of[owner] == nil {
			providers = append(providers, owner)
		}
		of[owner] = append(of[owner], strings.TrimRight(fmt.Sprintf("  %s %-*s  %s", star, wide, termtext.OneLine(m.Name, 80), capability(&m)), " "))
	}
	lines := []string{"Models by provider; * is in use. /model NAME switches."}
	for _, p := range providers {
		lines = append(append(lines, termtext.OneLine(p, 80)), of[p]...)
	}
	return strings.Join(lines, "\n")
}

// capability describes a model's context window and price, as far as they are known.
func capability(m *protocol.ModelInfo) string {
	var parts []string
	if w := m.Model.ContextWindow; w > 0 {
		parts = append(parts, count(w)+" window")
	}
	if p := m.Price; p != nil {
		parts = append(parts, fmt.Sprintf("$%s in, $%s out per million tokens", dollars(p.Input), dollars(p.Output)))
	}
	return strings.Join(parts, " · ")
}

// dollars formats a price with as many decimals as it has.
func dollars(price float64) string { return strconv.FormatFloat(price, 'f', -1, 64) }

// effort sets the reasoning effort of the session, or lists those of its model.
func (u *ui) effort(name string) tea.Cmd {
	m := u.talk.session.Config.Model
	switch r := m.Reasoning; {
	case name != "":
		return u.configure(protocol.SessionConfigureParams{Effort: &name}, "Reasoning effort from the next turn on: "+name)
	case r == nil:
		return say("The reasoning effort of %s cannot be set.", cmp.Or(m.ID, "this model"))
	default:
		return say("Usage: /effort %s (current: %s)", strings.Join(r.Efforts, "|"), cmp.Or(m.Effort, r.Default, "the model's default"))
	}
}

// meter says how much of the context window the newest model call used; "" before the first call.
func (t *transcript) meter() string {
	if t.context == nil {
		return ""
	}
	used, window := t.context.Total(), t.session.Config.Model.ContextWindow
	if window <= 0 {
		return "context " + count(used)
	}
	return fmt.Sprintf("context %s of %s (%d%%)", count(used), count(window), used*100/window)
}

// context shows what fills the context window.
func (u *ui) context(string) tea.Cmd {
	meter, last := u.talk.meter(), u.talk.context
	return read(u, "debug/prompt", protocol.DebugPromptParams{SessionID: u.talk.session.ID}, func(r *protocol.DebugPromptResult) string {
		return contextTable(meter, last, r)
	})
}

// contextTable shows the tokens of the newest model call, which the model's server counted, and estimates the parts of the next request.
func contextTable(meter string, last *protocol.Usage, next *protocol.DebugPromptResult) string {
	lines := []string{"No model call since the session began or its history was compacted."}
	if last != nil {
		lines[0] = fmt.Sprintf("Newest model call: %s; %s read from the cache", meter, count(last.CacheRead))
	}
	tools := 0
	for i := range next.Tools {
		tools += len(next.Tools[i].Name) + len(next.Tools[i].Description) + len(next.Tools[i].Input)
	}
	var history, files int
	for i := range next.Messages {
		for j := range next.Messages[i].Parts {
			n, file := sizeOf(&next.Messages[i].Parts[j])
			history, files = history+n, files+file
		}
	}
	lines = append(lines, "Next request, estimated:",
		fmt.Sprintf("  system prompt  %s", estimate(len(next.System))),
		fmt.Sprintf("  tools          %s, %d of them", estimate(tools), len(next.Tools)),
		fmt.Sprintf("  history        %s, %s", estimate(history), counted(len(next.Messages), "message")))
	if files > 0 {
		lines = append(lines, "  files          "+counted(files, "image or file")+", which are not estimated")
	}
	return strings.Join(lines, "\n")
}

// sizeOf returns the bytes of a part's text, and 1 if the part is a file instead.
func sizeOf(p *protocol.Part) (bytes, files int) {
	bytes = len(p.Text)
	switch {
	case p.Attachment != nil:
		return bytes, 1
	case p.Call != nil:
		bytes += len(p.Call.Args)
	case p.Result != nil:
		bytes += max(len(p.Result.Output.Text), len(p.Result.Output.Value))
	}
	return bytes, 0
}

// estimate returns the tokens of a text, at four bytes each, which is a common average for English text and code.
func estimate(bytes int) string { return "about " + count(int64(bytes/4)) + " tokens" }
