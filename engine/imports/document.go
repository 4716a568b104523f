package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/internal/strictjson"
	"lashd/internal/termtext"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// mostTokens limits the values and keys of a document, and titleLength the title that is made from an input.
const (
	mostTokens  = 8 << 20
	titleLength = 60
)

// document is a decoded and checked document.
type document struct {
	source struct { // lenient: all other members are settings, which are not imported
		ID     protocol.SessionID `json:"sessionId"`
		Title  string             `json:"title"`
		Config struct {
			Driver string `json:"driver"`
		} `json:"config"`
	}
	nodes []protocol.Node
	turns int64
}

// parse decodes and checks a document. Errors are *param.Error with a pointer below /document.
func parse(text []byte) (*document, error) {
	var all protocol.SessionDocument
	if err := decode(text, &all); err != nil {
		return nil, err
	}
	switch {
	case all.Format != protocol.DocumentFormat:
		return nil, param.Bad("/document/format", "must be %q, not %.40q", protocol.DocumentFormat, all.Format)
	case all.Version != protocol.DocumentVersion:
		return nil, param.Bad("/document/version", "must be %d, not %d; a newer lashd may have written the document", protocol.DocumentVersion, all.Version)
	case len(all.Nodes) == 0:
		return nil, param.Bad("/document/nodes", "must have at least one node")
	case len(all.Nodes) > persistence.MaxTurnNodes-1:
		return nil, param.Bad("/document/nodes", "has %d nodes, at most %d", len(all.Nodes), persistence.MaxTurnNodes-1)
	}
	d := &document{nodes: all.Nodes}
	if err := json.Unmarshal(all.Session, &d.source); err != nil {
		return nil, param.Bad("/document/session", "is not a session: %v", err)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	d.renew()
	d.showCells()
	d.show()
	d.showCells() // again: show may have removed the mark of the node before
	return d, nil
}

// decode decodes the text of a document. It names the line of an error in JSON, and the place of a wrong value.
func decode(text []byte, into *protocol.SessionDocument) error {
	err := strictjson.Check(text, strictjson.Limits{Tokens: mostTokens})
	if err == nil {
		err = strictjson.DecodeChecked(text, into)
	}
	wrong, ok := errors.AsType[*strictjson.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return param.Bad("/document", "is not valid: %v", err)
	case wrong.Pointer == "" && wrong.Offset > 0:
		before := text[:min(wrong.Offset, len(text))]
		return param.Bad("/document", "is not valid JSON: line %d, byte %d: %s", bytes.Count(before, []byte("\n"))+1, wrong.Offset, wrong.Reason)
	}
	return param.Bad("/document"+wrong.Pointer, "is not valid: %s", wrong.Reason)
}

// check validates the nodes, and that a turn can start from each frame.
func (d *document) check() error {
	frame := 0
	for i := range d.nodes {
		n := &d.nodes[i]
		if err := checkNode(place(i), n); err != nil {
			return err
		}
		if i > 0 && n.Parent != "" && n.Parent != d.nodes[i-1].ID {
			return param.Bad(place(i)+"/parent", "must be %s, the node before", d.nodes[i-1].ID)
		}
		if n.FrameOpen == nil {
			continue
		}
		if err := d.checkFrame(frame, i); err != nil {
			return err
		}
		frame = i
	}
	return d.checkFrame(frame, len(d.nodes))
}

// place returns the pointer to a node.
func place(node int) string { return "/document/nodes/" + strconv.Itoa(node) }

// checkFrame checks that the calls and results of a frame match.
func (d *document) checkFrame(from, to int) error {
	if err := graph.ResumeSafe(graph.Messages(d.nodes[from:to])); err != nil {
		return param.Bad(place(from), "to node %d have a mistake: %v", to-1, err)
	}
	return nil
}

// checkNode validates a node: its body and the time.
func checkNode(pointer string, n *protocol.Node) error {
	bodies := 0
	for _, set := range []bool{n.Message != nil, n.Plugin != nil, n.FrameOpen != nil} {
		if set {
			bodies++
		}
	}
	switch {
	case bodies != 1:
		return param.Bad(pointer, "must have one of message, plugin and frameOpen")
	case n.AtMs < 0:
		return param.Bad(pointer+"/atMs", "must not be negative")
	case n.Plugin != nil && n.Plugin.Type == "":
		return param.Bad(pointer+"/plugin/type", "must not be empty")
	case n.Message != nil:
		return checkMessage(pointer+"/message", n.Message)
	}
	return nil
}

// checkMessage validates a message.
func checkMessage(pointer string, m *protocol.Message) error {
	switch m.Role {
	case protocol.RoleUser, protocol.RoleAssistant, protocol.RoleSystem, protocol.RoleEvent:
	default:
		return param.Bad(pointer+"/role", "must be user, assistant, system or event, not %.40q", m.Role)
	}
	if len(m.Parts) == 0 {
		return param.Bad(pointer+"/parts", "must not be empty")
	}
	if o := m.Origin; o != nil && o.Transient {
		return param.Bad(pointer+"/origin/transient", "must not be set: no history has such messages")
	}
	for i := range m.Parts {
		if err := checkPart(pointer+"/parts/"+strconv.Itoa(i), &m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// bodyOf names the member that a kind of part needs; empty: none.
var bodyOf = map[protocol.PartKind]string{
	protocol.PartText: "", protocol.PartProse: "", protocol.PartCommentary: "", protocol.PartReasoning: "", protocol.PartError: "", protocol.PartCode: "",
	protocol.PartOutput: "", protocol.PartToolCall: "call", protocol.PartToolResult: "result", protocol.PartAttachment: "attachment",
}

// checkPart validates a part: its kind, and that it has the member of that kind and no other.
func checkPart(pointer string, p *protocol.Part) error {
	needs, known := bodyOf[p.Kind]
	if !known {
		return param.Bad(pointer+"/kind", "is not a kind of part: %.40q", p.Kind)
	}
	for name, set := range map[string]bool{"call": p.Call != nil, "result": p.Result != nil, "attachment": p.Attachment != nil} {
		if set != (name == needs) {
			return param.Bad(pointer, "of kind %s must have %s", p.Kind, orNone(needs))
		}
	}
	switch {
	case p.Prune != nil:
		return param.Bad(pointer+"/prune", "must not be set: no history has it")
	case p.Call != nil && (p.Call.CallID == "" || p.Call.Name == ""):
		return param.Bad(pointer+"/call", "must have a callId and a name")
	case p.Result != nil && p.Result.CallID == "":
		return param.Bad(pointer+"/result/callId", "must not be empty")
	}
	return nil
}

// orNone returns a name, or the words for none.
func orNone(name string) string {
	if name == "" {
		return "no call, result or attachment"
	}
	return name + " and nothing else"
}

// renew gives the turns new ids, and removes what would give the session or a plugin more than history: ids of inputs, decisions
// that lashd made elsewhere, offers to run calls again, and the name of the plugin that a node or a message was verified to come from.
func (d *document) renew() {
	turns := map[protocol.TurnID]protocol.TurnID{}
	renewed := func(old protocol.TurnID) protocol.TurnID {
		if old == "" {
			return ""
		}
		if turns[old] == "" {
			turns[old] = protocol.NewTurnID()
		}
		return turns[old]
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		n.TurnID = renewed(n.TurnID)
		if n.Plugin != nil {
			n.Plugin.Plugin = ""
		}
		if n.Message == nil {
			continue
		}
		if o := n.Message.Origin; o != nil {
			o.TurnID, o.InputID, o.Plugin = renewed(o.TurnID), "", ""
		}
		for p := range n.Message.Parts {
			n.Message.Parts[p].Decision = nil
			if r := n.Message.Parts[p].Result; r != nil {
				r.Output.Refusal = nil
			}
		}
	}
	d.turns = countTurns(d.nodes)
}

// show removes the mark of a kept message from each node that repeats no message of the frame before it: people would see that
// message nowhere, but the model would read it.
func (d *document) show() {
	var before []protocol.Message
	for from := 0; from < len(d.nodes); {
		frame := d.nodes[from:d.frameEnd(from)]
		bodies := make([]protocol.NodeBody, len(frame))
		for i := range frame {
			bodies[i].Message = frame[i].Message
		}
		for i, repeated := range graph.Repeated(bodies, before) {
			frame[i].Kept = frame[i].Kept && repeated
		}
		before = nil
		for _, m := range graph.Messages(frame) {
			before = append(before, *m)
		}
		from += len(frame)
	}
}

// frameEnd returns the end of the frame that begins at a node.
func (d *document) frameEnd(from int) int {
	for i := from + 1; i < len(d.nodes); i++ {
		if d.nodes[i].FrameOpen != nil {
			return i
		}
	}
	return len(d.nodes)
}

// countTurns returns the number of turns that nodes belong to.
func countTurns(nodes []protocol.Node) int64 {
	turns := map[protocol.TurnID]bool{}
	for i := range nodes {
		if id := nodes[i].TurnID; id != "" {
			turns[id] = true
		}
	}
	return int64(len(turns))
}

// title returns the title that was asked for, that of the document, or the beginning of the first input.
func (d *document) title(asked string) string {
	for _, text := range []string{asked, d.source.Title, d.firstInput()} {
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return ""
}

// firstInput returns the beginning of the first text that a person sent.
func (d *document) firstInput() string {
	for i := range d.nodes {
		if m := d.nodes[i].Message; m != nil && m.Role == protocol.RoleUser {
			for _, p := range m.Parts {
				if p.Kind == protocol.PartText && p.Text != "" {
					return termtext.OneLine(p.Text, titleLength)
				}
			}
		}
	}
	return ""
}

// driver returns the driver that gives the code cells of the history their meaning; without code cells, any driver does.
func (d *document) driver() string {
	for i := range d.nodes {
		if m := d.nodes[i].Message; m != nil {
			for _, p := range m.Parts {
				if p.Kind == protocol.PartCode || p.Kind == protocol.PartOutput {
					return d.source.Config.Driver
				}
			}
		}
	}
	return ""
}
