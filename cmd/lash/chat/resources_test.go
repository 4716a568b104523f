package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// library is a daemon with an MCP server that has resources, a template and a prompt. Another server does not answer.
type library struct {
	calls
	failed error // of mcp/resources
}

func (l *library) Call(ctx context.Context, method string, params, result any) error {
	switch r := result.(type) {
	case *protocol.MCPResourcesResult:
		if l.failed != nil {
			return l.failed
		}
		r.Data = []protocol.ResourceInfo{
			{Server: "docs", URI: "doc://guide", Name: "guide", Title: "The guide"}, {Server: "docs", URI: "doc://my notes", Name: "notes"},
			{Server: "docs", URI: "doc://{shelf}/{title}", Name: "book", Template: true},
		}
		r.Failed = []protocol.ServerFailure{{Server: "slow", Reason: "it does not answer"}}
	case *protocol.MCPCompleteResult:
		p := params.(protocol.MCPCompleteParams)
		for _, v := range map[string][]string{"shelf": {"low", "upper end"}, "title": {"emma", "em"}, "file": {"a.go", "my file.go"}, "focus": {"speed"}}[p.Argument] {
			if strings.HasPrefix(v, p.Value) {
				r.Values = append(r.Values, v)
			}
		}
		l.made = append(l.made, fmt.Sprint(p.Template, p.Prompt, " ", p.Argument, "=", p.Value, " ", p.Arguments))
	case *protocol.CommandListResult:
		r.Data = []protocol.CommandInfo{{Name: "mcp__docs__review", Kind: protocol.CommandPrompt, Hint: "<file> [focus]", Server: "docs", Prompt: "review", Arguments: []protocol.CommandArgument{
			{Name: "file", Description: "Path of the file", Required: true}, {Name: "focus"},
		}}}
	default:
		return l.calls.Call(ctx, method, params, result)
	}
	return nil
}

// Next has no events.
func (*library) Next(context.Context) ([]protocol.Event, error) { return nil, ErrGone }

// inLibrary returns an idle chat in a directory with files, with the servers of a library.
func inLibrary(t *testing.T, paths ...string) (*ui, *library) {
	u, _ := inWorkspace(t, paths...)
	l := &library{}
	u.session, u.talk.session.Title = l, "named"
	return u, l
}

func TestMenuOfResources(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
	}{
		{"files and resources are both among the first lines", []string{"see @"}, "› see @\n▸ a.go\n  b.go\n  c.go\n  docs:doc://guide     The guide\n  docs:doc://my notes  notes\n  … 2 more"},
		{"letters find a title", []string{"@guid"}, "› @guid\n▸ docs:doc://guide  The guide"},
		{"Tab takes a resource", []string{"@guid", "tab"}, "› @docs:doc://guide "},
		{"a uri with spaces is quoted", []string{"@note", "enter"}, `› @"docs:doc://my notes" `},
		{"a template goes on with the values of its variable, without a mark", []string{"@book", "tab"}, "› @docs:doc://\n  docs:doc://low/\n  docs:doc://upper%20end/"},
		{"a value is completed, and the next variable follows", []string{"@book", "tab", "u", "tab"}, "› @docs:doc://upper%20end/\n  docs:doc://upper%20end/emma\n  docs:doc://upper%20end/em"},
		{"the last value ends the mention", []string{"@book", "tab", "tab", "tab"}, "› @docs:doc://low/emma "},
		{"a server that does not answer says why", []string{"@slow:x"}, "› @slow:x\n  no resources of slow: it does not answer"},
		{"a whole uri is not marked, so that Enter sends", []string{"@docs:doc://guide"}, "› @docs:doc://guide\n  docs:doc://guide  The guide"},
	} {
		t.Run("part13/6 resources: "+c.name, func(t *testing.T) {
			u, _ := inLibrary(t, "a.go", "b.go", "c.go", "d.go")
			press(u, c.keys...)
			if got := below(u); got != c.shows {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
		})
	}
	t.Run("part13/6 resources: the values of a variable get those before it", func(t *testing.T) {
		u, l := inLibrary(t)
		if press(u, "@docs:doc://low/e"); l.made[len(l.made)-1] != "doc://{shelf}/{title} title=e map[shelf:low]" {
			t.Errorf("it asks for %q", l.made)
		}
	})
}

