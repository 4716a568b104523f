package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/emulator"
	"lashd/test/wait"
)

// chat starts lash chat in tmux.
func (p *place) chat(width, height int) emulator.Terminal {
	p.t.Helper()
	cmd := p.command("chat")
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	x := emulator.Emulators["tmux"](p.t, cmd, width, height)
	emulator.Shows(p.t, x, "─ idle")
	return x
}

// inLibrary returns a place whose sessions have the MCP server of newLibrary. The model says whether it has read the guide.
func inLibrary(t *testing.T) *place {
	_, url := newLibrary(t)
	p := newPlace(t)
	p.write("script.json", `{"turns": [{"match": {"lastUserContains": "the guide says 42"}, "replies": [{"text": "I have read it"}]}], "otherwise": {"replies": [{"text": "I have read nothing"}]}}`)
	p.want(0, "Added library to ", "", "mcp", "add", "library", url)
	p.until("the server works", func(s protocol.PluginServer) bool { return s.State == "ready" })
	return p
}

func TestMCPInTheChat(t *testing.T) {
	p := inLibrary(t)
	x := p.chat(80, 30)

	t.Run("part13/6 the chat completes a resource, sends it, and shows it as an attachment", func(t *testing.T) {
		x.Type("Summarize @gui")
		emulator.Shows(t, x, "▸ library:doc://shelf/guide  guide")
		x.Type("\t")
		emulator.Shows(t, x, "› Summarize @library:doc://shelf/guide")
		x.Type("\r")
		emulator.Shows(t, x, "  [resource doc://shelf/guide of the MCP server library, 1 line]")
		emulator.Shows(t, x, "I have read it")
	})

	t.Run("part13/6 the chat completes the variable of a template, and an unknown resource stays text", func(t *testing.T) {
		x.Type("@library:doc://books/em")
		emulator.Shows(t, x, "  library:doc://books/ref%2Fresource%20title%20emx")
		x.Type("\x03@nowhere:doc://x\r")
		emulator.Shows(t, x, "I have read nothing")
		if all := x.Look().All(); strings.Count(all, "[resource") != 1 {
			t.Errorf("it shows\n%s", all)
		}
	})

	t.Run("part13/6 the chat lists the servers", func(t *testing.T) {
		x.Type("/mcp\r")
		emulator.Shows(t, x, "MCP servers:\n  library  ready\n  To add or remove servers: lash mcp")
	})

	t.Run("part13/6 the chat completes the argument of a prompt", func(t *testing.T) {
		x.Type("/mcp__library__review")
		emulator.Shows(t, x, "▸ /mcp__library__review <file> [focus]  Reviews a change")
		x.Type("\ta")
		emulator.Shows(t, x, `"ref/prompt file ax"`)
		x.Type("\t\r")
		emulator.Shows(t, x, "[text of the prompt /mcp__library__review of the MCP server library, 1 line]")
	})
}

func TestMCPResourcesOfRun(t *testing.T) {
	p := inLibrary(t)
	t.Run("part13/6 lash run sends the resources that the prompt mentions", func(t *testing.T) {
		p.want(0, "I have read it", "", "run", "Summarize @library:doc://shelf/guide.")
		p.want(0, "I have read nothing", "", "run", "Summarize @library:doc://shelf/none")
		p.want(1, "", "read @library:doc://books/none", "run", "Summarize @library:doc://books/none")
	})
}

func TestMCPListWithStates(t *testing.T) {
	t.Run("part13/6 lash mcp lists the states of servers, also those of the workspace, and says what to do", func(t *testing.T) {
		p := inLibrary(t)
		if err := os.WriteFile(filepath.Join(p.work, ".mcp.json"), []byte(`{"mcpServers":{"team":{"url":"http://127.0.0.1:1/mcp"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		p.want(0, "", "", "call", "plugin/reload")
		wait.Until(t, "the plugin of the workspace needs approval", func() bool { return strings.Contains(p.run("mcp").err, "lash plugin trust project") })
		p.want(0, "NAME     STATE  TOOLS  SERVER\nlibrary  ready  0      http://127.0.0.1:", "", "mcp")
		const inert = "that do nothing until you approve them. To review them: lash plugin trust project"
		if r := p.want(0, "I have read nothing", inert, "run", "Go on."); strings.Count(r.err, "lash plugin trust") != 1 {
			t.Errorf("lash run says it more than once: %q", r.err)
		}
		if code := newPTY(t).run(p, "[y/N]", "y\n", "plugin", "trust", "project"); code != 0 {
			t.Errorf("the approval ends with %d", code)
		}
		if r := p.want(0, "I have read nothing", "", "run", "Go on."); strings.Contains(r.err, inert) {
			t.Errorf("lash run says it after the approval: %q", r.err)
		}
		wait.Until(t, "the server of the workspace fails", func() bool { return strings.Contains(p.run("mcp").err, "lash: team: ") })
		p.want(0, "plugin project", "", "mcp")
		p.want(0, "", "", "mcp", "remove", "library")
		p.kill()
		p.want(0, "No MCP servers.", "", "mcp")
	})
}
