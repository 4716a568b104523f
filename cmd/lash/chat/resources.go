package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/mcpinput"
	"lashd/rpc/protocol"
)

// resources lists the resources of the MCP servers of a session. The list is read when a mention begins, and again if
// it is older than resourcesAge then.
type resources struct {
	session protocol.SessionID
	list    protocol.MCPResourcesResult
	read    time.Time
	reading bool
}

const (
	resourcesAge  = 30 * time.Second
	resourcesTime = 20 * time.Second // the longest time to read them
)

// resourcesMsg is a new list of resources.
type resourcesMsg struct {
	session protocol.SessionID
	list    protocol.MCPResourcesResult
	err     error
}

// readResources returns a command that lists the resources, unless there is a new list.
func readResources(u *ui) tea.Cmd {
	r, id := &u.suggest.resources, u.talk.session.ID
	if r.session != id {
		*r = resources{session: id}
	}
	if id == "" || r.reading || time.Since(r.read) < resourcesAge {
		return nil
	}
	r.reading = true
	return func() tea.Msg {
		list, err := listResources(u.ctx, u.session, id)
		return resourcesMsg{id, list, err}
	}
}

// listResources asks the daemon for the resources of a session's MCP servers.
func listResources(ctx context.Context, s Session, id protocol.SessionID) (r protocol.MCPResourcesResult, err error) {
	ctx, stop := context.WithTimeout(ctx, resourcesTime)
	defer stop()
	err = s.Call(ctx, "mcp/resources", protocol.MCPResourcesParams{SessionID: id}, &r)
	return r, err
}

// listedResources takes a new list of resources. Without an answer there are none.
func listedResources(u *ui, m resourcesMsg) tea.Cmd {
	s := &u.suggest
	if m.session != s.resources.session {
		return nil
	}
	s.resources = resources{session: m.session, list: m.list, read: time.Now()}
	if s.word.kind == mentionWord && s.shut == 0 {
		s.fill()
	}
	return readValues(u)
}

// The first choices of a mention's menu, so that files and resources are both among its lines.
const (
	firstPaths     = 3
	firstResources = 2
)

// mentioned returns the menu of a mention. If the text is the best of the choices or a directory, none is marked: Enter then
// sends the message. Values that a server proposes are never marked.
func (s *suggest) mentioned() prompt.Menu {
	text := s.word.text
	if values := s.valueChoices(); len(values) > 0 {
		return prompt.MenuOf(values, -1)
	}
	paths, others := s.paths.choices(text), s.resources.choices(text)
	n, m := min(len(paths), firstPaths), min(len(others), firstResources)
	all := slices.Concat(paths[:n], others[:m], paths[n:], others[m:])
	if len(all) > 0 && (all[0].Text == text || len(paths) > 0 && strings.HasSuffix(text, "/")) {
		return prompt.MenuOf(all, -1)
	}
	return prompt.MenuOf(all, 0)
}

// choices returns the resources and templates whose mention begins with a text, and then those that have it in their mention or name.
func (r *resources) choices(text string) (all []prompt.Choice) {
	folded := strings.ToLower(text)
	for _, begins := range []bool{true, false} {
		for i := range r.list.Data {
			x := &r.list.Data[i]
			name := mentionName(x)
			has := strings.Contains(strings.ToLower(name+"\n"+x.Name+"\n"+x.Title), folded)
			if has && strings.HasPrefix(strings.ToLower(name), folded) == begins && len(all) < mostPaths {
				all = append(all, prompt.Choice{Text: name, Says: cmp.Or(x.Title, x.Name)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b prompt.Choice) int { return inexactText(a, text) - inexactText(b, text) })
	return all
}

// inexactText returns 0 for the choice with a text, and 1 for others.
func inexactText(c prompt.Choice, text string) int {
	if c.Text == text {
		return 0
	}
	return 1
}

// mentionName returns a resource as it is mentioned, without the sign and quotes.
func mentionName(r *protocol.ResourceInfo) string { return r.Server + ":" + r.URI }

// taken returns the text that a choice of a resource puts into the prompt. open reports that more follows: the value of a variable.
func (s *suggest) taken(choice string) (text string, open bool) {
	for i := range s.resources.list.Data {
		if r := &s.resources.list.Data[i]; r.Template && mentionName(r) == choice {
			return r.Server + ":" + mcpinput.Fixed(r.URI), true
		}
	}
	_, v, ok := s.variable()
	return choice, ok && !v.Last
}

// variable returns the template and the variable whose value the user is writing. Of several templates it is the one with
// the longest beginning.
func (s *suggest) variable() (template *protocol.ResourceInfo, found mcpinput.Variable, ok bool) {
	server, uri, _ := strings.Cut(s.word.text, ":")
	for i := range s.resources.list.Data {
		r := &s.resources.list.Data[i]
		if !r.Template || r.Server != server || ok && len(mcpinput.Fixed(r.URI)) <= len(mcpinput.Fixed(template.URI)) {
			continue
		}
		if v, fits := mcpinput.VariableOf(r.URI, uri); fits {
			template, found, ok = r, v, true
		}
	}
	return template, found, ok
}

// about explains the word if there is nothing to choose: which argument it is, or why there are no resources.
func (s *suggest) about() string {
	switch {
	case s.shut > 0:
		return ""
	case s.word.kind == promptWord:
		a, _ := s.argument()
		return mcpinput.Hint([]protocol.CommandArgument{a.CommandArgument}) + " " + a.Description
	case s.word.kind != mentionWord || !strings.Contains(s.word.text, ":"):
		return ""
	case s.resources.reading:
		return "asking the MCP servers for resources…"
	}
	server, _, _ := strings.Cut(s.word.text, ":")
	for _, f := range s.resources.list.Failed {
		if f.Server == server {
			return "no resources of " + server + ": " + f.Reason
		}
	}
	return ""
}

// sourcesMsg has the list of resources for a message that may mention some.
type sourcesMsg struct {
	of   *outgoing
	list protocol.MCPResourcesResult
	err  error
}

// findSources returns a command that finds the resources that a message mentions, and then sends it.
func findSources(u *ui, o *outgoing) tea.Cmd {
	p := o.params.(protocol.TurnStartParams)
	if r := &u.suggest.resources; r.session == p.SessionID && mcpinput.Known(p.Input[0].Text, &r.list) {
		return func() tea.Msg { return sourcesMsg{of: o, list: r.list} }
	}
	return func() tea.Msg {
		list, err := listResources(u.ctx, u.session, p.SessionID)
		return sourcesMsg{o, list, err}
	}
}

// foundSources sends a message with the resources that it mentions, and the messages that waited for it. After ErrGone the message stays in u.unsent.
func foundSources(u *ui, m sourcesMsg) tea.Cmd {
	if errors.Is(m.err, ErrGone) || !m.of.mentions {
		return nil
	}
	if !slices.Contains(u.unsent, m.of) { // the user has taken it back
		return sendInputs(u)
	}
	p := m.of.params.(protocol.TurnStartParams)
	p.Resources = mcpinput.Resources(p.Input[0].Text, &m.list)
	var note tea.Cmd
	switch waits := len(p.Resources) > 0 && p.WhenBusy == protocol.BusySteer; {
	case m.err != nil:
		note = say("The message was sent without resources: %v", m.err)
	case waits && u.talk.turn != "":
		note = say("Queued: lashd reads resources only when a turn starts.")
		fallthrough
	case waits:
		p.WhenBusy = protocol.BusyQueue
	}
	m.of.params, m.of.mentions = p, false
	return tea.Batch(note, sendInputs(u))
}
