package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// everything are the capabilities of an editor with files, terminals and forms.
const everything = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{}}}`

// configures sets the approval settings of a session from another client.
func (p *peer) configures(id string, approval protocol.ApprovalConfig) {
	p.t.Helper()
	ask[protocol.HeadResult](p, "session/configure", protocol.SessionConfigureParams{SessionID: protocol.SessionID(id), Approval: &approval})
}

func TestACPSandboxedCommands(t *testing.T) {
	t.Run("part13/8 commands leave the editor's terminal for the sandbox when the session has one, and return to it", func(t *testing.T) {
		w := confined(t, step(shell("echo one > one; echo a > /etc/acp-escape")), done, step(shell("echo two")), done, step(shell("echo three > three")), done)
		defer w.shutdown()
		e := w.npm(everything)
		e.open(w.work)
		if stop := e.prompt("go")(); stop != "end_turn" || w.size("one") == 0 {
			t.Errorf("the turn ends with %s; one has %d bytes", stop, w.size("one"))
		}
		offer := e.request(0)
		contains(t, string(offer.Params), `"title":"Run again? echo one`, "The command ran in a sandbox, and it cannot change /etc/acp-escape")
		e.chooses(offer, "no")
		if _, err := os.Stat("/etc/acp-escape"); err == nil {
			t.Error("the command left the sandbox")
		}
		set := func(mode string) {
			e.must("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"sandbox","value":%q}`, e.id, mode), &struct{}{})
		}
		set("fullAccess")
		end := e.prompt("go on")
		created := e.request(1)
		if created.Method != "terminal/create" || !strings.Contains(string(created.Params), "echo two") {
			t.Errorf("without a sandbox the agent asks %s %s", created.Method, created.Params)
		}
		e.answer(created, `{"terminalId":"t1"}`)
		e.answer(e.request(2), `{"exitCode":0}`)
		e.answer(e.request(3), `{"output":"two\n","truncated":false}`)
		e.answer(e.request(4), `{}`)
		if stop := end(); stop != "end_turn" {
			t.Errorf("the turn ends with %s", stop)
		}
		w.dial("").configures(e.id, protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxWorkspace})
		e.received(`"config_option_update"`, `"currentValue":"workspace"`)
		if stop := e.prompt("and once more")(); stop != "end_turn" || w.size("three") == 0 || len(e.asked) != 5 {
			t.Errorf("the turn ends with %s; three has %d bytes; the editor was asked %d times", stop, w.size("three"), len(e.asked))
		}
	})
	t.Run("part13/8 a client's tool in place of shell is asked about where commands belong in the sandbox, also if the approval mode allows all", func(t *testing.T) {
		for mode, asks := range map[protocol.SandboxMode]bool{protocol.SandboxWorkspace: true, protocol.SandboxFullAccess: false} {
			w := confined(t, step(shell("touch x")), done)
			w.serve()
			p := w.dial("cli_tools")
			id := p.session(w.home)
			p.configures(string(id), protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode})
			ask[protocol.SessionOverlayResult](p, "session/setOverlay", protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{
				{ToolManifest: protocol.ToolManifest{Name: "shell", Kind: protocol.ToolKindExecute}},
			}})
			p.start(id, "go")
			opened, requested := protocol.EventDecisionOpened, protocol.EventToolRequested
			var ev protocol.Event
			p.until("the call is asked about or requested", func(all []told) bool {
				for _, one := range all {
					if one.Event.Type == opened || one.Event.Type == requested {
						ev = one.Event
					}
				}
				return ev.Type != ""
			})
			if (ev.Type == opened) != asks {
				t.Errorf("with %s the first event is %s", mode, ev.Type)
			}
			if d := ev.Decision; d != nil && (d.Detail == nil || d.Detail.Command == nil || !d.Detail.Command.Outside) {
				t.Errorf("the question does not say that the command runs outside: %+v", d.Detail)
			}
		}
	})
}

