package rlm

import (
	"fmt"
	"strings"

	"lashd/engine/plugin"
)

// Preamble implements plugin.Driver. It is the same for all turns with the same tools, so that it stays in the provider's
// cache.
func (d Driver) Preamble(in plugin.PreambleInput) string {
	if in.Code == nil {
		return ""
	}
	text := fmt.Sprintf(howTo, in.Code.Language)
	if d.Child {
		text += "\n- submit_error(value) ends the turn if you cannot do the task. The value says why."
	}
	if guide := strings.TrimSpace(in.Code.Guide); guide != "" {
		text += "\n\n" + guide
	}
	return text
}

// howTo says how code cells work. %[1]s is the language.
const howTo = `You work by writing code. A reply can contain one code cell. lashd runs it and sends you the result in the next message. This is a reply with a code cell:

I add the numbers.

<%[1]s>
total = 2 + 3
print(total)
</%[1]s>

- Each tag is alone on its line. Text can come before the cell. End the reply after the closing tag: later text is not read, and only the first cell runs.
- You get back what the code printed, the value of its last expression, or its error with the line. Up to 10,000 characters come back, so print what you need and keep the rest in variables.
- Global variables stay for later cells, also in later turns.
- Tools are functions that you call in the code, as described below. Calls that do not depend on each other run at the same time with parallel([...]).
- A reply without a code cell is your answer. It ends the turn.
- finish(value) in a cell ends the turn with a value.
- continue_as(task, seed) starts again with an empty conversation, in which only the task and the values of seed are known.`
