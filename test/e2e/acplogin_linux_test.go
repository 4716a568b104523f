package e2e

import (
	"errors"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/test/fakemodel"
)

// wantsLogin fails the test unless an error is ACP's auth_required, with a text.
func wantsLogin(t *testing.T, what string, err error, text string) {
	t.Helper()
	var wire *sdk.RequestError
	if !errors.As(err, &wire) || wire.Code != -32000 || !strings.Contains(wire.Message, text) {
		t.Errorf("part9/keys %s: %v, want the code -32000 with %q", what, err, text)
	}
}

func TestACPLogin(t *testing.T) {
	t.Run("part9/keys an editor without a key learns what to do, and works after the login", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t, fakemodel.Say("Good day."))
		d := w.serve()
		e := w.editor(sdk.ClientCapabilities{})
		methods := e.greeting.AuthMethods
		if len(methods) != 1 || methods[0].Agent == nil || methods[0].Agent.Id != "lashd-login" || !strings.Contains(*methods[0].Agent.Description, "lash login") {
			t.Fatalf("authentication methods: %+v", methods)
		}
		login := sdk.AuthenticateRequest{MethodId: "lashd-login"}
		_, err := e.NewSession(e.context(), sdk.NewSessionRequest{Cwd: w.work, McpServers: []sdk.McpServer{}})
		wantsLogin(t, "a session without a model", err, "run lash login")
		_, err = e.Authenticate(e.context(), login)
		wantsLogin(t, "the method before the login", err, "Run lash login in a terminal")
		cmd := w.command("login", "--untested", "anthropic")
		cmd.Stdin = strings.NewReader(wrongKey)
		if out, err := cmd.Output(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := e.Authenticate(e.context(), login); err != nil {
			t.Errorf("the method after the login: %v", err)
		}
		e.open(w.work)
		prompt := sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{sdk.TextBlock("hi")}}
		_, err = e.Prompt(e.context(), prompt)
		wantsLogin(t, "a prompt with a refused key", err, "lash login anthropic stores another one")
		cmd = w.command("login", "--untested", "anthropic")
		cmd.Stdin = strings.NewReader(rightKey)
		if out, err := cmd.Output(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if stop := e.says("hi"); stop != sdk.StopReasonEndTurn {
			t.Errorf("the prompt after the second login ends with %s", stop)
		}
		d.stop()
	})
}
