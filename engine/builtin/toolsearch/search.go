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

// Limits of a result.
const (
	most       = 10  // tools in one result
	shownBytes = 300 // bytes of each description
)

// query is the arguments of tool_search.
type query struct {
	Query string `json:"query"`
}

// answer is the structured result, best match first.
type answer struct {
	Tools []hit `json:"tools"`
}

// hit is a found tool.
type hit struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Member means that the model could already call the tool.
	Member bool `json:"member"`
	score  int
}

// Execute implements tool.Provider.
func (i *instance) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var q query
	if err := json.Unmarshal(call.Args, &q); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
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

// unknown returns the failure for a search before the catalog is known, as after a restart.
func unknown() protocol.ToolOutput {
	return protocol.Fail(protocol.FailUnavailable, "tools_unknown", "the tool catalog is not loaded yet; search again", protocol.FromTool)
}

// search returns the best matches, equal ones in the order of their names.
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

// findable reports whether a tool may be found: it is callable or searchable, and not
// internal.
func findable(t protocol.ToolRecord) bool {
	open := t.Member || t.Availability == protocol.ToolSearchable
	return open && !t.Orphan && t.Activation != protocol.ActivateInternal && t.Name != toolName
}

// score returns how well a tool matches. Words of the name count more than those of the
// description, and complete words more than prefixes.
func score(t protocol.ToolRecord, wanted []string) int {
	name, about := words(t.Name), words(t.Description)
	total := 0
	for _, w := range wanted {
		total += 4*overlap(name, w) + overlap(about, w)
	}
	return total
}

// overlap returns 2 if wanted is one of the words, 1 if it is a prefix of one and has at
// least three letters, else 0.
func overlap(words []string, wanted string) int {
	switch {
	case slices.Contains(words, wanted):
		return 2
	case len(wanted) > 2 && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, wanted) }):
		return 1
	}
	return 0
}

// words returns the distinct words of a text in lower case, sorted.
func words(text string) []string {
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(list)
	return slices.Compact(list)
}

// text returns the result as the model reads it, one tool per line with the beginning of
// its description.
func (a answer) text() string {
	if len(a.Tools) == 0 {
		return "No tool matches. Try other words."
	}
	var out strings.Builder
	out.WriteString("You can call these tools from your next reply on:\n")
	for _, h := range a.Tools {
		about, _, _ := strings.Cut(strings.TrimSpace(h.Description), "\n")
		fmt.Fprintf(&out, "- %s: %s\n", h.Name, strings.ToValidUTF8(about[:min(len(about), shownBytes)], ""))
	}
	return out.String()
}
