package chat

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
// letters count, because a word may be the answer itself. lashd run uses it as
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
	case choice == protocol.ChooseCancelled:
		return "The question was cancelled."
	case choice == protocol.ChooseUnavailable:
		return "No answer."
	}
	for _, k := range keys {
		if k.choice == choice {
			return k.answered
		}
	}
	return string(choice)
}

// Question returns the text of a decision for a terminal. It contains the tool
// call with all of its arguments, so that nothing is approved unseen. Control
// characters are escaped. Lines after the first are indented.
func Question(d *protocol.Decision) string {
	if d.Call == nil {
		return hang(termtext.Printable(d.Prompt))
	}
	if more, ok := afterArguments(d.Prompt); ok && d.Kind == protocol.DecisionApproval {
		return approvalQuestion(d.Call, termtext.Printable(more))
	}
	prompt := strings.Replace(d.Prompt, " with "+termtext.Brief(d.Call.Args), "", 1)
	return hang(termtext.Printable(prompt) + "\n" + callText(d.Call))
}

// afterArguments returns the part of an approval's prompt that follows the
// arguments, such as a plugin's reason. It depends on the engine's wording: "...
// run with ARGUMENTS?". The arguments in the prompt are those of the call, perhaps
// with their members in another order, or cut off as termtext.Brief does. It
// returns false for any other prompt, which is then shown as it is.
func afterArguments(prompt string) (string, bool) {
	_, rest, _ := strings.Cut(prompt, " run with ")
	var args json.RawMessage
	if dec := json.NewDecoder(strings.NewReader(rest)); dec.Decode(&args) == nil {
		return strings.CutPrefix(rest[dec.InputOffset():], "?")
	}
	_, more, ok := strings.Cut(rest, "...?")
	return more, ok
}

// approvalQuestion asks whether a call may run: "Run `npm test`?" for a shell
// command on one line. more is what the engine and plugins add to the question.
func approvalQuestion(c *protocol.ToolCall, more string) string {
	if command, ok := soleCommand(c); ok {
		return "Run `" + termtext.Printable(command) + "`?" + hang(more)
	}
	return hang("Allow this tool call?" + more + "\n" + callText(c))
}

// soleCommand returns the command of a shell call that has no other arguments and
// that fits between backquotes on one line.
func soleCommand(c *protocol.ToolCall) (string, bool) {
	var args map[string]json.RawMessage
	var command string
	if c.Name != "shell" || json.Unmarshal(c.Args, &args) != nil || len(args) != 1 || json.Unmarshal(args["command"], &command) != nil {
		return "", false
	}
	return command, !strings.ContainsAny(command, "`\n")
}

// callText returns a tool call with all of its arguments.
func callText(c *protocol.ToolCall) string {
	return termtext.OneLine(c.Name, 60) + " " + termtext.Printable(termtext.Readable(c.Args))
}

// Offers returns the lines that say how to answer a decision: the letters of its
// choices, and, if later calls can be allowed too, which calls that covers. There
// is always at least one line.
func Offers(d *protocol.Decision) (lines []string) {
	var choices []string
	for _, k := range keys {
		if slices.Contains(d.Choices, k.choice) {
			choices = append(choices, k.words[:1]+" "+k.label)
		}
	}
	if slices.Contains(d.Choices, protocol.ChooseAnswer) {
		choices = append(choices, "or enter an answer")
	}
	lines = append(lines, "  "+strings.Join(choices, "   "))
	if slices.Contains(d.Choices, protocol.ChooseAllowAlways) && d.Call != nil {
		lines = append(lines, "  s and a also allow later "+termtext.OneLine(d.Call.Name, 60)+" calls with "+termtext.Printable(covered(d))+".")
	}
	return lines
}

// covered describes the arguments of the calls that an answer beyond this call covers:
// by the arguments that must be equal, if some may differ and others are given.
func covered(d *protocol.Decision) string {
	if len(d.Varying) == 0 {
		return "the same arguments"
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(d.Call.Args, &args) == nil {
		maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return slices.Contains(d.Varying, name) })
		if len(args) > 0 {
			return "the same " + strings.Join(slices.Sorted(maps.Keys(args)), " and ")
		}
	}
	return "the same arguments, except that " + strings.Join(d.Varying, " and ") + " may differ"
}

// card renders a decision for a screen of the given width. more is the number of
// further open decisions. The arguments are never shortened, so a card may be
// taller than the screen.
func card(d *protocol.Decision, more, width int) string {
	question, rest, _ := strings.Cut(Question(d), "\n")
	lines := []string{asking.Render("? ") + strong.Render(question)}
	if rest != "" {
		lines = append(lines, rest)
	}
	if len(d.Form) > 0 {
		lines = append(lines, faint.Render("  Answer format (JSON Schema): "+termtext.OneLine(termtext.Readable(d.Form), 400)))
	}
	offers := Offers(d)
	lines = append(lines, asking.Render(offers[0]))
	for _, scope := range offers[1:] {
		lines = append(lines, faint.Render(scope))
	}
	if more > 0 {
		lines = append(lines, faint.Render("  "+counted(more, "more question")))
	}
	return fit(strings.Join(lines, "\n"), width)
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
