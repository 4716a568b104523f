//go:build unix

package process_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"lashd/engine/plugin"
	"lashd/pluginloader/process"
)

// BenchmarkHook is a hook before a call, from lashd to a process and back, against the same JSON sent to a process that
// decodes it and sends it back, and decoded then.
func BenchmarkHook(b *testing.B) {
	tc := &plugin.ToolCallContext{TurnID: "trn_1", CallID: "c1", Tool: "note", Args: []byte(`{"text":"milk"}`)}
	b.Run("hook", func(b *testing.B) {
		s := session(b, "ses_1", begin(b, config(b, "quick", only(process.Hook{Name: process.BeforeToolCall}))))
		for b.Loop() {
			if _, err := s.BeforeToolCall(b.Context(), tc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("echo", func(b *testing.B) {
		call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "hook/beforeToolCall", "params": map[string]any{
			"instance": "ins_1", "sessionId": "ses_1", "hook": "beforeToolCall", "turnId": "trn_1", "deadlineMs": 5000, "context": tc,
		}}
		in, out := echo(b)
		for b.Loop() {
			if _, err := in.Write(append(mustJSON(call), '\n')); err != nil {
				b.Fatal(err)
			}
			line, err := out.ReadBytes('\n')
			if err != nil {
				b.Fatal(err)
			}
			var back map[string]any
			if err := json.Unmarshal(line, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// echo is a process that sends back what it is sent.
func echo(b *testing.B) (*os.File, *bufio.Reader) {
	itsIn, in, err1 := os.Pipe()
	out, itsOut, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdin, cmd.Stdout = []string{roleVariable + "=echo"}, itsIn, itsOut
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	itsIn.Close()
	itsOut.Close()
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		out.Close()
	})
	return in, bufio.NewReader(out)
}
