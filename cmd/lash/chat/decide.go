package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// keys are the answers to decisions. The user types a letter or one of the words
// alone on a line. The first word of each entry is its letter; answered is the
// note after the decision. The order is that of the offers.
var keys = []struct {
	words, label, answered string
	choice                 protocol.DecisionChoice
}{
	{"y yes", "Allow once", "Allowed once.", protocol.ChooseAllowOnce},
	{"s session", "Allow for this session", "Allowed for this session.", protocol.ChooseAllowSession},
	{"a always", "Always allow in this workspace", "Always allowed in this workspace.", protocol.ChooseAllowAlways},
	{"o open", "Open the page", "", protocol.ChooseOpen},
	{"n no deny reject", "Deny", "Denied.", protocol.ChooseReject},
	{"h happened", "It took effect", "Answered: it took effect.", protocol.ChooseHappened},
	{"d didnotrun", "It did not run", "Answered: it did not run.", protocol.ChooseNotHappened},
	{"r runagain", "Run it again", "Running it again.", protocol.ChooseRunAgain},
	{"t tellmodel", "Let the model check", "The model will check.", protocol.ChooseTellModel},
}

// asked returns the decision to show: the first open one that a person can answer,
// or nil. The result points into t.decisions and is valid until the next event.
func (t *transcript) asked() *protocol.Decision {
	i := slices.IndexFunc(t.decisions, func(d protocol.Decision) bool { return d.Kind != protocol.DecisionCompletion })
	if i < 0 {
		return nil
	}
	return &t.decisions[i]
}

// Chosen returns the choice that a line stands for, or "" if it stands for none.
// Case does not matter. If the decision accepts a text as its answer, only the
// letters count, because a word may be the answer itself. lash run uses it as
// well.
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

// Answer describes the answer to a decision in a sentence, such as "Allowed once."
// d.Answer must be set.
func Answer(d *protocol.Decision) string {
	choice := d.Answer.Choice
	switch {
	case d.Kind == protocol.DecisionQuestion && choice == protocol.ChooseReject:
		return "Not answered."
	case choice == protocol.ChooseAnswer:
		return "Answered."
	case choice == protocol.ChooseOpen:
		return "Open this address in a browser: " + termtext.OneLine(d.URL, len(d.URL))
	case choice == protocol.ChooseCancelled:
		return "The question was cancelled."
	case choice == protocol.ChooseUnavailable:
		return "No answer."
	case d.Answer.By == "deadline" && choice == protocol.ChooseReject:
		return "Denied, because no answer came in time."
	}
	for _, k := range keys {
		if k.choice == choice {
			return withExtras(d, k.answered)
		}
	}
	return string(choice)
}

// withExtras adds to the description of an answer what the answer has beyond its
// choice.
func withExtras(d *protocol.Decision, said string) string {
	a, said := d.Answer, strings.TrimSuffix(said, ".")
	some := len(a.Hunks) > 0 && Hunks(d) > 0
	if some {
		said = fmt.Sprintf("%s, with %d of %d changes", said, len(a.Hunks), Hunks(d))
	}
	switch {
	case a.Reason != "":
		return said + ": " + termtext.OneLine(a.Reason, 200)
	case len(a.Args) > 0 && !some:
		return said + ", as edited."
	case a.Width != nil && d.Detail != nil && *a.Width >= 0 && *a.Width < len(d.Detail.Widths):
		return said + ": " + termtext.OneLine(d.Detail.Widths[*a.Width].Text, 200)
	}
	return said + "."
}

// callText returns a tool call with all of its arguments.
func callText(c *protocol.ToolCall) string {
	return termtext.OneLine(c.Name, 60) + " " + termtext.Printable(termtext.Readable(c.Args))
}

// Offers returns the line that says how to answer a decision: the letters of its
// choices, and what else an approval accepts.
func Offers(d *protocol.Decision) string {
	var choices []string
	for _, k := range keys {
		if slices.Contains(d.Choices, k.choice) {
			choices = append(choices, k.words[:1]+" "+k.label)
		}
	}
	if Hunks(d) > 0 {
		choices = append(choices, "y 1 Allow only change 1")
	}
	if Editable(d) {
		choices = append(choices, "e Edit")
	}
	if d.Kind == protocol.DecisionApproval && slices.Contains(d.Choices, protocol.ChooseReject) {
		choices = append(choices, "r Deny, say why")
	}
	if slices.Contains(d.Choices, protocol.ChooseAnswer) {
		choices = append(choices, "or enter an answer")
	}
	return "  " + strings.Join(choices, "   ")
}

// Until says in how much time the default answer to a decision applies, as at the
// time when it opened. It returns "" if there is no deadline.
func Until(d *protocol.Decision) string {
	left := d.RemainingMs
	if left == 0 {
		left = d.DeadlineMs - d.OpenedAtMs
	}
	if d.DeadlineMs == 0 || left <= 0 {
		return ""
	}
	return "   (" + defaults(d) + " in " + clock(time.Duration(left)*time.Millisecond) + ")"
}

// covered describes the arguments of the calls that an answer beyond this call covers,
// if some arguments may differ: by those that must be equal, if there are any.
func covered(d *protocol.Decision) string {
	var args map[string]json.RawMessage
	if json.Unmarshal(d.Call.Args, &args) == nil {
		maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return slices.Contains(d.Varying, name) })
		if len(args) > 0 {
			return "the same " + strings.Join(slices.Sorted(maps.Keys(args)), " and ")
		}
	}
	return "the same arguments, except that " + strings.Join(d.Varying, " and ") + " may differ"
}

// answer converts the text that the user entered to a value that fits form, a JSON
// Schema. Valid JSON is used unchanged unless form wants a string; other text
// becomes a string. If form is an object with one property, the value becomes that
// property. The daemon validates the result.
func answer(form json.RawMessage, text string) json.RawMessage {
	var shape struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(form, &shape) // without a form, any value is accepted
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

// quoted returns text as a JSON string.
func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // cannot happen: every string can be encoded
	}
	return raw
}
