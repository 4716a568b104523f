package starlark

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"lashd/rpc/protocol"
)

// maxTrace is the number of calls that an error shows.
// Half of them are the innermost calls and half the outermost. A recursion has its cause in one of the two.
const maxTrace = 12

// explain fills in the error of a reply: the message, the line of the cell with its number, and the calls that led there.
// The position of the reply lies in this cell, even if the error arose in a function of an earlier one, because the model
// can change only the code that it just wrote.
func (in *Interpreter) explain(r *run, err error, reply *Reply) {
	message, places := in.trace(r, err)
	switch {
	case r.meter.exceeded() != "":
		message = r.meter.exceeded() + ". The globals are as they were before the cell."
	case r.ctx.Err() != nil:
		message = "the cell was cancelled. The globals are as they were before the cell."
	}
	var out strings.Builder
	out.WriteString(cutMessage(message))
	for i := len(places) - 1; i >= 0; i-- { // the innermost place in this cell
		if p := places[i].Pos; p.Filename() == r.file && p.Line > 0 {
			reply.Position = &protocol.CodePosition{Line: int(p.Line), Column: int(p.Col)}
			fmt.Fprintf(&out, "\n%5d | %s", p.Line, sourceLine(r.cell.Source, int(p.Line)))
			break
		}
	}
	if len(places) > 1 {
		in.writeTrace(&out, r, places)
	}
	reply.Error = strings.ToValidUTF8(out.String(), "\uFFFD")
}

// writeTrace writes the calls that led to an error, the innermost first.
func (in *Interpreter) writeTrace(out *strings.Builder, r *run, places starlark.CallStack) {
	for i := len(places) - 1; i >= 0; i-- {
		if skipped := len(places) - maxTrace; i == len(places)-1-maxTrace/2 && skipped > 0 {
			fmt.Fprintf(out, "\n  ... %d more calls", skipped)
			i -= skipped
		}
		where := places[i]
		fmt.Fprintf(out, "\n  at line %d", where.Pos.Line)
		if where.Pos.Filename() != r.file {
			fmt.Fprintf(out, " of %s", display(where.Pos.Filename()))
		}
		if where.Name != "<toplevel>" {
			fmt.Fprintf(out, ", in %s", where.Name)
		}
	}
}

// display returns the name of a cell for people.
// The number after # tells apart the functions that were compiled again from one cell. It means nothing to a reader.
func display(file string) string {
	name, _, _ := strings.Cut(file, "#")
	return name
}

// trace returns the message of an error and the places that led to it, outermost first.
//
// Functions of the library have no place in the code; the last of them gives the message a prefix, so that the model sees
// which call failed.
func (in *Interpreter) trace(r *run, err error) (message string, places starlark.CallStack) {
	if e, ok := errors.AsType[*starlark.EvalError](err); ok {
		for _, frame := range e.CallStack {
			if frame.Pos.Filename() != "<builtin>" && frame.Pos.Line > 0 {
				places = append(places, frame)
			}
		}
		name := ""
		if n := len(e.CallStack); n > 0 && e.CallStack[n-1].Pos.Filename() == "<builtin>" {
			name = e.CallStack[n-1].Name
		}
		return named(name, e.Msg), places
	}
	if e, ok := errors.AsType[syntax.Error](err); ok {
		return "syntax error: " + e.Msg, starlark.CallStack{{Name: "<toplevel>", Pos: e.Pos}}
	}
	if e, ok := errors.AsType[codeError](err); ok {
		return e.message, starlark.CallStack{{Name: "<toplevel>", Pos: e.pos}}
	}
	if e, ok := errors.AsType[resolve.ErrorList](err); ok && len(e) > 0 {
		return e[0].Msg, starlark.CallStack{{Name: "<toplevel>", Pos: e[0].Pos}}
	}
	return err.Error(), nil
}

// named prefixes a message with the function that failed, unless the message names it or the function is hidden.
func named(function, message string) string {
	if function == "" || function == "fail" || function == "unwrap" || function[0] == '$' || strings.Contains(message, function) {
		return message
	}
	return function + ": " + message
}

// cutMessage shortens a message to maxMessage bytes.
// The limit is in bytes. A character that it would cut is left out, so that the message stays valid text.
func cutMessage(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}

// sourceLine returns a line of a source, cut to a readable length.
// n starts at 1. A line beyond the source, as a parser reports for an unexpected end, is empty.
func sourceLine(source string, n int) string {
	lines := strings.Split(source, "\n")
	if n > len(lines) {
		return ""
	}
	line := strings.TrimRight(lines[n-1], "\r")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "..."
	}
	return line
}
