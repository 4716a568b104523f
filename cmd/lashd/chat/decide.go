package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// keys answer a decision, entered alone: each by its letter or one of its words.
var keys = []struct {
	words, says string
	choice      protocol.DecisionChoice
}{
	{"y yes", "allow once", protocol.ChooseAllowOnce}, {"s session", "same in session", protocol.ChooseAllowSession},
	{"a always", "same in workspace, always", protocol.ChooseAllowAlways}, {"n no deny reject", "deny", protocol.ChooseReject},
	{"h happened", "it happened", protocol.ChooseHappened}, {"d didnotrun", "it did not run", protocol.ChooseNotHappened},
	{"r runagain", "run it again", protocol.ChooseRunAgain}, {"t tellmodel", "the model shall look", protocol.ChooseTellModel},
}

// asked is the decision that is put to the person: the first that a person can answer.
func (t *transcript) asked() *protocol.Decision {
	i := slices.IndexFunc(t.decisions, func(d protocol.Decision) bool { return d.Kind != protocol.DecisionCompletion })
	if i < 0 {
		return nil
	}
	return &t.decisions[i]
}

// Chosen is what a line means to a decision, in letters of either case; empty: nothing. Where a text is wanted, a word may be that.
func Chosen(d *protocol.Decision, line string) protocol.DecisionChoice {
	for _, k := range keys {
		words := strings.Fields(k.words)
		if slices.Contains(d.Choices, protocol.ChooseAnswer) {
			words = words[:1]
		}
		if slices.Contains(words, strings.ToLower(line)) && slices.Contains(d.Choices, k.choice) {
			return k.choice
		}
	}
	return ""
}

// card is a decision as it is put to the person, who must see all of what is to be allowed.
func card(d *protocol.Decision, more, width int) string {
	prompt, lines := d.Prompt, []string{""}
	if d.Call != nil { // its arguments are shown once, and all of them
		prompt = strings.Replace(prompt, " with "+termtext.Brief(d.Call.Args), "", 1)
		lines = append(lines, "  "+hang(strong.Render(termtext.OneLine(d.Call.Name, 60))+" "+termtext.Printable(termtext.Readable(d.Call.Args))))
	}
	lines[0] = asking.Render("? ") + each(strong, termtext.Printable(prompt))
	if len(d.Form) > 0 {
		lines = append(lines, faint.Render("  "+termtext.OneLine(termtext.Readable(d.Form), 400)))
	}
	var offers []string
	for _, k := range keys {
		if slices.Contains(d.Choices, k.choice) {
			offers = append(offers, asking.Render(k.words[:1])+" "+k.says)
		}
	}
	if slices.Contains(d.Choices, protocol.ChooseAnswer) {
		offers = append(offers, "enter an answer")
	}
	if more > 0 {
		offers = append(offers, faint.Render(fmt.Sprintf("(%d more questions)", more)))
	}
	lines = append(lines, "  "+strings.Join(offers, "   "))
	if slices.Contains(d.Choices, protocol.ChooseAllowAlways) {
		lines = append(lines, faint.Render("  same: this tool with "+termtext.Printable(same(d))))
	}
	return fit(strings.Join(lines, "\n"), width)
}

// same is for which arguments an answer holds that goes beyond the call.
func same(d *protocol.Decision) string {
	if len(d.Varying) == 0 {
		return "exactly these arguments"
	}
	return "these arguments, and any " + strings.Join(d.Varying, ", ")
}

// answer is what a person has entered, as the form of a question wants it: JSON if it is, else text, which stands in the form's only
// member if that is an object.
func answer(form json.RawMessage, text string) json.RawMessage {
	var shape struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(form, &shape) // a form that says nothing takes anything
	value := json.RawMessage(text)
	if shape.Type == "string" || !json.Valid(value) {
		value = quoted(text)
	}
	if shape.Type != "object" || len(value) > 0 && value[0] == '{' {
		return value
	}
	for name, of := range shape.Properties {
		if len(shape.Properties) == 1 {
			return slices.Concat(json.RawMessage("{"), quoted(name), json.RawMessage(":"), answer(of, text), json.RawMessage("}"))
		}
	}
	return value
}

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // no text is none
	}
	return raw
}