func TestACPStoredSessions(t *testing.T) {
	t.Run("part13/8 an editor renames, archives and lists sessions", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("Hello.")), fakemodel.Step{Parts: []fakemodel.Part{{Stall: true}}})
		defer w.shutdown()
		e := w.npm(`{}`)
		e.open(w.work)
		first := e.id
		e.prompt("hi")()
		var titled struct{ Title string }
		e.must("session/set_title", fmt.Sprintf(`{"sessionId":%q,"title":"  Walrus  "}`, first), &titled)
		if titled.Title != "Walrus" {
			t.Errorf("the stored title is %q", titled.Title)
		}
		e.received(`"session_info_update"`, `"title":"Walrus"`)
		e.open(w.work)
		second := e.id
		list := func(params string) (got string) {
			for cursor := ""; ; {
				var r struct {
					Sessions []struct {
						SessionID, Title string
						Archived         bool
					}
					NextCursor string
				}
				e.must("session/list", strings.TrimSuffix(params, "}")+cursor+"}", &r)
				for _, s := range r.Sessions {
					name := map[string]string{first: "first", second: "second"}[s.SessionID]
					got += fmt.Sprintf("%s %q %t; ", name, s.Title, s.Archived)
				}
				if r.NextCursor == "" {
					return got
				}
				cursor = fmt.Sprintf(`,"cursor":%q`, r.NextCursor)
			}
		}
		running := e.prompt("and stall")
		w.asked(2)
		e.must("session/archive", fmt.Sprintf(`{"sessionId":%q}`, second), &struct{}{})
		if stop := running(); stop != "cancelled" {
			t.Errorf("the prompt of the archived session ends with %s", stop)
		}
		for params, want := range map[string]string{
			`{"archived":"exclude"}`: `first "Walrus" false; `,
			`{"cwd":null}`:           `first "Walrus" false; `,
			`{"archived":"only"}`:    `second "and stall" true; `,
			`{"archived":"include"}`: `first "Walrus" false; second "and stall" true; `,
		} {
			if got := list(params); got != want {
				t.Errorf("session/list %s has %s, want %s", params, got, want)
			}
		}
		e.must("session/unarchive", fmt.Sprintf(`{"sessionId":%q}`, second), &struct{}{})
		if got := list(`{"archived":"only"}`); got != "" {
			t.Errorf("after session/unarchive the archive has %s", got)
		}
		for request, want := range map[[2]string]string{
			{"session/list", `{"archived":"all"}`}:                                                               "-32602 invalidParams /archived",
			{"session/set_title", `{"sessionId":"ses_none","title":"x"}`}:                                        "-32002 sessionNotFound",
			{"session/set_title", fmt.Sprintf(`{"sessionId":%q,"title":%q}`, first, strings.Repeat("x", 99999))}: "-32602 invalidParams /title",
			{"session/archive", `{"sessionId":"ses_none"}`}:                                                      "-32002 sessionNotFound",
			{"session/status", fmt.Sprintf(`{"sessionId":%q}`, first)}:                                           "-32601 methodNotFound",
		} {
			if got := e.refused(request[0], request[1]); got != want {
				t.Errorf("%s %.80s: %s, want %s", request[0], request[1], got, want)
			}
		}
	})
}

func TestACPCost(t *testing.T) {
	t.Run("part13/8 an editor is shown what the session has cost", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("Hello.")), step(says("Again.")))
		w.write(w.dir+"/config.toml", fmt.Sprintf("approval = \"allow\"\n[[models]]\nid = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\ncontext_window = 1000\nprice = {input = 10000, output = 10000}\n", w.door.Addr()))
		defer w.shutdown()
		e := w.npm(`{}`)
		e.open(w.work)
		for turn := 1; turn <= 2; turn++ {
			e.prompt("hi")()
			e.received(`"usage_update"`, fmt.Sprintf(`"cost":{"amount":%v,"currency":"USD"}`, float64(turn*(inputTokens+outputTokens))/100), `"size":1000`, fmt.Sprintf(`"used":%d`, inputTokens+outputTokens))
		}
	})
}

