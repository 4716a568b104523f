// Command reviewer is a lashd plugin that asks the model to review its edits. See README.md.
package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reviewer/lashdplugin"
)

// turn is a summary of the changes of a turn.
type turn struct {
	TurnID  string   `json:"turnId"`
	Files   []string `json:"files"`
	Edits   int      `json:"edits"`
	Failed  int      `json:"failed"` // calls
	Reviews int      `json:"reviews"`
}

const most = 100 // stored turns

// reviewer is the plugin in a session. The session's lock guards its fields.
type reviewer struct {
	*lashdplugin.Session
	kept struct {
		Turns []turn `json:"turns"` // the latest ones
	}
	edits edits
}

// edits are the edits of a turn since its last review, by call ID because a hook may run twice. They are lost when the process
// ends.
type edits struct {
	turn    string
	files   map[string]string
	reviews int
}

func main() { lashdplugin.Run(open) }

func open(s *lashdplugin.Session) error {
	r := &reviewer{Session: s}
	s.Keep("1", &r.kept)
	lashdplugin.On(s, lashdplugin.AfterToolCall, r.count)
	lashdplugin.On(s, lashdplugin.Checkpoint, r.review)
	lashdplugin.On(s, lashdplugin.AfterTurn, r.summarise)
	lashdplugin.Operation(s, "reviewer.summary", r.summary)
	return nil
}

// count records a successful edit.
func (r *reviewer) count(_ *lashdplugin.Call, tc lashdplugin.ToolCall) (lashdplugin.Directives, error) {
	if tc.Kind != "edit" || tc.Output.Status != "success" {
		return nil, nil
	}
	r.Lock()
	defer r.Unlock()
	if r.edits.turn != tc.TurnID {
		r.edits = edits{turn: tc.TurnID, files: map[string]string{}}
	}
	r.edits.files[tc.CallID] = file(tc)
	return nil, nil
}

// file returns the path of the file that a call changed.
func file(tc lashdplugin.ToolCall) string {
	var change, args struct{ Path string }
	_ = json.Unmarshal(tc.Output.Change, &change) // a missing field leaves Path empty
	_ = json.Unmarshal(tc.Args, &args)
	for _, path := range []string{change.Path, args.Path} {
		if path != "" {
			return path
		}
	}
	return "a file"
}

// review asks for a review when the limit is reached.
func (r *reviewer) review(_ *lashdplugin.Call, seam lashdplugin.Turn) (lashdplugin.Directives, error) {
	r.Lock()
	defer r.Unlock()
	e := &r.edits
	if e.turn != seam.TurnID || len(e.files) < r.limit() {
		return nil, nil
	}
	text := fmt.Sprintf("You have made %d edits, of %s. Read your diff again before you continue: is each change needed, "+
		"complete and correct? Fix what is not, and remove leftovers.", len(e.files), strings.Join(unique(e.files), ", "))
	clear(e.files)
	e.reviews++
	return lashdplugin.Enqueue([]lashdplugin.Message{{Role: "user", Content: text}}), nil
}

// limit returns the number of edits before a review.
func (r *reviewer) limit() int {
	options := struct{ Edits int }{5}
	_ = json.Unmarshal(r.Config, &options) // lashd has validated the options, and they may be absent
	_ = json.Unmarshal(r.Options, &options)
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

// summarise stores the summary of a turn from its report, which is complete even after a crash.
func (r *reviewer) summarise(_ *lashdplugin.Call, sum lashdplugin.Turn) (lashdplugin.Directives, error) {
	t, err := summaryOf(sum)
	if err != nil {
		return nil, err
	}
	r.Change(func() {
		if r.edits.turn == sum.TurnID {
			t.Reviews = r.edits.reviews
		}
		r.kept.Turns = append(r.kept.Turns, t)
		r.kept.Turns = r.kept.Turns[max(0, len(r.kept.Turns)-most):]
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

func (r *reviewer) summary(*lashdplugin.Call, lashdplugin.None) ([]turn, error) {
	r.Lock()
	defer r.Unlock()
	return append([]turn{}, r.kept.Turns...), nil
}
