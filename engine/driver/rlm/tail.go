package rlm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// defaultAdvice is the size of a conversation from which the model is asked to move on, in tokens. Models get slower and
// less accurate well before their context is full.
const defaultAdvice = 100_000

// maxListed is the number of globals that the model is reminded of in each call.
const maxListed = 50

// tail returns the message at the end of the prompt, with what changes from call to call. There is none if there is nothing
// to say.
func tail(v turn.View, o options) []protocol.Message {
	var lines []string
	for _, line := range []string{globalsText(v.Code.Globals), contextText(v.Code.Context, cmp.Or(o.ContextAdvice, defaultAdvice)), endText(v, o)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return []protocol.Message{{
		Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Join(lines, "\n")}},
		Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: ID, Transient: true},
	}}
}

// globalsText lists the variables of earlier cells.
func globalsText(all []protocol.CodeGlobal) string {
	if len(all) == 0 {
		return ""
	}
	var names []string
	for _, g := range all[:min(len(all), maxListed)] {
		about := g.Type
		if g.Size > 0 {
			about += ", " + grouped(g.Size) + " bytes"
		}
		names = append(names, fmt.Sprintf("%s (%s)", g.Name, about))
	}
	text := "Globals from earlier cells: " + strings.Join(names, ", ")
	if left := len(all) - maxListed; left > 0 {
		text += fmt.Sprintf(", and %d more", left)
	}
	return text + "."
}

// contextText is the advice about the size of the conversation; empty below 60 per cent.
func contextText(used, advised int64) string {
	about := fmt.Sprintf("The conversation has about %s of %s tokens. ", grouped(used), grouped(advised))
	switch {
	case used*100 < advised*60:
		return ""
	case used*100 < advised*90:
		return about + "Keep long values in globals and print only what you need to read."
	case used < advised:
		return about + "Finish soon, or continue with less context: continue_as(task, seed) starts again with only the task and the values of seed."
	}
	return about + "It is too long. Finish now, or call continue_as(task, seed), which starts again with only the task and the values of seed."
}

// endText says how the turn ends, if a reply without a cell does not end it or if this is the last reply.
func endText(v turn.View, o options) string {
	switch {
	case o.mustFinish() && v.Grace:
		return "This is the last reply of the turn. Write a code cell that calls finish(value)." + o.schemaText()
	case o.mustFinish():
		return "This turn ends only when a code cell calls finish(value)." + o.schemaText()
	case v.Grace:
		return "This is the last reply of the turn. Write your answer without a code cell: code is not run any more."
	}
	return ""
}

// grouped returns a number with commas between groups of three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
