package imports

import (
	"slices"

	"lashd/engine/driver/rlm"
	"lashd/rpc/protocol"
)

// showCells makes people see of each code cell what the model reads. The result of a cell has both a text for the model and a result for
// people, which a document may set as it likes: a result that says something else is left out, and people see the text. A text that is the
// result of no cell becomes one of its own.
func (d *document) showCells() {
	for i := range d.nodes {
		m := d.nodes[i].Message
		if m == nil {
			continue
		}
		open := i > 0 && d.nodes[i].TurnID == d.nodes[i-1].TurnID && d.nodes[i].Kept == d.nodes[i-1].Kept && hasCode(d.nodes[i-1].Message)
		for p := range m.Parts {
			switch part := &m.Parts[p]; {
			case part.Kind != protocol.PartOutput:
				part.Cell = nil
			case !open:
				part.Kind, part.Cell = protocol.PartText, nil
			default:
				open = false
				if part.Cell != nil && !rlm.Tells(part.Cell, part.Text) {
					part.Cell = nil
				}
			}
		}
	}
}

// hasCode reports whether a message has a code cell.
func hasCode(m *protocol.Message) bool {
	return m != nil && slices.ContainsFunc(m.Parts, func(p protocol.Part) bool { return p.Kind == protocol.PartCode })
}
