package toolsearch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const (
	most       = 10  // tools that are found at once
	shownBytes = 300 // bytes of a description that are shown
)

// query is the arguments of a call.
type query struct {
	Query string `json:"query"`
}

// answer is the value of a result, the best first.
type answer struct {
	Tools []hit `json:"tools"`
}

// hit is a tool that was found.
type hit struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Member      bool   `json:"member"` // it could be called already
	score       int
}

// Execute implements tool.Provider.
func (i *instance) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var q query
	if err := json.Unmarshal(call.Args, &q); err != nil {
		return tool.Result{}, err // the arguments fit the schema: this does not happen
	}
	i.mu.Lock()
	tools := i.tools
	i.mu.Unlock()
	if tools == nil {
		return tool.Result{Output: unknown()}, nil
	}
	found := answer{search(tools, q.Query)}
	value, err := json.Marshal(found)
	if err != nil {
		return tool.Result{}, err
	}
	out := protocol.Succeed(found.text())
	out.Value = value
	return tool.Result{Output: out}, nil
}

// unknown is the answer if the daemon has begun anew since the model was asked.
func unknown() protocol.ToolOutput {
	return protocol.Fail(protocol.FailUnavailable, "tools_unknown", "the tools are not known yet; search again", protocol.FromTool)
}

// search is what fits best. Of what fits as well the order is that of names.
func search(tools []protocol.ToolRecord, text string) []hit {
	found, wanted := []hit{}, words(text)
	for _, t := range tools {
		if s := score(t, wanted); s > 0 && findable(t) {
			found = append(found, hit{t.Name, t.Description, t.Member, s})
		}
	}
	slices.SortFunc(found, func(a, b hit) int { return cmp.Or(b.score-a.score, cmp.Compare(a.Name, b.Name)) })
	return found[:min(len(found), most)]
}

func findable(t protocol.ToolRecord) bool {
	open := t.Member || t.Availability == protocol.ToolSearchable
	return open && !t.Orphan && t.Activation != protocol.ActivateInternal && t.Name != toolName
}

// score is how well a tool fits: a word of its name counts for more than one of its description, and a whole word for more
// than the beginning of one.
func score(t protocol.ToolRecord, wanted []string) int {
	name, about := words(t.Name), words(t.Description)
	total := 0
	for _, w := range wanted {
		total += 4*overlap(name, w) + overlap(about, w)
	}
	return total
}

func overlap(words []string, wanted string) int {
	switch {
	case slices.Contains(words, wanted):
		return 2
	case len(wanted) > 2 && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, wanted) }):
		return 1
	}
	return 0
}

// words are what a text consists of, each once, in lower case.
func words(text string) []string {
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(list)
	return slices.Compact(list)
}

func (a answer) text() string {
	if len(a.Tools) == 0 {
		return "No tool fits. Try other words."
	}
	var out strings.Builder
	out.WriteString("These tools can be called from your next reply on:\n")
	for _, h := range a.Tools {
		about, _, _ := strings.Cut(strings.TrimSpace(h.Description), "\n")
		fmt.Fprintf(&out, "- %s: %s\n", h.Name, strings.ToValidUTF8(about[:min(len(about), shownBytes)], ""))
	}
	return out.String()
}
