//go:build unix

package plugins_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

func TestHandshake(t *testing.T) {
	each(t, "issue/4-9 a program that is not what plugin.json declares says what differs", func(t *testing.T, c process.Config) {
		c.Contributes.Tools[0].Manifest.Name = "sudo"
		c.Contributes.Hooks = c.Contributes.Hooks[1:]
		c.Contributes.Operations = append(c.Contributes.Operations, protocol.OperationInfo{Name: "notes.drop", Kind: protocol.OperationCommand})
		c.Contributes.Executor = nil
		c.Contributes.State = "2"
		err := begin(t, c).Start(t.Context())
		for _, want := range []string{
			"the tool sudo has no handler", "the tool note is not declared", "the hook prompt is not declared",
			"the operation notes.drop has no handler", "declares a code executor", "state version",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		}
	})
	each(t, "issue/4-9 it speaks no other version of the protocol", func(t *testing.T, c process.Config) {
		talk := converse(t, c)
		got := talk(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2,"pluginId":"notes","nonce":"n","contributes":{}}}`)
		if got.Error.Code == 0 || !strings.Contains(got.Error.Message, "version 2") {
			t.Errorf("%+v", got)
		}
	})
	each(t, "issue/4-9 a method that there is not has its code, and a handler that there is not", func(t *testing.T, c process.Config) {
		talk := converse(t, c)
		for line, want := range map[string]int{
			`{"jsonrpc":"2.0","id":1,"method":"plugin/dance","params":{}}`:                                 -32601,
			`{"jsonrpc":"2.0","id":2,"method":"session/open","params":{"instance":"i","sessionId":"ses"}}`: 0,
			`{"jsonrpc":"2.0","id":3,"method":"tool/execute","params":{"instance":"other","name":"note"}}`: -32000,
		} {
			if got := talk(line); got.Error.Code != want {
				t.Errorf("%s is answered with %+v", line, got)
			}
		}
		if got := talk(`{"jsonrpc":"2.0","id":4,"method":"tool/execute","params":{"instance":"i","name":"sudo"}}`); got.Error.Code != -32601 {
			t.Errorf("a tool that there is not: %+v", got)
		}
	})
}

// answer is one of a plugin.
type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// converse starts the program of a plugin, and gives what says a line to it and takes one. It ends with its stdin.
func converse(t testing.TB, c process.Config) func(line string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = os.Environ()
	for name, value := range c.Set {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal("the plugin is not started")
	}
	t.Cleanup(func() {
		defer cancel()
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it does not end with its stdin: %v", err)
		}
	})
	lines := bufio.NewReader(out)
	return func(line string) (a answer) {
		t.Helper()
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		said, err := lines.ReadBytes('\n')
		if err != nil || json.Unmarshal(said, &a) != nil {
			t.Fatalf("%q, %v", said, err)
		}
		return a
	}
}
