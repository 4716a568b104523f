package rlm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Limits of the result of a cell.
const (
	maxOutput  = 10_000 // characters that the model reads, with the note about what is left out
	outputTail = 3_000  // of them for the end, where errors are
)

// Cell implements turn.Driver.
func (d Driver) Cell(v turn.View, reply turn.CellReply) []turn.Action {
	if c := reply.Control; c != nil && reply.Error == "" {
		return d.control(v, reply, c)
	}
	return []turn.Action{turn.Append(observation(reply, "")), turn.CheckpointThen(protocol.BoundaryAfterWork, nil)}
}

// control ends the turn as the code asks.
func (d Driver) control(v turn.View, reply turn.CellReply, c *protocol.ToolControl) []turn.Action {
	switch c.Kind {
	case protocol.ControlFinish:
		return d.finishWith(v, reply, c.Value)
	case protocol.ControlFail:
		end := reply
		end.Value = c.Value
		return []turn.Action{turn.Append(final(end, endedWithError)), turn.Finish(protocol.TurnOutcome{
			Kind: protocol.OutcomeSubmittedError, Text: rendered(c.Value, answerValue), Value: c.Value,
		})}
	case protocol.ControlSwitchFrame:
		if c.Frame.Meant() {
			return []turn.Action{turn.Append(final(reply, newFrame)),
				turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: c.Frame})}
		}
	}
	return []turn.Action{turn.Append(observation(reply, "")), turn.CheckpointThen(protocol.BoundaryAfterWork, nil)}
}

// finishWith ends the turn with a value. A value that does not match the schema of the turn is repaired.
func (d Driver) finishWith(v turn.View, reply turn.CellReply, value json.RawMessage) []turn.Action {
	o, _ := optionsOf(v) // Prepare has checked them
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	if err := tool.CheckValue(o.schema(), value); err != nil {
		text := fmt.Sprintf("finish: the value does not match the schema of this turn: %v.%s", err, o.schemaText())
		sum := (&reading{text: string(value)}).fingerprint()
		reply.Control, reply.Error = nil, text
		return []turn.Action{
			diagnose(v, wrongValue, sum),
			turn.Append(observation(reply, "")),
			turn.Report(protocol.Issue{Kind: "protocol", Code: issueCodes[wrongValue], Message: text}),
			turn.NoProgress(),
			turn.CheckpointThen(protocol.BoundaryAfterWork, nil),
		}
	}
	reply.Value = value
	return []turn.Action{turn.Append(final(reply, endedWithValue)), turn.Finish(protocol.TurnOutcome{
		Kind: protocol.OutcomeFinalValue, Text: rendered(value, o.Answer), Value: value,
	})}
}

// rendered returns the text of a final value. A string is its own text in Markdown.
func rendered(value json.RawMessage, format answerFormat) string {
	var text string
	if format == answerValue {
		return string(value)
	}
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var indented bytes.Buffer
	if json.Indent(&indented, value, "", "  ") != nil {
		return string(value)
	}
	return "```json\n" + indented.String() + "\n```"
}

// observation returns the message with the result of a cell. note precedes it, if it is not empty.
func observation(reply turn.CellReply, note string) protocol.Message {
	whole := protocol.CodeResult{Printed: reply.Printed, Value: reply.Value, Error: reply.Error, Position: reply.Position, Unsaved: reply.Unsaved}
	return outputMessage(told(note, &whole), reply.Result())
}

// told returns what the model reads of a result. note precedes it, if it is not empty.
func told(note string, r *protocol.CodeResult) string {
	sections := slices.DeleteFunc([]string{note, r.Text(), unsavedText(r.Unsaved)}, func(s string) bool { return s == "" })
	if len(sections) == 0 {
		return "The code ran and printed nothing."
	}
	return shortened(strings.Join(sections, "\n"))
}

// Tells reports whether the driver would give the model a text for a result that people see. It is false for results that are cut for
// people, and for texts of other drivers.
func Tells(r *protocol.CodeResult, text string) bool {
	return text == r.Error && r.Text() == "Error: "+text ||
		slices.ContainsFunc([]string{"", endedWithError, endedWithValue, newFrame}, func(note string) bool { return told(note, r) == text })
}

// Sentences before the result of a cell that ends the turn.
const (
	endedWithError = "The turn ended with an error."
	endedWithValue = "The turn ended with this value."
	newFrame       = "The work continues in a new frame."
)

// final is the observation of a cell that ended the turn.
func final(reply turn.CellReply, note string) protocol.Message {
	msg := observation(reply, note)
	msg.Parts[0].Cell.Final = true
	return msg
}

// outputMessage returns a message with what the model reads of a cell, and its result for people.
func outputMessage(text string, result *protocol.CodeResult) protocol.Message {
	if result == nil {
		result = &protocol.CodeResult{Error: text}
	}
	return protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartOutput, Text: text, Cell: result}}}
}

// unsavedText warns of globals that are not stored; empty without any.
func unsavedText(all []protocol.UnsavedGlobal) string {
	if len(all) == 0 {
		return ""
	}
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = fmt.Sprintf("%s (%s)", u.Name, u.Reason)
	}
	return "These globals cannot be stored and may be gone in later turns: " + strings.Join(names, ", ")
}

// shortened cuts a text to maxOutput characters. It keeps the beginning and the end, and says how much is left out.
func shortened(text string) string {
	n := utf8.RuneCountInString(text)
	if n <= maxOutput {
		return text
	}
	note := func(left int) string {
		return fmt.Sprintf("\n[... %s characters are left out here. Print less at a time to read them. ...]\n", grouped(int64(left)))
	}
	head := maxOutput - outputTail - len(note(n))
	return prefix(text, head) + note(n-head-outputTail) + suffix(text, outputTail)
}

// prefix returns the first n characters of a text.
func prefix(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// suffix returns the last n characters of a text.
func suffix(text string, n int) string {
	rest := text
	for ; n > 0 && len(rest) > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(rest)
		rest = rest[:len(rest)-size]
	}
	return text[len(rest):]
}
