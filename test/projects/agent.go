package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shown is how many bytes of the output of a failed command are printed: its end.
const shown = 1500

// result is what became of a command of the agent.
type result struct {
	command string
	code    int
	asked   bool
	output  string // its end
}

// reply is a reply of the scripted model.
type reply struct {
	Text      string     `json:"text,omitempty"`
	ToolCalls []toolCall `json:"toolCalls,omitempty"`
}

// toolCall is a call of the tool shell.
type toolCall struct {
	Name string    `json:"name"`
	Args shellArgs `json:"args"`
}

type shellArgs struct {
	Command   string `json:"command"`
	TimeoutMs int    `json:"timeoutMs"`
}

// agent runs a turn whose model calls the commands of the project one after the other. Nothing answers questions.
func (p project) agent(ctx context.Context, lash, home, work string) ([]result, error) {
	if err := p.configure(home); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, lash, "run", "--home", home, "--stream-json", "do your work")
	cmd.Dir = work
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	_ = exec.Command(lash, "call", "--home", home, "shutdown", `{"daemon":true}`).Run() // its exit status says nothing about the project
	results := read(out)
	if len(results) == 0 {
		return nil, fmt.Errorf("no command ran: %v: %s", err, stderr.Bytes())
	}
	return results, nil
}

// configure writes the configuration of the daemon, which names no sandbox mode, and the script of the model.
func (p project) configure(home string) error {
	var replies []reply
	for _, c := range p.commands {
		replies = append(replies, reply{ToolCalls: []toolCall{{Name: "shell", Args: shellArgs{Command: c, TimeoutMs: 500_000}}}})
	}
	replies = append(replies, reply{Text: "done"})
	script, err := json.Marshal(map[string]any{"otherwise": map[string]any{"replies": replies}})
	if err != nil {
		return err
	}
	path := filepath.Join(home, "script.json")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, script, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "script = %q\n%s", path, p.config), 0o600)
}

// event is what read needs of an event.
type event struct {
	Type string
	Item struct {
		Kind   string
		Args   shellArgs
		Output struct {
			Text  string
			Value *struct{ ExitCode int }
		}
	}
}

// read returns the results of the commands in the events of a turn.
func read(events []byte) (all []result) {
	asked := false
	for line := range bytes.Lines(events) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		asked = asked || e.Type == "decision/opened"
		if e.Type != "item/completed" || e.Item.Kind != "toolCall" {
			continue
		}
		r := result{command: e.Item.Args.Command, asked: asked, code: -1}
		if v := e.Item.Output.Value; v != nil {
			r.code = v.ExitCode
		}
		text := strings.TrimSpace(e.Item.Output.Text)
		r.output = text[max(0, len(text)-shown):]
		all, asked = append(all, r), false
	}
	return all
}