func TestMentionedResources(t *testing.T) {
	for _, c := range []struct{ name, text, sent string }{
		{"a resource goes with the message, whose text stays, and waits for a turn of its own", "sum @docs:doc://guide.", `"input":[{"type":"text","text":"sum @docs:doc://guide."}],"resources":[{"server":"docs","uri":"doc://guide"}],"whenBusy":"queue"}`},
		{"an unknown one stays text", "sum @docs:doc://none", `"input":[{"type":"text","text":"sum @docs:doc://none"}],"whenBusy":"steer"}`},
		{"a server that does not answer has the turn say why", "sum @slow:x", `"resources":[{"server":"slow","uri":"x"}]`},
		{"queued inputs have them, too", "/queue sum @docs:doc://guide", `"text":"sum @docs:doc://guide"}],"resources":[{"server":"docs","uri":"doc://guide"}]`},
		{"slash commands have them, too", "/mcp__docs__review @docs:doc://guide", `"command":{"name":"mcp__docs__review","arguments":"@docs:doc://guide"},"resources":[{"server":"docs","uri":"doc://guide"}]`},
	} {
		t.Run("part13/6 mentions: "+c.name, func(t *testing.T) {
			u, l := inLibrary(t)
			press(u, c.text, "esc", "enter")
			if made := strings.Join(l.made, "\n"); !strings.Contains(made, c.sent) {
				t.Errorf("it calls\n%s\nwant\n%s", made, c.sent)
			}
		})
	}
	t.Run("part13/6 mentions: without an answer about resources, the message is sent as text", func(t *testing.T) {
		u, l := inLibrary(t)
		l.failed = errors.New("no")
		press(u, "sum @docs:doc://guide", "esc", "enter")
		if made := strings.Join(l.made, "\n"); !strings.Contains(made, `"text":"sum @docs:doc://guide"}],"whenBusy":"steer"`) {
			t.Errorf("it calls %q", made)
		}
	})
	t.Run("part13/6 mentions: a later message does not overtake one whose resources are sought, also after the connection was lost", func(t *testing.T) {
		u, l := inLibrary(t)
		u.in.Set("sum @docs:doc://guide")
		seek := u.enter()
		u.in.Set("next")
		if cmd := u.enter(); cmd != nil || !strings.Contains(ansi.Strip(strings.Join(u.queued(), "\n")), "not sent yet: sum @docs:doc://guide\n  not sent yet: next") {
			t.Errorf("the later message is sent, or not shown: %q", u.queued())
		}
		l.failed = ErrGone
		if cmd := u.Update(seek()); cmd != nil && len(l.made) > 0 {
			t.Errorf("after the connection was lost it calls %q", l.made)
		}
		l.failed = nil
		for todo := []tea.Cmd{u.opened(openedMsg{of: &protocol.SessionAttachResult{Session: u.talk.session}})}; len(todo) > 0; todo = todo[1:] {
			if todo[0] == nil {
				continue
			}
			switch m := todo[0]().(type) {
			case tea.BatchMsg:
				todo = append(todo, m...)
			case sourcesMsg:
				todo = append(todo, u.Update(m))
			}
		}
		made := strings.Join(l.made, "\n")
		if first, second := strings.Index(made, `"resources":[{"server":"docs"`), strings.Index(made, `"text":"next"`); first < 0 || second < first {
			t.Errorf("it calls %q", made)
		}
	})
	t.Run("part13/6 mentions: a queued message with resources returns to the prompt, and one with a prompt does not", func(t *testing.T) {
		q := queued("inp_1", "trn_1", "sum @docs:doc://guide", protocol.InputQueued)
		q.PluginInputs = protocol.PluginInputs{protocol.ServersID: []byte(`{"resources":[{"server":"docs","uri":"doc://guide"}]}`)}
		_, resources := newestQueued([]protocol.QueuedInput{q})
		q.PluginInputs[protocol.ServersID] = []byte(`{"prompt":{"name":"mcp__docs__review"}}`)
		if _, prompt := newestQueued([]protocol.QueuedInput{q}); !resources || prompt {
			t.Errorf("they return: %v, %v", resources, prompt)
		}
	})
	t.Run("part13/6 mentions: the transcript shows a resource as an attachment", func(t *testing.T) {
		for text, want := range map[string]string{
			"[The resource doc://guide of the MCP server docs]\none":     "  [resource doc://guide of the MCP server docs, 1 line]",
			"[The resource doc://a.png of the MCP server docs]\n":        "  [resource doc://a.png of the MCP server docs]",
			"[The text of the prompt /x of the MCP server docs]\na\nb\n": "  [text of the prompt /x of the MCP server docs, 2 lines]",
		} {
			e := entry{item: &protocol.Item{Kind: protocol.ItemUserMessage, Text: text, Origin: &protocol.Origin{Plugin: protocol.ServersID}}}
			if got := ansi.Strip(e.shown(markdown.Style{Width: 80})); got != want {
				t.Errorf("it shows %q, want %q", got, want)
			}
		}
	})
}

func TestMenuOfPromptArguments(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
	}{
		{"the values of the server follow the name, without a mark", []string{"/mcp__docs__review "}, "› /mcp__docs__review \n  a.go\n  \"my file.go\""},
		{"Tab takes one, with quotes if it needs them", []string{"/mcp__docs__review m", "tab"}, "› /mcp__docs__review \"my file.go\"\n  <file> Path of the file"},
		{"the next argument has its own", []string{"/mcp__docs__review a.go s", "tab"}, "› /mcp__docs__review a.go speed\n  [focus]"},
		{"an argument with its name, too", []string{"/mcp__docs__review focus=s", "tab"}, "› /mcp__docs__review focus=speed\n  [focus]"},
		{"without values it says what the argument is", []string{"/mcp__docs__review x"}, "› /mcp__docs__review x\n  <file> Path of the file"},
		{"a mention in an argument has its menu", []string{"/mcp__docs__review @guid"}, "› /mcp__docs__review @guid\n▸ docs:doc://guide  The guide"},
		{"another command has none", []string{"/rename a"}, "› /rename a"},
	} {
		t.Run("part13/6 arguments of prompts: "+c.name, func(t *testing.T) {
			u, _ := inLibrary(t)
			press(u, c.keys...)
			if got := below(u); got != c.shows {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
		})
	}
	t.Run("part13/6 arguments of prompts: Enter sends what is written, whatever the server proposes, and the server gets the earlier arguments", func(t *testing.T) {
		u, l := inLibrary(t)
		press(u, "/mcp__docs__review a.go s", "enter")
		made := strings.Join(l.made, "\n")
		if !strings.Contains(made, `"arguments":"a.go s"`) || !strings.Contains(made, "review focus=s map[file:a.go]") {
			t.Errorf("it calls %q", made)
		}
	})
}
