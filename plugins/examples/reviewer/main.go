// Command reviewer is a plugin of lashd that has the model review its changes now and then. README.md tells how.
package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"reviewer/lashdplugin"
)

// turn is what a turn has changed.
type turn struct {
	TurnID  string   `json:"turnId"`
	Files   []string `json:"files"`
	Edits   int      `json:"edits"`
	Failed  int      `json:"failed"` // calls
	Reviews int      `json:"reviews"`
}

// kept is what the plugin keeps for a session: its newest turns.
type kept struct {
	Turns []turn `json:"turns"`
}

const most = 100 // turns that are kept

type call = lashdplugin.Call[kept]

// edits are those of a turn that were not reviewed yet, by the id of the call: a hook may be asked twice. They are gone with
// the process, and counted anew then.
type edits struct {
	mu      sync.Mutex
	turn    string
	files   map[string]string
	reviews int
}

func of(c *call) *edits {
	e, _ := c.Session.Values.LoadOrStore("edits", &edits{})
	return e.(*edits)
}

func main() {
	p := lashdplugin.New[kept]("1")
	p.Blank = func() kept { return kept{Turns: []turn{}} }
	lashdplugin.On(p, lashdplugin.AfterToolCall, count)
	lashdplugin.On(p, lashdplugin.Checkpoint, review)
	lashdplugin.On(p, lashdplugin.AfterTurn, summarise)
	lashdplugin.Operation(p, "reviewer.summary", summary)
	p.Run()
}

// count notes an edit that went well.
func count(c *call, tc lashdplugin.ToolCall) (lashdplugin.Directives, error) {
	if tc.Kind != "edit" || tc.Output.Status != "success" {
		return nil, nil
	}
	e := of(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn != tc.TurnID {
		e.turn, e.files, e.reviews = tc.TurnID, map[string]string{}, 0
	}
	e.files[tc.CallID] = file(tc)
	return nil, nil
}

// file is the file that a call has changed.
func file(tc lashdplugin.ToolCall) string {
	var change, args struct{ Path string }
	_ = json.Unmarshal(tc.Output.Change, &change) // what is not there is not known
	_ = json.Unmarshal(tc.Args, &args)
	for _, path := range []string{change.Path, args.Path} {
		if path != "" {
			return path
		}
	}
	return "a file"
}

// review asks for a review after enough edits.
func review(c *call, seam lashdplugin.Turn) (lashdplugin.Directives, error) {
	e := of(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn != seam.TurnID || len(e.files) < limit(c) {
		return nil, nil
	}
	text := fmt.Sprintf("You have made %d edits, of %s. Read your diff once more before you go on: is each change needed, "+
		"complete and right, and is nothing left behind? Mend what is not.", len(e.files), strings.Join(unique(e.files), ", "))
	clear(e.files)
	e.reviews++
	return lashdplugin.Enqueue(lashdplugin.Say(text)), nil
}

// limit is after how many edits a review is due.
func limit(c *call) int {
	options := struct{ Edits int }{5}
	_ = json.Unmarshal(c.Session.Config, &options) // absent options are nothing to be wrong about, others were checked
	_ = json.Unmarshal(c.Session.Options, &options)
	return max(1, options.Edits)
}

func unique(files map[string]string) []string {
	var all []string
	for _, f := range files {
		all = append(all, f)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// summarise keeps what the turn came to: its report is whole, also after a crash.
func summarise(c *call, sum lashdplugin.Turn) (lashdplugin.Directives, error) {
	t, err := summaryOf(sum)
	if err != nil {
		return nil, err
	}
	e := of(c)
	e.mu.Lock()
	if e.turn == sum.TurnID {
		t.Reviews = e.reviews
	}
	e.mu.Unlock()
	c.Session.Change(func(k *kept) {
		k.Turns = append(k.Turns, t)
		k.Turns = k.Turns[max(0, len(k.Turns)-most):]
	})
	return nil, nil
}

func summaryOf(sum lashdplugin.Turn) (turn, error) {
	t := turn{TurnID: sum.TurnID, Files: []string{}}
	var report struct {
		ToolCalls []struct {
			Output lashdplugin.Output `json:"output"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal(sum.Report, &report); err != nil {
		return t, err
	}
	for _, c := range report.ToolCalls {
		var change struct{ Path string }
		switch {
		case c.Output.Status != "success":
			t.Failed++
		case json.Unmarshal(c.Output.Change, &change) == nil && change.Path != "":
			t.Edits++
			t.Files = append(t.Files, change.Path)
		}
	}
	slices.Sort(t.Files)
	t.Files = slices.Compact(t.Files)
	return t, nil
}

func summary(c *call, _ lashdplugin.None) (r lashdplugin.Outcome, err error) {
	c.Session.Look(func(k *kept) { r.Output = slices.Clone(k.Turns) })
	return r, nil
}