func TestACPShowsImages(t *testing.T) {
	t.Run("part13/8 images of prompts and of tools are shown, also when the session is loaded", func(t *testing.T) {
		w := newWorld(t, "allow", step(uses("read", map[string]string{"path": "a.png"})), step(says("Seen.")))
		defer w.shutdown()
		image := pngOf(1_500_000)
		w.write(filepath.Join(w.work, "a.png"), string(image))
		small := base64.StdEncoding.EncodeToString(pngOf(100))
		e := w.npm(`{}`)
		e.open(w.work)
		e.must("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"look"},{"type":"image","mimeType":"image/png","data":%q}]}`, e.id, small), &struct{}{})
		tool := []string{`"tool_call_update"`, `"type":"image"`, base64.StdEncoding.EncodeToString(image)}
		e.received(tool...)
		again := w.npm(`{}`)
		again.must("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, e.id, w.work), &struct{}{})
		again.received(`"user_message_chunk"`, `"type":"image"`, small)
		again.received(`"tool_call"`, tool[1], tool[2])
	})
}

func TestACPDeniesWithAReason(t *testing.T) {
	for _, c := range []struct{ name, form, model string }{
		{"with a reason", `{"action":"accept","content":{"reason":"use trash instead"}}`, "use trash instead"},
		{"and cancels the form", `{"action":"cancel"}`, ""},
	} {
		t.Run("part13/8 the user denies a call in an editor with forms "+c.name, func(t *testing.T) {
			w := newWorld(t, "ask", step(shell("rm x")), done)
			defer w.shutdown()
			e := w.npm(everything)
			e.open(w.work)
			end := e.prompt("go")
			permission := e.request(0)
			contains(t, string(permission.Params), `{"optionId":"rejectReason","name":"Deny with a reason","kind":"reject_once"}`)
			e.chooses(permission, "rejectReason")
			form := e.request(1)
			if form.Method != "elicitation/create" || !strings.Contains(string(form.Params), `"reason"`) {
				t.Errorf("the agent asks %s %s", form.Method, form.Params)
			}
			e.answer(form, c.form)
			if stop := end(); stop != "end_turn" {
				t.Errorf("the turn ends with %s", stop)
			}
			if w.read(c.model) == 0 || len(e.asked) != 2 {
				t.Errorf("the model reads %s; the editor was asked %d times", w.bodies()[1], len(e.asked))
			}
		})
	}
	t.Run("part13/8 an editor without forms is offered no reason", func(t *testing.T) {
		w := newWorld(t, "ask", step(shell("rm x")), done)
		defer w.shutdown()
		e := w.npm(`{}`)
		e.open(w.work)
		end := e.prompt("go")
		permission := e.request(0)
		if strings.Contains(string(permission.Params), "rejectReason") {
			t.Errorf("the editor was asked %s", permission.Params)
		}
		e.chooses(permission, "rejectReason") // it was not offered
		end()
		if w.read("denied") == 0 {
			t.Errorf("the model reads %s", w.bodies()[1])
		}
	})
}

func TestACPCommandList(t *testing.T) {
	t.Run("part13/8 the list of slash commands follows the plugins, and a command takes attachments", func(t *testing.T) {
		w := newWorld(t, "allow", done)
		defer w.shutdown()
		e := w.npm(`{}`)
		e.open(w.work)
		e.received(`"available_commands_update"`, `"name":"compact"`)
		w.claudePlugin("review-tools")
		ask[json.RawMessage](w.dial(""), "plugin/reload", protocol.PluginReloadParams{})
		attached := `{"type":"resource","resource":{"uri":"file:///n.txt","text":"the walrus"}}`
		review := func() string {
			return string(e.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"/review-tools:review-pr 7 low"},%s]}`, e.id, attached))().Result)
		}
		if got := review(); !strings.Contains(got, "end_turn") {
			t.Errorf("the command is answered with %s", got)
		}
		contains(t, w.bodies()[0], "Review pull request #7 with priority low.", "the walrus")
		e.received(`"available_commands_update"`, `"name":"review-tools:review-pr"`, `[pr-number] [priority]`)
		if got := e.refused("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"/compact"},%s]}`, e.id, attached)); got != "-32602 invalidParams /prompt/1" {
			t.Errorf("/compact with an attachment is answered with %s", got)
		}
	})
}
