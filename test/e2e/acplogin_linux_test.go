package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/creack/pty"

	"lashd/test/fakemodel"
)

// typesOn runs a command on a terminal on which a person has typed a text, and returns what the terminal shows.
func (w *world) typesOn(typed string, args ...string) (string, error) {
	w.t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	defer ptmx.Close()
	cmd := w.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	tty.Close()
	var shown bytes.Buffer
	for line := range strings.Lines(typed) {
		wait := make([]byte, 4096)
		for !strings.HasSuffix(strings.TrimRight(shown.String(), " "), ":") {
			n, err := ptmx.Read(wait)
			if shown.Write(wait[:n]); err != nil {
				return shown.String(), cmd.Wait()
			}
		}
		io.WriteString(ptmx, line)
		shown.WriteString("\n")
	}
	io.Copy(&shown, ptmx) // ends with an error when the command has ended
	return shown.String(), cmd.Wait()
}

// wantsLogin fails the test unless an error is ACP's auth_required, with a text.
func wantsLogin(t *testing.T, what string, err error, text string) {
	t.Helper()
	var wire *sdk.RequestError
	if !errors.As(err, &wire) || wire.Code != -32000 || !strings.Contains(wire.Message, text) {
		t.Errorf("part9/keys %s: %v, want the code -32000 with %q", what, err, text)
	}
}

func TestACPLogin(t *testing.T) {
	t.Run("part13/8 an editor with terminals logs in with the command of the authentication method", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t, fakemodel.Say("o"), fakemodel.Say("Good day."))
		d := w.serve()
		defer d.stop()
		e := w.npm(`{"auth":{"terminal":true}}`)
		var is struct {
			AuthMethods []struct {
				ID, Type string
				Args     []string
			}
		}
		if err := json.Unmarshal(e.greeting, &is); err != nil || len(is.AuthMethods) != 2 || is.AuthMethods[0].Type != "terminal" || is.AuthMethods[1].ID != "lashd-login" {
			t.Fatalf("%v: the authentication methods are %s", err, e.greeting)
		}
		for request, want := range map[[2]string]string{
			{"session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, w.work)}: "-32000 modelNotFound",
			{"authenticate", `{"methodId":"lashd-terminal"}`}:                  "-32602 invalidParams /methodId",
		} {
			if got := e.refused(request[0], request[1]); got != want {
				t.Errorf("before the login, %s: %s, want %s", request[0], got, want)
			}
		}
		if shown, err := w.typesOn("anthropic\n"+rightKey+"\n", append([]string{"acp"}, is.AuthMethods[0].Args...)...); err != nil || strings.Contains(shown, rightKey) {
			t.Fatalf("%v: the terminal shows %s", err, shown)
		}
		e.open(w.work)
		if stop := e.prompt("hi")(); stop != "end_turn" {
			t.Errorf("the prompt after the login ends with %s", stop)
		}
	})
	t.Run("part13/8 a login that fails in a terminal of the editor exits with an error", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		if shown, err := w.typesOn("nobody\n", "acp", "--login"); err == nil || !strings.Contains(shown, "nobody") {
			t.Errorf("%v: the terminal shows %s", err, shown)
		}
	})
	t.Run("part9/keys an editor without a key learns what to do, and works after the login", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t, fakemodel.Say("Good day."))
		d := w.serve()
		w.connect().Close() // before the editor's process starts a daemon of its own
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
