package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// recorded is the file of package persistence whose Commit method is wrapped,
// followed by the method's header before and after.
const (
	recorded = "persistence/commit.go"
	head     = "func (w *writer) Commit(ctx context.Context, c *Commit) (Result, error) {"
	renamed  = "func (w *writer) commitUnrecorded(ctx context.Context, c *Commit) (Result, error) {"
)

// wrapper is the file that a recording adds to package persistence. It writes one
// line for each event of a stored commit.
const wrapper = `package persistence

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

type recordedEvent struct {
	Store, Session string
	Body           json.RawMessage
}

func (w *writer) Commit(ctx context.Context, c *Commit) (Result, error) {
	res, err := w.commitUnrecorded(ctx, c)
	if dir := os.Getenv("LASHD_EVENTLOGS"); dir != "" && err == nil && !res.Replayed && len(c.Events) > 0 {
		var lines []byte
		for _, e := range c.Events {
			line, _ := json.Marshal(recordedEvent{w.path, string(c.Session), e.Body})
			lines = append(append(lines, line...), '\n')
		}
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(os.Getpid())), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.Write(lines)
			_ = f.Close()
		}
	}
	return res, err
}
`

// record runs tests with the wrapped store. Failing tests do not stop it: their
// events are recorded as far as they go.
func record(dir, run string, packages []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	overlay, err := writeOverlay()
	if err != nil {
		return err
	}
	args := append([]string{"test", "-count=1", "-vet=off", "-run", run}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay, "LASHD_EVENTLOGS="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return nil
}

// writeOverlay writes the wrapped store and the overlay file that names it, and
// returns the latter's path.
func writeOverlay() (string, error) {
	tmp, err := os.MkdirTemp("", "eventlogs")
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(recorded)
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(source), head, renamed, 1)
	if changed == string(source) {
		return "", errors.New(recorded + " has no method with the head: " + head)
	}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range map[string]string{recorded: changed, "persistence/eventlogs.go": wrapper} {
		to := filepath.Join(tmp, filepath.Base(name))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(root, name)] = to
	}
	body, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(tmp, "overlay.json")
	return path, os.WriteFile(path, body, 0o600)
}
