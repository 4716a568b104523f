//go:build unix

package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func (g *guest) initialize(params json.RawMessage) (any, error) {
	var p map[string]any
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	delete(p, "config")
	delete(p, "dataDir")
	switch g.role {
	case "nonce":
		p["nonce"] = "another"
	case "version":
		p["protocolVersion"] = 2
	case "identity":
		p["pluginId"] = "somebody"
	case "more":
		p["contributes"].(map[string]any)["tools"] = []string{"note", "sudo"}
	case "field":
		p["root"] = true
	}
	return p, nil
}

func (g *guest) work(method string, r *room, p asked) (any, error) {
	switch method {
	case "session/open", "code/restore":
		r.cells = string(p.Values["cells"])
		return struct{}{}, nil
	case "snapshot/write":
		if g.role == "bulky" {
			if err := g.bulk(p.Grant); err != nil {
				return nil, err
			}
		}
		return map[string]any{"revision": r.revision, "state": r, "artifacts": []plugin.Artifact{{Name: "all", Data: []byte(strings.Join(r.Notes, "\n"))}}}, nil
	case "snapshot/restore":
		if g.role == "refuses" {
			return nil, fmt.Errorf("cannot read that")
		}
		r.revision = p.Meta.Revision
		r.Notes = nil
		return struct{}{}, json.Unmarshal(p.Meta.State, r)
	case "tool/list":
		list := []map[string]any{{"name": "note", "description": "Note something.", "contract": protocol.ToolContract{Replay: "never"}}}
		if r.grown {
			list = append(list, map[string]any{"name": "grown", "description": "New.", "contract": protocol.ToolContract{Replay: "safe"}})
		}
		return map[string]any{"data": list}, nil
	case "tool/prepare":
		return map[string]any{"args": p.Args}, nil
	case "tool/execute":
		return g.execute(r, p)
	case "operation/query":
		return map[string]any{"output": r.Notes}, nil
	case "operation/command", "operation/task":
		g.note(r, p.Instance, string(p.Args))
		return map[string]any{"output": len(r.Notes), "events": []any{map[string]any{"type": "noted", "body": p.Args}}}, nil
	case "task/run":
		return g.runTask(p)
	case "code/execute":
		switch {
		case p.Source == "exit;":
			os.Exit(1)
		case p.Source == "fail;":
			return nil, errors.New("no cell")
		case p.Source == "tools;" && p.Tools == nil:
			return map[string]any{"printed": "no tools"}, nil
		case p.Source == "tools;":
			return map[string]any{"printed": fmt.Sprintf("%d tools", len(p.Tools))}, nil
		}
		r.cells += p.Source
		return map[string]any{"printed": r.cells}, nil
	case "code/snapshot":
		return map[string]any{"changed": map[string][]byte{"cells": []byte(r.cells)}}, nil
	}
	return nil, fmt.Errorf("no method %s", method)
}

// bulk writes an artifact of 3 MiB in pieces.
func (g *guest) bulk(grant string) error {
	piece := []byte(strings.Repeat("x", 1<<20))
	for n := range 3 {
		if _, err := g.ask("host/artifactWrite", map[string]any{"grant": grant, "name": "bulk", "offset": n << 20, "data": piece}); err != nil {
			return err
		}
	}
	return nil
}

func (g *guest) note(r *room, instance, text string) {
	r.Notes = append(r.Notes, text)
	r.revision++
	g.tell("snapshot/changed", map[string]any{"instance": instance, "revision": r.revision})
}

func (g *guest) execute(r *room, p asked) (any, error) {
	var args struct {
		Text   string          `json:"text"`
		Host   string          `json:"host"`   // a method of the daemon
		Params json.RawMessage `json:"params"` // of it; the grant is put in
		Grow   bool            `json:"grow"`
		Times  int             `json:"times"` // it is asked
	}
	if err := json.Unmarshal(p.Args, &args); err != nil {
		return nil, err
	}
	g.tell("tool/progress", map[string]any{"grant": p.Grant, "text": "noting"})
	text := args.Text
	switch {
	case g.role == "lends":
		leave(os.Getenv("LENT"), p.Grant)
		found(os.Getenv("LENT") + ".tried")
		text = g.back(args.Host, p.Grant, args.Params)
	case g.role == "borrows":
		text = g.back(args.Host, found(os.Getenv("LENT")), args.Params)
		leave(os.Getenv("LENT")+".tried", "x")
	case args.Host == "env":
		text = strings.Join(os.Environ(), "\n")
	case args.Times > 0:
		text = g.often(args.Times, args.Host, p.Grant, args.Params)
	case args.Host != "":
		text = g.back(args.Host, p.Grant, args.Params)
	case args.Grow:
		r.grown = true
		g.tell("tools/changed", map[string]any{"instance": p.Instance})
	default:
		g.note(r, p.Instance, args.Text)
	}
	return map[string]any{"output": map[string]any{"status": "success", "text": text}}, nil
}

// leave puts a text where another plugin finds it.
func leave(path, text string) {
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		panic(err)
	}
}

// found waits for it.
func found(path string) string {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
	}
	return "nothing"
}

// back asks the daemon, with the grant unless the params have one, and gives what came of it as text.
func (g *guest) back(method, grant string, params json.RawMessage) string {
	all := map[string]any{"grant": grant}
	if g.role == "remembers" {
		all["grant"] = g.first
	}
	if len(params) > 0 {
		_ = json.Unmarshal(params, &all)
	}
	got, err := g.ask(method, all)
	if err != nil {
		return "refused: " + err.Error()
	}
	return string(got)
}

// often asks the daemon again and again, and counts what came of it.
func (g *guest) often(times int, method, grant string, params json.RawMessage) string {
	refused, began := 0, time.Now()
	for range times {
		if strings.Contains(g.back(method, grant, params), `"kind":"overloaded"`) {
			refused++
		}
	}
	return fmt.Sprint(times-refused, " ", refused, " ", int(time.Since(began).Seconds()))
}
